/**
 * Where nodes lie. What was saved at the manager counts for everybody; what somebody arranged in this browser counts
 * before it, here; what was computed fills in what is missing. All of it stays where it is when a node is added.
 */
import { batch, effect, signal } from "../../vendor/signals.js";
import { call } from "../client.js";
import { links, nodes, pictureAt } from "../live.js";
import { namesOf, SITE } from "./graph.js";
import { computePlaces } from "./layout.js";
import { newcomers } from "./placement.js";

/** @typedef {import("./graph.js").Place} Place */
/** @typedef {Map<string, Place>} Places */
/** @template T @typedef {import("../../vendor/signals.js").Signal<T>} Signal */

const KEPT = "ces.map";
const MOST_KEPT = 5000; // nodes whose places this browser keeps
const AT_ONCE = 10000; // places in one request
const FRESH_MS = 5000;

/** @type {Signal<Places>} of every node that can be drawn */
export const places = signal(new Map());
/** @type {Signal<Places | null>} as the manager keeps them; null until it has answered */
export const saved = signal(/** @type {Places | null} */ (null));
/** @type {Signal<Places>} arranged here, and not saved */
export const arranged = signal(new Map());
/** Whether places are being computed. */
export const settling = signal(false);
/** Why places could not be asked for or computed. */
export const placesProblem = signal(/** @type {any} */ (null));

/** @type {Places} in this browser */
let computed = new Map();
let giveUp = () => {};
let keeping = true; // what is computed
let asked = -Infinity;

/** @param {Place} place @returns {Place} */
const rounded = ([x, y]) => [Math.round(x * 10) / 10, Math.round(y * 10) / 10];

/** Read what this browser keeps: `[x, y]`, or `[x, y, 1]` where somebody put the node there. */
function remember() {
  const [found, byHand] = [new Map(), new Map()];
  try {
    for (const [name, [x, y, hand]] of Object.entries(JSON.parse(localStorage.getItem(KEPT) ?? "{}"))) {
      if (Number.isFinite(x) && Number.isFinite(y)) (hand ? byHand : found).set(name, [x, y]);
    }
  } catch {
    // Somebody else's, or an older version's: places are computed again.
  }
  computed = found;
  arranged.value = byHand;
}

function keep() {
  if (!keeping) return;
  const known = namesOf({ nodes: nodes.peek(), links: links.peek(), media: new Map() });
  const all = [...[...arranged.peek()].map(([name, place]) => /** @type {const} */ ([name, [...place, 1]])), ...computed];
  const kept = all.filter(([name]) => known.has(name)).slice(0, MOST_KEPT);
  try {
    localStorage.setItem(KEPT, JSON.stringify(Object.fromEntries(kept.reverse()))); // what was arranged wins
  } catch {
    // The browser keeps nothing, or has no room: the same places are computed next time.
  }
}

/** Ask the manager for the places that it keeps, unless that was just done. @returns {Promise<void>} */
export async function askPlaces() {
  if (performance.now() - asked < FRESH_MS) return;
  asked = performance.now();
  try {
    const { positions } = await call("/v1/layout");
    saved.value = new Map(Object.entries(positions));
  } catch (/** @type {any} */ problem) {
    if (problem.status !== 404) placesProblem.value = problem;
    saved.value = new Map();
  }
}

/** @param {Iterable<string>} names @returns {Places} of those whose place is known */
function known(names) {
  const manager = saved.value;
  const byHand = arranged.value;
  /** @type {Places} */
  const found = new Map();
  for (const name of names) {
    const place = byHand.get(name) ?? manager?.get(name) ?? computed.get(name);
    if (place) found.set(name, place);
  }
  return found;
}

/** Give every node a place that has none. */
function settle() {
  const manager = saved.value;
  const cluster = { nodes: nodes.value, links: links.value, media: new Map() };
  if (!manager || settling.value) return;
  const names = [...namesOf(cluster)];
  const there = known(names);
  const before = places.peek();
  if (there.size === names.length) {
    if (before.size !== there.size || names.some((name) => before.get(name) !== there.get(name))) places.value = there;
  } else if (2 * there.size >= names.length) {
    const found = newcomers(names, cluster.links.values(), there);
    for (const [name, place] of found) computed.set(name, rounded(place));
    places.value = new Map([...there, ...[...found.keys()].map((name) => /** @type {[string, Place]} */ ([name, /** @type {Place} */ (computed.get(name))]))]);
    keep();
  } else {
    compute(names, there, (found) => (computed = new Map([...computed, ...found])));
  }
}

/** @param {string[]} names @param {Places} fixed @param {(found: Places) => void} take */
function compute(names, fixed, take) {
  settling.value = true;
  giveUp();
  giveUp = computePlaces(names, links.peek().values(), (name) => nodes.peek().get(name)?.labels?.[SITE], fixed, {
    watched: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    found: (found, done) => {
      if (!done) return void (places.value = found);
      batch(() => {
        take(new Map([...found].map(([name, place]) => [name, rounded(place)])));
        settling.value = false;
      });
      keep();
    },
    failed: () => {
      // Without a worker, they are placed one beside the other.
      batch(() => {
        take(new Map([...newcomers(names, links.peek().values(), fixed)].map(([name, place]) => [name, rounded(place)])));
        settling.value = false;
      });
    },
  });
}

/**
 * Follow nodes and links from now on.
 * @param {boolean} [kept] whether this browser keeps what is computed; not for a past with other nodes than today's
 * @returns {() => void} ends it
 */
export function beginPlaces(kept = true) {
  keeping = kept;
  remember();
  askPlaces();
  const end = effect(settle);
  return () => {
    end();
    giveUp();
    settling.value = false;
  };
}

/**
 * Places of all nodes as on the map, which is laid out for it where it has not been.
 * @param {(found: Places) => void} take called once they are known, and when one has changed
 * @returns {() => void} ends it
 */
export function followPlaces(take) {
  const end = beginPlaces();
  const stop = effect(() => {
    const names = namesOf({ nodes: nodes.value, links: links.value, media: new Map() });
    const whole = saved.value && pictureAt.value && !settling.value;
    if (whole && [...names].every((name) => places.value.has(name))) take(places.value);
  });
  return () => {
    stop();
    end();
  };
}

/** Put nodes somewhere, in this browser. @param {Places} there */
export function arrange(there) {
  arranged.value = new Map([...arranged.value, ...[...there].map(([name, place]) => /** @type {[string, Place]} */ ([name, rounded(place)]))]);
  keep();
}

/** Compute all places again, in this browser. */
export function arrangeAgain() {
  compute([...namesOf({ nodes: nodes.peek(), links: links.peek(), media: new Map() })], new Map(), (found) => (arranged.value = found));
}

/** Forget what was arranged here. */
export function forgetArranged() {
  arranged.value = new Map();
  keep();
}

/** @returns {Places} places that the manager does not know */
export function unsaved() {
  const manager = saved.value ?? new Map();
  return new Map([...places.value].filter(([name, [x, y]]) => manager.get(name)?.[0] !== x || manager.get(name)?.[1] !== y));
}

/** Save all places for everybody. @returns {Promise<void>} */
export async function savePlaces() {
  const now = [...unsaved()];
  for (let start = 0; start < now.length; start += AT_ONCE) {
    await call("/v1/layout", { method: "PUT", body: { positions: Object.fromEntries(now.slice(start, start + AT_ONCE)) } });
  }
  batch(() => {
    saved.value = new Map([...(saved.value ?? []), ...now]);
    arranged.value = new Map();
  });
  keep();
}
