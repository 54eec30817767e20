/** What is drawn, in words: beside the pointer, for those who do not see it, and as the canvas's description. */
import { links, nodes } from "../live.js";
import { capacityText, nodeStates } from "../parts/network.js";
import { cpu, memory, percent, plain, rate, t, tn } from "../show.js";
import { selectedVertex } from "./graph.js";
import { neighboursOf } from "./steps.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./view.js").View} View */
/** @typedef {import("./view.js").Selection} Selection */
/** @typedef {import("../live.js").Item} Item */

/** @type {Record<string, {name: () => string, text: (n: number) => string}>} what rings may tell */
export const RINGS = {
  cpu: { name: () => t("CPU"), text: cpu },
  memory: { name: () => t("Memory"), text: memory },
  gpu: { name: () => t("GPU"), text: String },
};

/** @param {Item} node @param {View["rings"]} what @returns {string} */
function amountText(node, what) {
  const { name, text } = RINGS[what];
  if (!node[what]) return t("{what}: none", { what: name() });
  const values = { what: name(), committed: text(node[`${what}_allocated`]), whole: text(node[what]) };
  const used = node[`${what}_used`];
  return used == null ? t("{what}: {committed} of {whole} allocated", values) : t("{what}: {committed} of {whole} allocated, {used} used", { ...values, used: text(used) });
}

/** @param {Selection} selection @param {Graph} graph @param {View} view @returns {string[]} its name, and what is to be said of it */
export function describe(selection, graph, view) {
  const { kind, key } = selection;
  if (kind === "node") {
    const node = nodes.peek().get(key);
    const vertex = graph.vertices.get(key);
    const count = vertex ? tn(neighboursOf(vertex).size, "1 neighbour", "{n} neighbours") : "";
    if (!node) return [plain(key), t("not joined"), count];
    const amount = vertex?.kind === "switch" ? t("a switch, without capacity") : amountText(node, view.rings);
    return [plain(key), nodeStates(node).map((state) => t(state)).join(", "), amount, count].filter(Boolean);
  }
  if (kind === "group") {
    const vertex = selectedVertex(graph, selection);
    const size = vertex?.members.length ?? graph.areas.get(key)?.members.length ?? 0;
    const said = [`${plain(view.by)} ${plain(key)}`, tn(size, "1 node", "{n} nodes")];
    if (vertex?.ill) said.push(tn(vertex.ill, "1 is not well", "{n} are not well"));
    if (vertex && vertex.allocated !== null) said.push(t("{what}: {share} allocated", { what: RINGS[view.rings].name(), share: percent(vertex.allocated, 1) }));
    return said;
  }
  if (kind === "medium") {
    const medium = graph.media.get(key);
    return medium ? [plain(key), t("{reserved} of {capacity} reserved", { reserved: rate(medium.reserved), capacity: rate(medium.bandwidth) }), t("{used} used", { used: rate(medium.used) })] : [plain(key)];
  }
  return linkText(key, graph);
}

/** @param {string} key @param {Graph} graph @returns {string[]} */
function linkText(key, graph) {
  const edge = graph.edges.get(key);
  const link = links.peek().get(key);
  const title = plain(key.split(">").join(" › "));
  if (!edge || (edge.links.length === 1 && edge.down)) return [title, link ? t(link.state) : "", plain(link?.reason ?? "")].filter(Boolean);
  const capacity = edge.links.length === 1 ? capacityText(edge.links[0]) : rate(edge.capacity);
  const said = [title, t("{reserved} of {capacity} reserved", { reserved: rate(edge.reserved), capacity }), t("{used} used", { used: rate(edge.used) })];
  if (edge.links.length > 1) said.push(tn(edge.links.length, "1 link", "{n} links"));
  if (edge.down) said.push(tn(edge.down, "1 is down", "{n} are down"));
  return said;
}

/** @param {Graph} graph @returns {string} what the canvas is called */
export function canvasName(graph) {
  const count = [...graph.vertices.values()].reduce((sum, { members }) => sum + members.length, 0);
  const all = [...graph.edges.values()].reduce((sum, edge) => sum + edge.links.length, 0);
  return t("Map: {nodes}, {links}", { nodes: tn(count, "1 node", "{n} nodes"), links: tn(all, "1 link", "{n} links") });
}
