/** Beside the map: what is selected, in short, and where there is more about it. */
import { capacityOf, jobs, links, nodes } from "../live.js";
import { Amount, capacityText, LinkState, NodeState, PathName } from "../parts/network.js";
import { cpu, DASH, href, html, memory, Name, percent, plain, rate, State, t, tn, To } from "../show.js";
import { selectedVertex } from "./graph.js";
import { graph } from "./model.js";
import { neighboursOf } from "./steps.js";
import { foldingOther, isFolded, selecting, view, viewHref } from "./view.js";

/** @typedef {import("../live.js").Item} Item */
/** @typedef {import("./graph.js").Edge} Edge */
/** @typedef {import("./graph.js").Vertex} Vertex */

/** @param {number} count with shares of cards as parts of one */
const gpus = (count) => String(Math.round(count * 1000) / 1000);

/** @returns {[string, string, (value: any) => string][]} what nodes have: its name, its field, and how it is written */
const amounts = () => [[t("CPU"), "cpu", cpu], [t("Memory"), "memory", memory], [t("GPU"), "gpu", gpus]];
const LISTED = 10; // of a list; the others are one click away

/** An address on the map that selects something. @param {import("./view.js").Kind} kind @param {string} key */
const picking = (kind, key) => viewHref(selecting({ kind, key }));

/** A list whose end is folded. @param {{items: any[], children: (item: any) => any}} props */
function Short({ items, children }) {
  const line = (/** @type {any} */ item) => html`<li>${children(item)}</li>`;
  return html`<ul>${items.slice(0, LISTED).map(line)}</ul>
    ${items.length > LISTED && html`<details class="more"><summary>${t("and {n} more", { n: items.length - LISTED })}</summary><ul>${items.slice(LISTED).map(line)}</ul></details>`}`;
}

/** @param {{title: string, children?: any}} props */
const Block = ({ title, children }) => html`<section><h3>${title}</h3>${children}</section>`;

/** @param {Edge} edge @returns {string} */
const loadText = (edge) => (edge.down === edge.links.length ? "" : percent(edge.reserved, edge.capacity));

/** Neighbours of a vertex, with what is reserved on the way there. @param {{vertex: Vertex}} props */
function Neighbours({ vertex }) {
  const others = [...neighboursOf(vertex)].sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));
  if (!others.length) return html`<p class="quiet">${t("No link leads to it.")}</p>`;
  const way = (/** @type {string} */ from, /** @type {string} */ to, /** @type {string} */ mark) => {
    const edge = graph.value.edges.get(`${from}>${to}`);
    if (!edge) return null;
    return html`<a href=${picking("link", edge.key)} title=${`${from} › ${to}`}><span class="unseen">${from} › ${to} </span><span aria-hidden="true">${mark} </span>${edge.down === edge.links.length ? html`<${State} state="down" />` : loadText(edge)}</a>`;
  };
  return html`<${Short} items=${others}>${(/** @type {Vertex} */ other) => html`<a class="map-to" href=${picking(other.kind === "group" ? "group" : "node", other.kind === "group" ? other.name : other.key)}><${Name}>${other.name}<//></a>
    <span class="map-ways">${way(vertex.key, other.key, "→")} ${way(other.key, vertex.key, "←")}</span>`}<//>`;
}

/** @param {{name: string}} props */
function JobsThere({ name }) {
  const there = [...jobs.value].filter(([, job]) => job.nodes.includes(name));
  if (!there.length) return null;
  return html`<${Block} title=${t("Jobs")}><${Short} items=${there}>${(/** @type {[string, Item]} */ [id, job]) => html`<${To} path=${["jobs", id]}>${job.name}<//> <${State} state=${job.state} /> <a href=${viewHref({ job: id, flow: null })}>${t("light up")}</a>`}<//><//>`;
}

/** Links to the neighbourhood of a node. @param {{name: string}} props */
function Around({ name }) {
  const { around, hops } = view.value;
  return html`<p class="map-around">${t("Show around it:")} ${[1, 2, 3].map((n) => html`<a href=${viewHref({ around: name, hops: String(n), by: null, fold: null })} aria-current=${around === name && hops === n ? "true" : undefined}>${tn(n, "1 hop", "{n} hops")}</a> `)}</p>`;
}

/** @param {{name: string}} props */
function NodePanel({ name }) {
  const node = nodes.value.get(name);
  const vertex = graph.value.vertices.get(name);
  const folded = !vertex && graph.value.vertexOf.get(name);
  if (!node && !vertex) return html`<h2>${plain(name)}</h2><p>${t("There is no node of this name on the map.")}</p>`;
  return html`
    <h2>${node ? html`<${To} path=${["nodes", name]}>${name}<//>` : html`<${Name}>${name}<//>`}</h2>
    <p>${node ? html`<${NodeState} node=${node} />` : t("Links name it, and no such node has joined.")}</p>
    ${node?.warning && html`<p class="warning">${plain(node.warning)}</p>`}
    ${node && vertex?.kind === "switch" && html`<p>${t("A switch: it forwards, and has no capacity for tasks.")}</p>`}
    ${node && vertex?.kind !== "switch" && html`<table class="map-amounts"><tbody>
      ${amounts().map(([title, field, text]) => html`<tr><th scope="row">${title}</th><td><${Amount} whole=${node[field]} committed=${node[`${field}_allocated`]} used=${node[`${field}_used`]} show=${text} /></td></tr>`)}
    </tbody></table>`}
    <${JobsThere} name=${name} />
    ${vertex && html`<${Block} title=${t("Neighbours, and what is reserved")}><${Neighbours} vertex=${vertex} /><//>`}
    ${folded && html`<p>${t("It is drawn as part of a group:")} <a href=${picking("group", folded.name)}><${Name}>${folded.name}<//></a></p>`}
    <${Around} name=${name} />
    ${node && html`<p><a href=${href("nodes", name)}>${t("All about this node")}</a></p>`}
  `;
}

/** @param {Edge} edge @returns {Item} its only link, or all its links as one */
function summed({ links: all, capacity, reserved, used, down }) {
  if (all.length === 1) return all[0];
  const state = down === all.length ? "down" : "up";
  return { bandwidth: capacity, measured: null, reserved, used, state, down };
}

/** @param {{edgeKey: string}} props */
function LinkPanel({ edgeKey }) {
  const edge = graph.value.edges.get(edgeKey);
  const [from, to] = edgeKey.split(">");
  if (!edge) return html`<h2>${plain(`${from} › ${to}`)}</h2><p>${t("There is no such link on the map.")}</p>`;
  const single = edge.links.length === 1;
  const ways = [edge, edge.twin].filter((each) => each !== null);
  const values = ways.map(summed);
  const title = html`<${PathName} path=${[edge.from.name, edge.to.name]} />`;
  const row = (/** @type {string} */ name, /** @type {(link: Item) => any} */ cell) => html`<tr><th scope="row">${name}</th>${values.map((link) => html`<td>${cell(link)}</td>`)}</tr>`;
  const media = [...new Set(edge.links.map(({ medium }) => medium).filter(Boolean))];
  return html`
    <h2>${single ? html`<a href=${href("links", edge.links[0].src, edge.links[0].dst)}>${title}</a>` : title}</h2>
    ${!single && html`<p>${tn(edge.links.length, "1 link", "{n} links")}${edge.down > 0 && html`, <${State} state="down" word=${tn(edge.down, "1 is down", "{n} are down")} />`}</p>`}
    <table class="map-link">
      <thead><tr><td></td>${ways.map((each, index) => html`<th scope="col">${index === 0 ? t("This way") : html`<a href=${picking("link", each.key)}>${t("The way back")}</a>`}</th>`)}</tr></thead>
      <tbody>
        ${row(t("State"), (link) => html`<${State} state=${link.state} />`)}
        ${row(t("Capacity"), capacityText)}
        ${row(t("Reserved"), (link) => `${rate(link.reserved)} (${percent(link.reserved, capacityOf(link))})`)}
        ${row(t("Used"), (link) => rate(link.used))}
        ${single && row(t("Dropped"), (link) => link.drops ?? DASH)}
      </tbody>
    </table>
    ${single && edge.links[0].state !== "up" && html`<p><${LinkState} link=${edge.links[0]} /></p>`}
    ${media.length > 0 && html`<p>${t("Medium")}: ${media.map((name) => html`<a href=${picking("medium", name)}><${Name}>${name}<//></a> `)}</p>`}
    <p>${t("Ends")}: ${[edge.from, edge.to].map((end) => html`<a href=${picking(end.kind === "group" ? "group" : "node", end.kind === "group" ? end.name : end.key)}><${Name}>${end.name}<//></a> `)}</p>
    ${single
      ? html`<ul>${ways.map((each) => html`<li><a href=${href("links", each.links[0].src, each.links[0].dst)}>${t("All about {link}", { link: `${each.from.name} › ${each.to.name}` })}</a></li>`)}</ul>`
      : html`<${Short} items=${edge.links}>${(/** @type {Item} */ link) => html`<a href=${href("links", link.src, link.dst)}>${plain(`${link.src} › ${link.dst}`)}</a> <${State} state=${link.state} /> ${percent(link.reserved, capacityOf(link))}`}<//>`}
  `;
}

/** @param {{name: string}} props */
function MediumPanel({ name }) {
  const medium = graph.value.media.get(name);
  if (!medium) return html`<h2>${plain(name)}</h2><p>${t("There is no such medium on the map.")}</p>`;
  const sharing = [...links.value.values()].filter((link) => link.medium === name);
  return html`
    <h2>${t("Medium")} <${Name}>${name}<//></h2>
    <table class="map-amounts"><tbody><tr><th scope="row">${t("Reserved")}</th><td><${Amount} whole=${medium.bandwidth} committed=${medium.reserved} used=${medium.used} show=${rate} /></td></tr></tbody></table>
    <${Block} title=${t("Links that share this medium")}>
      <${Short} items=${sharing}>${(/** @type {Item} */ link) => html`<a href=${picking("link", `${link.src}>${link.dst}`)}>${plain(`${link.src} › ${link.dst}`)}</a> ${link.state === "up" ? rate(link.reserved) : html`<${State} state=${link.state} />`}`}<//>
    <//>
  `;
}

/** @param {{value: string}} props */
function GroupPanel({ value }) {
  const now = view.value;
  const area = graph.value.areas.get(value);
  const vertex = selectedVertex(graph.value, { kind: "group", key: value });
  const title = html`<h2><${Name}>${`${now.by}=${value}`}<//></h2>`;
  if (!area) return html`${title}<p>${t("There is no such group on the map.")}</p>`;
  const names = vertex ? [...vertex.members] : area.members.map(({ key }) => key);
  const members = names.sort().map((name) => /** @type {[string, Item | undefined]} */ ([name, nodes.value.get(name)]));
  const sum = (/** @type {string} */ field) => members.reduce((total, [, node]) => total + (node?.[field] ?? 0), 0);
  return html`${title}
    <p>${tn(members.length, "1 node", "{n} nodes")}. <a href=${viewHref(foldingOther(value, now))}>${isFolded(value, now) ? t("Unfold") : t("Fold to one sign")}</a></p>
    <table class="map-amounts"><tbody>
      ${amounts().map(([name, field, text]) => html`<tr><th scope="row">${name}</th><td><${Amount} whole=${sum(field)} committed=${sum(`${field}_allocated`)} used=${field === "gpu" ? null : sum(`${field}_used`)} show=${text} /></td></tr>`)}
    </tbody></table>
    <${Block} title=${t("Nodes")}><${Short} items=${members}>${(/** @type {[string, Item | undefined]} */ [name, node]) => html`<a href=${picking("node", name)}><${Name}>${name}<//></a> ${node && html`<${NodeState} node=${node} />`}`}<//><//>
    ${vertex && html`<${Block} title=${t("Neighbours, and what is reserved")}><${Neighbours} vertex=${vertex} /><//>`}
  `;
}

/** The link that closes the panel goes with it; the focus does not. */
const backToMap = () => /** @type {HTMLElement | null} */ (document.querySelector(".map-picture canvas"))?.focus();

/** What is selected, or nothing. */
export function Panel() {
  const { selection } = view.value;
  if (!selection) return null;
  const { kind, key } = selection;
  return html`<aside class="map-panel" aria-label=${t("What is selected")}>
    <a class="map-close" href=${viewHref(selecting(null))} onClick=${backToMap} aria-label=${t("Select nothing")} title=${t("Select nothing")}>×</a>
    ${kind === "node" && html`<${NodePanel} name=${key} />`}
    ${kind === "link" && html`<${LinkPanel} edgeKey=${key} />`}
    ${kind === "medium" && html`<${MediumPanel} name=${key} />`}
    ${kind === "group" && html`<${GroupPanel} value=${key} />`}
  </aside>`;
}
