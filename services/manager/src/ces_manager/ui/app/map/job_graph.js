/**
 * What is drawn of one job: its tasks on their nodes, its flows as arrows, and the nodes that refused them. A job without a
 * place is a graph of its tasks and flows alone. Pure.
 */
import { flowKey, lightPath } from "./light.js";
import { APART } from "./placement.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./graph.js").Place} Place */
/** @typedef {import("./light.js").Flow} Flow */
/** @typedef {import("./paint.js").Light} Light */
/** @typedef {{name: string, node: string | null}} Task */
/** @typedef {{key: string, from: Vertex, to: Vertex, rank: number, short: boolean, state: "plain" | "chosen" | "back"}} Arrow `rank`: which one of those between the same two */
/** @typedef {{task: string, why: string, lacks: import("../parts/amounts.js").Lack[]}} Refusal of a node for a task */
/** @typedef {{text: string, quiet: boolean}} Note below a node's name */

const NAMED = 3; // tasks below a node's name; the others are counted

/** @param {Task[]} tasks @returns {boolean} whether any has a node */
export const isPlaced = (tasks) => tasks.some(({ node }) => node);

/** @param {Task[]} tasks @param {Flow[]} flows @param {Iterable<string>} others such as nodes that refused @returns {string[]} the nodes that are drawn */
export function nodesOf(tasks, flows, others) {
  const found = new Set(others);
  for (const { node } of tasks) if (node) found.add(node);
  for (const { path } of flows) for (const name of path) found.add(name);
  return [...found].sort();
}

/** @param {string[]} names @returns {Map<string, Place>} on a ring that is wider than high, as pictures are */
export function ringOf(names) {
  const radius = Math.max(APART, (names.length * APART) / (2 * Math.PI));
  return new Map(
    names.map((name, index) => {
      const angle = (2 * Math.PI * index) / names.length - Math.PI / 2;
      return /** @type {[string, Place]} */ ([name, names.length > 1 ? [1.6 * radius * Math.cos(angle), radius * Math.sin(angle)] : [0, 0]]);
    }),
  );
}

/** @param {Task[]} tasks @param {Flow[]} flows @returns {Graph} of a job that has no place */
export function taskGraph(tasks, flows) {
  /** @type {Graph} */
  const graph = { vertices: new Map(), edges: new Map(), media: new Map(), areas: new Map(), sites: new Map(), vertexOf: new Map() };
  for (const [name, [x, y]] of ringOf(taskNames(tasks, flows))) {
    /** @type {Vertex} */
    const vertex = { key: name, name, kind: "task", state: "ready", members: [name], ill: 0, x, y, allocated: null, used: null, out: [], in: [] };
    graph.vertices.set(name, vertex);
    graph.vertexOf.set(name, vertex);
  }
  return graph;
}

/** @param {Task[]} tasks @param {Flow[]} flows @returns {string[]} what a graph of tasks alone names: `@node` where data is read */
export const taskNames = (tasks, flows) => [...new Set([...tasks.map(({ name }) => name), ...flows.flatMap(({ src, dst }) => [src, dst])])];

/**
 * Flows as arrows from end to end; one within a node has none.
 * @param {Graph} graph @param {Flow[]} flows @param {string} chosen key of a flow, or empty
 * @returns {Arrow[]} the chosen one last, above the others
 */
export function arrowsOf(graph, flows, chosen) {
  /** @type {Map<string, number>} */
  const between = new Map();
  /** @type {Arrow[]} */
  const found = [];
  for (const flow of flows) {
    const [start, end] = flow.path.length ? [flow.path[0], flow.path[flow.path.length - 1]] : [flow.src, flow.dst];
    const [from, to] = [graph.vertexOf.get(start), graph.vertexOf.get(end)];
    if (!from || !to || from === to) continue;
    const pair = `${from.key}>${to.key}`;
    const rank = between.get(pair) ?? 0;
    between.set(pair, rank + 1);
    const key = flowKey(flow);
    found.push({ key, from, to, rank, short: Boolean(flow.shortfall), state: !chosen ? "plain" : key === chosen ? "chosen" : "back" });
  }
  return found.sort((one, other) => Number(one.state === "chosen") - Number(other.state === "chosen"));
}

/** @param {Graph} graph @param {Task[]} tasks @param {Flow[]} flows @param {string} chosen key of a flow, or empty for all @returns {Light} */
export function jobLight(graph, tasks, flows, chosen) {
  /** @type {Light} */
  const light = { vertices: new Set(), edges: new Map() };
  for (const { node } of tasks) {
    const vertex = node && graph.vertexOf.get(node);
    if (vertex) light.vertices.add(vertex);
  }
  for (const flow of flows) if (!chosen || flowKey(flow) === chosen) lightPath(graph, flow, light);
  return light;
}

/** @param {Task[]} tasks @returns {Map<string, string[]>} node -> its tasks */
export function tasksByNode(tasks) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const { name, node } of tasks) if (node) found.set(node, [...(found.get(node) ?? []), name]);
  return found;
}

/** @param {Task[]} tasks @param {Iterable<string>} refused nodes that no task may use @param {string} word what is said of those @returns {Map<string, Note>} */
export function notesOf(tasks, refused, word) {
  /** @type {Map<string, Note>} */
  const notes = new Map([...refused].map((node) => [node, { text: word, quiet: true }]));
  for (const [node, names] of tasksByNode(tasks)) {
    const more = names.length - NAMED;
    notes.set(node, { text: names.slice(0, NAMED).join(", ") + (more > 0 ? ` +${more}` : ""), quiet: false });
  }
  return notes;
}

/** @param {Record<string, Record<string, string>>} refused task -> node -> why not @param {import("../parts/amounts.js").Lacking} lacking @returns {Map<string, Refusal[]>} by node */
export function refusalsByNode(refused, lacking) {
  /** @type {Map<string, Refusal[]>} */
  const found = new Map();
  for (const [task, nodes] of Object.entries(refused)) for (const [node, why] of Object.entries(nodes)) found.set(node, [...(found.get(node) ?? []), { task, why, lacks: lacking[task]?.[node] ?? [] }]);
  return found;
}
