/** One node: what it has, what runs there, its links, and what an operator may do with it. */
import { call, may, route } from "../client.js";
import { links, nodes } from "../live.js";
import { useAnswer } from "../parts/answers.js";
import { confinementText } from "../parts/confinement.js";
import { confirmed } from "../parts/dialog.js";
import { Actions, Facts, Part } from "../parts/facts.js";
import { NodeHour } from "../parts/history.js";
import { availabilityText, energyText } from "../parts/learned.js";
import { Amount, Labels, linkColumns, NodeState } from "../parts/network.js";
import { NodeCards } from "../parts/node_cards.js";
import { NodeScores } from "../parts/node_scores.js";
import { Rows } from "../parts/rows.js";
import { NodeWorkers } from "../parts/workers.js";
import { cpu, DASH, Head, href, html, memory, Name, plain, ProblemBox, since, State, t, tn, To } from "../show.js";

/** @typedef {import("../live.js").Item} Item */

/** What the live picture leaves out of a node: when it was last heard, what is held of each card, its energy. @param {string} name */
function useWhole(name) {
  const { data } = useAnswer(nodes.value.has(name) ? route`/v1/nodes/${name}` : null, { every: 10 });
  return data;
}

/** Whether a job has a place on other nodes, as far as that is known. @param {{job: Item}} props */
function Elsewhere({ job }) {
  if (job.elsewhere == null) return html`<span class="quiet">${t("whether there is another place is not known")}</span>`;
  if (job.elsewhere) return html`<${State} state="succeeded" word=${t("there is another place now")} />`;
  return html`<${State} state="slow" word=${t("no other place now")} />${job.reason && html`: <bdi lang="en">${plain(job.reason)}</bdi>`}`;
}

/** What a drain would hit, asked and named before it is done. @param {string} name @returns {Promise<any>} */
async function drain(name) {
  const path = route`/v1/nodes/${name}/drain`;
  const { jobs: hit, remark } = await call(`${path}?dry_run=true`, { method: "POST" });
  const whom = tn(
    hit.length,
    "1 job has tasks there and is placed elsewhere, as a whole gang:",
    "{n} jobs have tasks there and are placed elsewhere, each as a whole gang:",
  );
  const weight = (/** @type {Item} */ job) =>
    `${t("priority {n}", { n: job.priority })}, ${tn(job.workers.length, "1 task", "{n} tasks")}`;
  const content = hit.length
    ? html`<p>${whom}</p>
        <ul class="hit">${hit.map(
          (/** @type {Item} */ job) => html`<li>
          <${To} path=${["jobs", job.id]}>${job.name}<//> <${State} state=${job.state} />
          ${" "}<span class="quiet">${weight(job)}</span><br /><${Elsewhere} job=${job} />
        </li>`,
        )}</ul>
        ${remark && html`<p class="quiet"><bdi lang="en">${plain(remark)}</bdi></p>`}
        <p class="quiet">${t("Each by itself, as things are now: jobs that move together may be in each other's way.")}</p>
        <p>${t("Malleable jobs go on from their newest checkpoint, all others begin again.")}</p>`
    : html`<p>${t("No job has tasks there. The node is cordoned and takes no new ones.")}</p>`;
  const sure = await confirmed(t("Drain {node}?", { node: plain(name) }), content, t("Drain"));
  return sure ? call(path, { method: "POST" }) : undefined;
}

/** @param {string} name @param {Item} node @returns {any[]} */
function actionsOf(name, node) {
  if (!may("operator")) return [];
  const post = (/** @type {string} */ word) => () => call(`${route`/v1/nodes/${name}`}/${word}`, { method: "POST" });
  return [
    node.cordoned ? { text: t("Uncordon"), act: post("uncordon") } : { text: t("Cordon"), act: post("cordon") },
    { text: t("Drain…"), act: () => drain(name), danger: true },
    node.reclaimed && { text: t("Lend again"), act: post("lend") },
    { text: t("Measure again"), act: post("measure") },
  ];
}

/** @param {{path: string[]}} props */
export default function Node({ path: [, name] }) {
  const node = nodes.value.get(name);
  const whole = useWhole(name);
  const heard = whole?.last_heartbeat;
  if (!node) {
    return html`<${Head} title=${name} /><p>
      ${nodes.value.size ? t("There is no node of this name, or it was forgotten.") : t("Loading…")}</p>`;
  }
  const ours = [...links.value.values()].filter((link) => link.src === name || link.dst === name);
  const key = (/** @type {Item} */ link) => `${link.src}>${link.dst}`;
  return html`
    <${Head} title=${name}><${NodeState} node=${node} /> <a href=${`${href("map")}?node=${encodeURIComponent(name)}`}>${t("on the map")}</a><//>
    ${node.warning && html`<${ProblemBox} problem=${{ title: t("contested"), detail: node.warning }} />`}
    <${Actions} actions=${actionsOf(name, node)} />
    <${Facts}
      items=${[
        [
          t("CPU"),
          html`<${Amount} whole=${node.cpu} committed=${node.cpu_allocated} used=${node.cpu_used} show=${cpu} />`,
        ],
        [
          t("Memory"),
          html`<${Amount} whole=${node.memory} committed=${node.memory_allocated} used=${node.memory_used}
            show=${memory} />`,
        ],
        [t("GPU"), html`<${Amount} whole=${node.gpu} committed=${node.gpu_allocated} show=${String} />`],
        [t("Architecture"), node.arch || DASH],
        [t("Labels"), html`<${Labels} labels=${node.labels} />`],
        [t("Runtime"), node.runtime],
        [t("Confines"), confinementText(node.runtime, node.network, node.confinement)],
        [t("Network"), node.network === "none" ? t("none (nothing is enforced)") : node.network],
        [t("Address"), t("{host}, workers in {subnet}", { host: node.host_address, subnet: node.subnet || DASH })],
        [t("Energy"), whole ? energyText(whole.energy) : DASH],
        [t("Availability"), whole ? availabilityText(whole.availability) : DASH],
        [t("Last heard"), heard ? t("{span} ago", { span: since(heard) }) : DASH],
        [
          t("Datasets"),
          node.datasets?.length
            ? html`<span class="labels">${node.datasets.map(
                (/** @type {string} */ each) => html`<${Name}>${each}
              <//> `,
              )}</span>`
            : DASH,
        ],
        node.calendar && [
          t("Owner"),
          t("usually needs it {times} ({zone})", {
            times: plain(node.calendar.times),
            zone: plain(node.calendar.zone),
          }),
        ],
      ]}
    />
    ${whole?.cards && html`<${NodeCards} cards=${whole.cards} />`}
    <${NodeScores} scores=${whole?.scores} />
    <${NodeHour} name=${name} node=${node} />
    <${Part} title=${t("Workers")}><${NodeWorkers} name=${name} /><//>
    <${Part} title=${t("Links")} note=${ours.length}>
      <${Rows} caption=${t("Links")} columns=${linkColumns()} items=${ours} keyOf=${key} usual="link"
        empty=${t("No link leads to it.")} />
    <//>
  `;
}
