/** What the map draws, made from the live picture, the places of nodes and the address. */
import { computed, signal } from "../../vendor/signals.js";
import { jobs, links, media, nodes } from "../live.js";
import { address } from "../main.js";
import { matches } from "../parts/filter.js";
import { nodeStates } from "../parts/network.js";
import { graphOf } from "./graph.js";
import { flowKey, lightPath } from "./light.js";
import { places } from "./places.js";
import { structure, view } from "./view.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./paint.js").Light} Light */
/** @typedef {import("./light.js").Flow} Flow */

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

/** What stands out: a job's nodes and paths, or what was looked for. @type {import("../../vendor/signals.js").ReadonlySignal<Light | null>} */
export const light = computed(() => {
  const { job, flow } = view.value;
  const of = graph.value;
  if (job) {
    /** @type {Light} */
    const lit = { vertices: new Set(), edges: new Map() };
    const shown = flows.value.filter((each) => !flow || flow === flowKey(each));
    for (const name of flow ? [] : (jobs.value.get(job)?.nodes ?? [])) {
      const vertex = of.vertexOf.get(name);
      if (vertex) lit.vertices.add(vertex);
    }
    for (const each of shown) lightPath(of, each, lit);
    return lit;
  }
  return found.value && { vertices: new Set(found.value), edges: new Map() };
});
