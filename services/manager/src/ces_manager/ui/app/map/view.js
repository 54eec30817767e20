/**
 * What the map shows, read from its address, and addresses that show something else. The page keeps nothing of it for
 * itself: whoever gets the address sees the same.
 */
import { computed } from "../../vendor/signals.js";
import { address } from "../main.js";

/** @typedef {"node" | "link" | "medium" | "group" | "flow"} Kind flow: of the job that is drawn */
/** @typedef {{kind: Kind, key: string}} Selection `key`: a name, or `src>dst` of a link */
/**
 * @typedef {object} View
 * @property {Selection | null} selection
 * @property {string} around the node around which links are followed; empty for the whole map
 * @property {number} hops how far
 * @property {string} by label key by which nodes are grouped
 * @property {Set<string>} folded values of that label whose nodes are drawn as one; `*` for all
 * @property {string} job whose nodes and paths are lit
 * @property {string} flow of that job, as `src>dst` of its tasks; empty for all
 * @property {"cpu" | "memory" | "gpu"} rings what the rings of nodes tell
 * @property {boolean} table whether the picture is shown as a table
 */

export const FARTHEST = 6; // hops
export const ALL = "*";
/** @type {Kind[]} */
const KINDS = ["node", "link", "medium", "group"];

/** @param {URLSearchParams} query @returns {View} */
export function viewOf(query) {
  const kind = KINDS.find((each) => query.get(each));
  const rings = query.get("rings");
  return {
    selection: kind ? { kind, key: query.get(kind) ?? "" } : null,
    around: query.get("around") ?? "",
    hops: Math.min(FARTHEST, Math.max(1, Math.trunc(Number(query.get("hops"))) || 1)),
    by: query.get("by") ?? "",
    folded: new Set(query.getAll("fold")),
    job: query.get("job") ?? "",
    flow: query.get("flow") ?? "",
    rings: rings === "memory" || rings === "gpu" ? rings : "cpu",
    table: query.get("as") === "table",
  };
}

/** What the address asks for. */
export const view = computed(() => viewOf(address.value.query));

/** The part of it by which the graph is built: selecting something builds nothing again. */
export const structure = computed(() => {
  const { around, hops, by, folded, rings } = view.value;
  return JSON.stringify([around, around && hops, by, by && [...folded].sort(), rings]);
});

/** Where the map is: on its own page, or in a replay. */
const page = () => (address.value.path[0] === "replay" ? "replay" : "map");

/** @param {Record<string, string | string[] | null>} changes null leaves a parameter out @returns {string} an address */
export function viewHref(changes) {
  const query = new URLSearchParams(address.value.query);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of value === null ? [] : [value].flat()) query.append(name, each);
  }
  return `#/${page()}?${query}`.replace(/\?$/, "");
}

/** Show something else, without a step in the history. @param {Record<string, string | string[] | null>} changes */
export const show = (changes) => location.replace(viewHref(changes));

/** @param {Selection | null} selection @returns {Record<string, string | null>} what selects it, and nothing else */
export const selecting = (selection) => ({ node: null, link: null, medium: null, group: null, ...(selection && { [selection.kind]: selection.key }) });

/** @param {Selection | null} one @param {Selection | null} other */
export const same = (one, other) => one?.kind === other?.kind && one?.key === other?.key;

/** @param {string} value of the label @param {View} of @returns {boolean} whether its nodes are drawn as one */
export const isFolded = (value, of) => of.folded.has(ALL) !== of.folded.has(value);

/** @param {string} value @param {View} of @returns {Record<string, string[]>} what folds or unfolds that group */
export function foldingOther(value, of) {
  const next = new Set(of.folded);
  if (!next.delete(value)) next.add(value);
  return { fold: [...next] };
}
