/** Asks the worker for places, and takes what it finds. */
import { trustedScript } from "./trusted.js";

/** @typedef {import("./graph.js").Place} Place */

const ADDRESS = new URL("layout_worker.js", import.meta.url).href;

/**
 * Compute places for all names that have none. The same names, links and groups always lead to the same places.
 * @param {string[]} given names, in any order
 * @param {Iterable<import("../live.js").Item>} links
 * @param {(name: string) => string | undefined} groupOf nodes of one group lie near each other
 * @param {Map<string, Place>} fixed
 * @param {object} options
 * @param {boolean} options.watched whether intermediate places are wanted
 * @param {(places: Map<string, Place>, done: boolean) => void} options.found
 * @param {() => void} options.failed
 * @returns {() => void} gives up
 */
export function computePlaces(given, links, groupOf, fixed, { watched, found, failed }) {
  const worker = new Worker(/** @type {any} */ (trustedScript(ADDRESS)), { type: "module" });
  const names = [...given].sort(); // their order decides where they begin
  const index = new Map(names.map((name, at) => [name, at]));
  const pairs = new Map(); // a wire is two links, and pulls once
  for (const { src, dst } of links) {
    const [one, other] = [index.get(src), index.get(dst)];
    if (one !== undefined && other !== undefined && one !== other) pairs.set(Math.min(one, other) * names.length + Math.max(one, other), [one, other]);
  }
  const groups = new Map();
  const places = new Float64Array(2 * names.length).fill(NaN);
  names.forEach((name, at) => places.set(fixed.get(name) ?? [NaN, NaN], 2 * at));
  worker.onmessage = ({ data }) => {
    found(new Map(names.map((name, at) => [name, [data.places[2 * at], data.places[2 * at + 1]]])), data.done);
    if (data.done) worker.terminate();
  };
  worker.onerror = (event) => {
    event.preventDefault();
    worker.terminate();
    failed();
  };
  worker.postMessage({
    nodes: names.length,
    links: Uint32Array.from([...pairs].sort(([a], [b]) => a - b).flatMap(([, ends]) => ends.sort((a, b) => a - b))),
    groups: Int32Array.from(names, (name) => {
      const group = groupOf(name);
      if (group === undefined) return -1;
      if (!groups.has(group)) groups.set(group, groups.size);
      return groups.get(group);
    }),
    places,
    watched,
  });
  return () => worker.terminate();
}
