/** Nodes and links as cells of tables, alike on every page. */
import { capacityOf } from "../live.js";
import {
  Bars,
  cpu,
  DASH,
  html,
  href,
  language,
  memory,
  milliseconds,
  Name,
  percent,
  plain,
  rate,
  State,
  t,
  To,
} from "../show.js";

/** @typedef {import("../live.js").Item} Item */

/** @param {Item} node @returns {string[]} all that is to be said of it: its state, and whether it takes work */
export const nodeStates = (node) =>
  [node.state, node.cordoned && "cordoned", node.reclaimed && "reclaimed", node.warning && "contested"].filter(Boolean);

/** @param {{node: Item}} props */
export const NodeState = ({ node }) =>
  html`<span class="states">${nodeStates(node).map((state) => html`<${State} state=${state} /> `)}</span>`;

/** @param {{path: string[]}} props the names of its ends, or of a path's nodes */
export const PathName = ({ path }) =>
  path.length === 1
    ? t("within {node}", { node: plain(path[0]) })
    : path.map((node, index) => [index > 0 && " › ", html`<${Name}>${node}<//>`]);

/** @param {{link: {src: string, dst: string}}} props */
export const LinkTo = ({ link }) =>
  html`<a href=${href("links", link.src, link.dst)}><${PathName} path=${[link.src, link.dst]} /></a>`;

/** The state, and why a link is down. @param {{link: Item}} props */
export const LinkState = ({ link }) =>
  html`<${State} state=${link.state} />${
    link.state !== "up" &&
    link.reason &&
    html` <span class="why">(<bdi lang="en">
    ${plain(link.reason)}</bdi>)</span>`
  }`;

/** @param {Item} link @returns {string} with what is configured, where less was measured */
export const capacityText = (link) =>
  capacityOf(link) < link.bandwidth
    ? t("{measured} of {configured}", { measured: rate(link.measured), configured: rate(link.bandwidth) })
    : rate(link.bandwidth);

/** @param {number} used @param {number} whole @param {(n: any) => string} show @returns {string} */
const usedText = (used, whole, show) =>
  used > whole * 1.05
    ? t("the whole device uses {used}, also for what CES does not run", { used: show(used) })
    : t("uses {used}", { used: show(used) });

/** Bars above their numbers: what is committed of the whole, and what is used. */
export function Amount(
  /** @type {{whole: number, committed: number, used?: number | null, show: (n: any) => string}} */ {
    whole,
    committed,
    used,
    show,
  },
) {
  if (!whole) return html`<span class="quiet">${DASH}</span>`;
  return html`<div class="amount">
    <${Bars} whole=${whole} committed=${committed} used=${used} />
    <span class="numbers">${t("{committed} of {whole}", { committed: show(committed), whole: show(whole) })}
      ${used != null && html`<span class="used-text">${usedText(used, whole, show)}</span>`}</span>
  </div>`;
}

/** @returns {import("./rows.js").Column<Item>[]} of nodes; each item also has its `name` */
export function nodeColumns() {
  return [
    {
      id: "name",
      title: t("Node"),
      track: "minmax(9em, 1.2fr)",
      by: (node) => node.name,
      cell: (node) => html`<${To} path=${["nodes", node.name]}>${node.name}<//>`,
    },
    {
      id: "state",
      title: t("State"),
      track: "minmax(8em, 1fr)",
      by: (node) => nodeStates(node).join(" "),
      moves: true,
      cell: (node) => html`<${NodeState} node=${node} />`,
    },
    {
      id: "cpu",
      title: t("CPU"),
      track: "minmax(10em, 1.3fr)",
      by: (node) => (node.cpu ? node.cpu_allocated / node.cpu : -1),
      moves: true,
      cell: (node) =>
        html`<${Amount} whole=${node.cpu} committed=${node.cpu_allocated} used=${node.cpu_used} show=${cpu} />`,
    },
    {
      id: "memory",
      title: t("Memory"),
      track: "minmax(10em, 1.3fr)",
      by: (node) => (node.memory ? node.memory_allocated / node.memory : -1),
      moves: true,
      cell: (node) =>
        html`<${Amount} whole=${node.memory} committed=${node.memory_allocated} used=${node.memory_used}
          show=${memory} />`,
    },
    {
      id: "gpu",
      title: t("GPU"),
      track: "minmax(4em, .5fr)",
      by: (node) => node.gpu_allocated + node.gpu / 1e6,
      moves: true,
      cell: (node) => html`<${Amount} whole=${node.gpu} committed=${node.gpu_allocated} show=${String} />`,
    },
    {
      id: "arch",
      title: t("Architecture"),
      track: "minmax(5em, .6fr)",
      wide: true,
      by: (node) => node.arch,
      cell: (node) => node.arch || DASH,
    },
    {
      id: "runtime",
      title: t("Runtime"),
      track: "minmax(5em, .6fr)",
      wide: true,
      by: (node) => node.runtime,
      cell: (node) => node.runtime,
    },
    {
      id: "network",
      title: t("Network"),
      track: "minmax(4.5em, .5fr)",
      wide: true,
      by: (node) => node.network,
      cell: (node) => node.network,
    },
    {
      id: "labels",
      title: t("Labels"),
      full: true,
      track: "minmax(8em, 1.4fr)",
      wide: true,
      cell: (node) => html`<${Labels} labels=${node.labels} />`,
    },
  ];
}

/** @param {{labels: Record<string, string> | undefined}} props */
export const Labels = ({ labels = {} }) =>
  Object.keys(labels).length
    ? html`<span class="labels">${Object.entries(labels)
        .sort()
        .map(([key, value]) => html`<${Name}>${`${key}=${value}`}<//> `)}</span>`
    : DASH;

/** @param {number | null | undefined} value @returns {string} */
const count = (value) => (value == null ? DASH : value.toLocaleString(language.value));

/** @returns {import("./rows.js").Column<Item>[]} of links */
export function linkColumns() {
  const share = (/** @type {Item} */ link, /** @type {number} */ part) =>
    capacityOf(link) ? part / capacityOf(link) : 0;
  return [
    {
      id: "link",
      title: t("Link"),
      track: "minmax(10em, 1.6fr)",
      by: (link) => `${link.src} ${link.dst}`,
      cell: (link) => html`<${LinkTo} link=${link} />`,
    },
    {
      id: "state",
      title: t("State"),
      track: "minmax(6em, 1fr)",
      by: (link) => link.state,
      moves: true,
      cell: (link) => html`<${LinkState} link=${link} />`,
    },
    {
      id: "capacity",
      title: t("Capacity"),
      track: "minmax(6.5em, .8fr)",
      end: true,
      by: capacityOf,
      cell: capacityText,
    },
    {
      id: "reserved",
      title: t("Reserved"),
      track: "minmax(9em, 1fr)",
      end: true,
      by: (link) => share(link, link.reserved),
      moves: true,
      cell: (link) =>
        html`<div class="amount"><${Bars} whole=${capacityOf(link)} committed=${link.reserved} used=${link.used} />
          <span class="numbers">${rate(link.reserved)}
          ${link.reserved > 0 && ` (${percent(link.reserved, capacityOf(link))})`}</span></div>`,
    },
    {
      id: "flows",
      title: t("Flows"),
      track: "minmax(4em, .4fr)",
      end: true,
      by: (link) => link.flows ?? 0,
      moves: true,
      cell: (link) => count(link.flows ?? 0),
    },
    {
      id: "used",
      title: t("Used"),
      track: "minmax(6.5em, .7fr)",
      end: true,
      by: (link) => share(link, link.used ?? -1),
      moves: true,
      cell: (link) => rate(link.used),
    },
    {
      id: "drops",
      title: t("Dropped"),
      track: "minmax(5em, .5fr)",
      end: true,
      by: (link) => link.drops ?? -1,
      moves: true,
      cell: (link) => count(link.drops),
    },
    {
      id: "errors",
      title: t("Errors"),
      track: "minmax(4.5em, .4fr)",
      end: true,
      wide: true,
      by: (link) => link.errors ?? -1,
      moves: true,
      cell: (link) => count(link.errors),
    },
    {
      id: "rtt",
      title: t("Round trip"),
      track: "minmax(5.5em, .5fr)",
      end: true,
      by: (link) => link.round_trip_s ?? -1,
      moves: true,
      cell: (link) => milliseconds(link.round_trip_s),
    },
    {
      id: "kind",
      title: t("Kind"),
      track: "minmax(5em, .5fr)",
      wide: true,
      by: (link) => link.kind,
      cell: (link) => link.kind,
    },
    {
      id: "medium",
      title: t("Medium"),
      track: "minmax(5em, .6fr)",
      wide: true,
      by: (link) => link.medium ?? "",
      cell: (link) => (link.medium ? html`<${Name}>${link.medium}<//>` : DASH),
    },
  ];
}
