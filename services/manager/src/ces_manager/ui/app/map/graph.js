/**
 * What is drawn: vertices (a node, a switch, a group of nodes as one) and edges (a directed link, or all links from one
 * group to another as one). Pure.
 */
import { capacityOf } from "../live.js";
import { nodeStates } from "../parts/network.js";
import { isFolded } from "./view.js";

/** @typedef {import("../live.js").Item} Item */
/** @typedef {import("./view.js").View} View */
/** @typedef {[number, number]} Place in units of the map */
/**
 * @typedef {object} Vertex
 * @property {string} key a node's name, or `label=value` of a group
 * @property {string} name what is written below it
 * @property {"node" | "switch" | "absent" | "group" | "task"} kind absent: a link names it, and no such node has joined; task: of a job without a place
 * @property {string} state the worst of its states
 * @property {string[]} members names of its nodes; one unless it is a group
 * @property {number} ill how many of them are not ready
 * @property {number} x
 * @property {number} y
 * @property {number | null} allocated of what the rings tell, 0 to 1; null without capacity
 * @property {number | null} used
 * @property {Edge[]} out
 * @property {Edge[]} in
 */
/**
 * @typedef {object} Edge
 * @property {string} key `src>dst` of its ends' keys
 * @property {Vertex} from
 * @property {Vertex} to
 * @property {number} capacity in bit/s, as the others
 * @property {number} reserved
 * @property {number} used
 * @property {number} down how many of its links are down
 * @property {Item[]} links one unless an end is a group
 * @property {Edge | null} twin the way back
 */
/** @typedef {{name: string, bandwidth: number, reserved: number, used: number, edges: Edge[]}} Medium */
/** @typedef {{value: string, folded: boolean, members: Vertex[]}} Area nodes that share a label's value */
/**
 * @typedef {object} Graph
 * @property {Map<string, Vertex>} vertices
 * @property {Map<string, Edge>} edges
 * @property {Map<string, Medium>} media
 * @property {Map<string, Area>} areas by value; empty where nodes are not grouped
 * @property {Map<string, Vertex[]>} sites nodes by their site, which name parts of a large map from afar
 * @property {Map<string, Vertex>} vertexOf by a node's name: its own vertex, or its group's
 */
/** @typedef {{nodes: Map<string, Item>, links: Map<string, Item>, media: Map<string, number>}} Cluster */

/** The label whose nodes are laid out near each other, and which names parts of a large map. */
export const SITE = "site";
// The worst first: what a sign can say of several states.
const WORST = ["unreachable", "contested", "reclaimed", "cordoned"];

/** @param {Item} node @returns {string} the state by whose sign it is drawn */
export function worstState(node) {
  const states = nodeStates(node);
  return WORST.find((each) => states.includes(each)) ?? "ready";
}

/** @param {Item | undefined} node @returns {boolean} whether it forwards only */
export const isSwitch = (node) => Boolean(node) && !node?.cpu && !node?.memory;

/** @param {Cluster} cluster @returns {Set<string>} nodes, and ends of links that have not joined */
export function namesOf({ nodes, links }) {
  const names = new Set(nodes.keys());
  for (const link of links.values()) names.add(link.src).add(link.dst);
  return names;
}

/** @param {Map<string, Item>} links @param {string} start @param {number} hops @returns {Set<string>} names at most so far away */
export function within(links, start, hops) {
  /** @type {Map<string, string[]>} */
  const beside = new Map();
  for (const { src, dst } of links.values()) {
    for (const [one, other] of [[src, dst], [dst, src]]) {
      const known = beside.get(one);
      if (known) known.push(other);
      else beside.set(one, [other]);
    }
  }
  const found = new Set([start]);
  let edge = [start];
  for (let hop = 0; hop < hops && edge.length; hop++) {
    edge = edge.flatMap((name) => beside.get(name) ?? []).filter((name) => !found.has(name) && found.add(name));
  }
  return found;
}

/**
 * @param {Cluster} cluster
 * @param {Map<string, Place>} places nodes without one are left out
 * @param {View} view
 * @param {Iterable<string>} [seen] names that are drawn; as the view asks for where left out
 * @returns {Graph}
 */
export function graphOf({ nodes, links, media }, places, view, seen = view.around ? within(links, view.around, view.hops) : namesOf({ nodes, links, media })) {
  /** @type {Graph} */
  const graph = { vertices: new Map(), edges: new Map(), media: new Map(), areas: new Map(), sites: new Map(), vertexOf: new Map() };
  for (const name of seen) {
    const place = places.get(name);
    if (place) addNode(graph, name, nodes.get(name), place, view);
  }
  for (const vertex of graph.vertices.values()) if (vertex.kind === "group") sumUp(vertex, nodes, view.rings);
  for (const link of links.values()) addLink(graph, link);
  for (const edge of graph.edges.values()) edge.twin = graph.edges.get(`${edge.to.key}>${edge.from.key}`) ?? null;
  addLoads(graph, links, media);
  return graph;
}

/** @param {Graph} graph @param {string} name @param {Item | undefined} node @param {Place} place @param {View} view */
function addNode(graph, name, node, [x, y], view) {
  const value = view.by ? node?.labels?.[view.by] : undefined;
  const folded = value !== undefined && isFolded(value, view);
  const key = folded ? `${view.by}=${value}` : name;
  let vertex = graph.vertices.get(key);
  if (!vertex) {
    vertex = {
      key, name: folded ? value : name, kind: folded ? "group" : !node ? "absent" : isSwitch(node) ? "switch" : "node",
      state: node ? worstState(node) : "absent", members: [], ill: 0, x, y, allocated: null, used: null, out: [], in: [],
    };
    graph.vertices.set(key, vertex);
    if (node && !folded) measure(vertex, [node], view.rings);
  }
  vertex.members.push(name);
  graph.vertexOf.set(name, vertex);
  if (folded) {
    // A group lies in the middle of its nodes.
    vertex.x += (x - vertex.x) / vertex.members.length;
    vertex.y += (y - vertex.y) / vertex.members.length;
  }
  const site = node?.labels?.[SITE];
  if (!folded && site !== undefined) {
    const known = graph.sites.get(site);
    if (known) known.push(vertex);
    else graph.sites.set(site, [vertex]);
  }
  if (value === undefined) return;
  const area = graph.areas.get(value);
  if (!area) graph.areas.set(value, { value, folded, members: [vertex] });
  else if (!folded) area.members.push(vertex);
}

/** @param {Vertex} vertex @param {Item[]} nodes @param {"cpu" | "memory" | "gpu"} what */
function measure(vertex, nodes, what) {
  const sum = (/** @type {string} */ field) => nodes.reduce((total, node) => total + (node[field] ?? 0), 0);
  const whole = sum(what);
  vertex.ill = nodes.filter((node) => worstState(node) !== "ready").length;
  if (!whole) return;
  vertex.allocated = sum(`${what}_allocated`) / whole;
  // What GPUs are used for is not measured.
  vertex.used = nodes.some((node) => node[`${what}_used`] != null) ? sum(`${what}_used`) / whole : null;
}

/** @param {Vertex} group @param {Map<string, Item>} nodes @param {"cpu" | "memory" | "gpu"} what */
function sumUp(group, nodes, what) {
  const found = group.members.map((name) => nodes.get(name)).filter((node) => node !== undefined);
  measure(group, found, what);
  const states = new Set(found.map(worstState));
  group.state = WORST.find((each) => states.has(each)) ?? "ready";
}

/** @param {Graph} graph @param {Item} link */
function addLink(graph, link) {
  const from = graph.vertexOf.get(link.src);
  const to = graph.vertexOf.get(link.dst);
  if (!from || !to || from === to) return;
  const key = `${from.key}>${to.key}`;
  let edge = graph.edges.get(key);
  if (!edge) {
    edge = { key, from, to, capacity: 0, reserved: 0, used: 0, down: 0, links: [], twin: null };
    graph.edges.set(key, edge);
    from.out.push(edge);
    to.in.push(edge);
  }
  edge.links.push(link);
  edge.capacity += capacityOf(link);
  edge.reserved += link.reserved;
  edge.used += link.used ?? 0;
  if (link.state !== "up") edge.down++;
  if (!link.medium) return;
  let medium = graph.media.get(link.medium);
  if (!medium) graph.media.set(link.medium, (medium = { name: link.medium, bandwidth: 0, reserved: 0, used: 0, edges: [] }));
  if (medium.edges.at(-1) !== edge) medium.edges.push(edge);
}

/** Links that are not drawn load a medium as well. @param {Graph} graph @param {Map<string, Item>} links @param {Map<string, number>} media */
function addLoads(graph, links, media) {
  for (const [name, medium] of graph.media) medium.bandwidth = media.get(name) ?? 0;
  for (const link of links.values()) {
    const medium = link.medium && graph.media.get(link.medium);
    if (!medium) continue;
    medium.reserved += link.reserved;
    medium.used += link.used ?? 0;
  }
}

/** @param {Graph} graph @param {import("./view.js").Selection | null} selection @returns {Vertex | undefined} the selected node, or what it is drawn as */
export function selectedVertex(graph, selection) {
  if (selection?.kind === "node") return graph.vertexOf.get(selection.key);
  if (selection?.kind === "group") return [...graph.vertices.values()].find(({ kind, name }) => kind === "group" && name === selection.key);
  return undefined;
}

/** @param {Map<string, Item>} nodes @returns {{key: string, values: number}[]} labels by which nodes can be grouped, the most common first */
export function labelKeys(nodes) {
  /** @type {Map<string, {count: number, values: Set<string>}>} */
  const found = new Map();
  for (const { labels } of nodes.values()) {
    for (const [key, value] of Object.entries(labels ?? {})) {
      const known = found.get(key) ?? { count: 0, values: new Set() };
      found.set(key, known);
      known.count++;
      known.values.add(String(value));
    }
  }
  const order = [...found].sort(([one, a], [other, b]) => b.count - a.count || one.localeCompare(other));
  return order.map(([key, { values }]) => ({ key, values: values.size }));
}
