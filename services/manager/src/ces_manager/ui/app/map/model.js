/** What the map draws, made from the live picture, the places of nodes and the address. */
import { computed, signal } from "../../vendor/signals.js";
import { jobs, links, media, nodes } from "../live.js";
import { address } from "../main.js";
import { matches } from "../parts/filter.js";
import { nodeStates } from "../parts/network.js";
import { graphOf } from "./graph.js";
import { places } from "./places.js";
import { structure, view } from "./view.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./graph.js").Edge} Edge */
/** @typedef {import("./paint.js").Light} Light */
/** @typedef {{path: string[], src: string, dst: string, rate: number | null, shortfall?: {src: string, dst: string} | null}} Flow of the API's FlowRates what is drawn */

/** The whole of it, as the address asks for. */
export const graph = computed(() => {
  structure.value; // selecting something builds nothing again
  return graphOf({ nodes: nodes.value, links: links.value, media: media.value }, places.value, view.peek());
});

/** The flows of the job whose paths are lit, once they are known. */
export const flows = signal(/** @type {Flow[]} */ ([]));

const words = computed(() => (address.value.query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean).join(" "));

/** @param {Vertex} vertex @returns {string} what the filter looks at */
function textOf(vertex) {
  return vertex.members
    .map((name) => {
      const node = nodes.peek().get(name);
      return [name, ...(node ? nodeStates(node) : [vertex.kind === "absent" && "not joined"]), ...Object.entries(node?.labels ?? {}).map((pair) => pair.join("=")), node?.arch, ...(node?.datasets ?? [])].join(" ");
    })
    .join("\n");
}

/** Vertices that fit what was typed; null where nothing was. */
export const found = computed(() => {
  const typed = words.value.split(" ").filter(Boolean);
  return typed.length ? [...graph.value.vertices.values()].filter((vertex) => matches(typed, vertex, textOf)) : null;
});

/** @param {Graph} of @param {Flow} flow @param {Map<Edge, boolean>} edges @param {Set<Vertex>} vertices */
function lightPath(of, { path, shortfall }, edges, vertices) {
  path.forEach((name, index) => {
    const vertex = of.vertexOf.get(name);
    if (vertex) vertices.add(vertex);
    const before = index > 0 && of.vertexOf.get(path[index - 1]);
    const edge = vertex && before && of.edges.get(`${before.key}>${vertex.key}`);
    const short = shortfall?.src === path[index - 1] && shortfall?.dst === name;
    if (edge) edges.set(edge, short || Boolean(edges.get(edge)));
  });
}

/** What stands out: a job's nodes and paths, or what was looked for. @type {import("../../vendor/signals.js").ReadonlySignal<Light | null>} */
export const light = computed(() => {
  const { job, flow } = view.value;
  const of = graph.value;
  if (job) {
    /** @type {Light} */
    const lit = { vertices: new Set(), edges: new Map() };
    const shown = flows.value.filter(({ src, dst }) => !flow || flow === `${src}>${dst}`);
    for (const name of flow ? [] : (jobs.value.get(job)?.nodes ?? [])) {
      const vertex = of.vertexOf.get(name);
      if (vertex) lit.vertices.add(vertex);
    }
    for (const each of shown) lightPath(of, each, lit.edges, lit.vertices);
    return lit;
  }
  return found.value && { vertices: new Set(found.value), edges: new Map() };
});
