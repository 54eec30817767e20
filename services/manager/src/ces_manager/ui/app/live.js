/**
 * The live picture of the cluster: one stream per tab, from which every page is drawn. It is closed while the tab is
 * hidden, and resumed where it ended.
 */
import { useRef } from "../vendor/preact-hooks.js";
import { batch, computed, signal } from "../vendor/signals.js";
import { follow, session, SILENCE_S } from "./client.js";
import { clock, t, tn } from "./show.js";

/** @typedef {Record<string, any>} Item a record of the API's models, as docs/api.md has them */
/** @typedef {import("./client.js").Heard} Heard */
/** @template T @typedef {import("../vendor/signals.js").Signal<T>} Signal */

const HIDDEN_S = 5; // for which a hidden tab keeps its stream
const STALE_S = 10;
const STEADY_MS = 10000; // for which the busiest keep their places

/** @type {Signal<Map<string, Item>>} by name */
export const nodes = signal(new Map());
/** @type {Signal<Map<string, Item>>} by `src>dst`; each also has `src` and `dst` */
export const links = signal(new Map());
/** @type {Signal<Map<string, Item>>} by id: those that are not over, or still hold something */
export const jobs = signal(new Map());
/** @type {Signal<Map<string, Item>>} by number: flows whose link does not carry what they were given */
export const shortfalls = signal(new Map());
/** @type {Signal<Map<string, number>>} name -> bandwidth in bit/s */
export const media = signal(new Map());
/** @type {Signal<Map<string, number>>} state -> how many jobs, of all that are kept */
export const counts = signal(new Map());
/** The name of this cluster among others; empty where it is no region. */
export const region = signal("");
/** The number of the last event; 0 before the first picture. */
const lastEvent = signal(0);
/** When the manager made the last picture; empty before the first one. */
export const pictureAt = signal("");
/** What somebody who does not see the page should be told; the number makes repetitions differ. */
export const news = signal({ number: 0, text: "" });

/** The instant that is shown instead of now; empty while the picture is live. */
export const past = signal("");

/** Why the stream cannot be had, if the manager says why. */
export const trouble = signal(/** @type {any} */ (null));

const heardAt = signal(0); // performance.now() of the last picture
const state = signal("connecting"); // or open, waiting
const holders = signal(0); // pages that follow another stream instead
const ticks = signal(0);
let skewMs = 0; // of the manager's clock against this device's
/** @type {(() => void) | null} */
let closeLive = null;
let lastId = "";

/** How fresh the picture is: `live`, `resuming`, `stale`, before the first one `connecting`, or `past`. */
export const freshness = computed(() => {
  ticks.value;
  if (past.value) return { state: "past", seconds: 0 };
  if (!heardAt.value) return { state: "connecting", seconds: 0 };
  const seconds = Math.floor((performance.now() - heardAt.value) / 1000);
  if (seconds >= (holders.value ? SILENCE_S : STALE_S)) return { state: "stale", seconds };
  return { state: state.value === "open" ? "live" : "resuming", seconds };
});

// The picture -----------------------------------------------------------------------------------------------------

/** @param {Signal<Map<string, any>>} section @param {Record<string, any> | undefined} given @param {boolean} whole */
function take(section, given, whole) {
  if (!given && !whole) return;
  const next = new Map(whole ? [] : section.value);
  for (const [key, record] of Object.entries(given ?? {})) {
    if (record === null) next.delete(key);
    else if (typeof record === "object") next.set(key, { ...next.get(key), ...record });
    else next.set(key, record);
  }
  section.value = next;
}

/** Links know their ends. @param {Record<string, any> | undefined} given */
function withEnds(given) {
  for (const [key, record] of Object.entries(given ?? {})) {
    if (record) [record.src, record.dst] = key.split(">");
  }
  return given;
}

/** @param {Heard} frame */
function apply(frame) {
  // A comment proves a connection and no picture: the manager may be without its database.
  if (frame.type !== "keyframe" && frame.type !== "change") return;
  heardAt.value = performance.now();
  const data = JSON.parse(frame.data);
  lastId = frame.id || lastId;
  const whole = frame.type === "keyframe";
  if (whole) region.value = data.region ?? "";
  else announce(data);
  takeAll(data, whole);
  skewMs = Date.parse(data.at) - Date.now();
}

/** @param {any} data @param {boolean} whole */
function takeAll(data, whole) {
  batch(() => {
    take(nodes, data.nodes, whole);
    take(links, withEnds(data.links), whole);
    take(jobs, data.jobs, whole);
    take(shortfalls, data.shortfalls, whole);
    take(media, data.media, whole);
    take(counts, data.counts, whole);
    pictureAt.value = data.at;
    lastEvent.value = data.event;
  });
}

/** Nothing is known any more. */
function forget() {
  lastId = "";
  batch(() => {
    for (const section of [nodes, links, jobs, shortfalls, media, counts]) section.value = new Map();
    pictureAt.value = past.value = "";
    heardAt.value = lastEvent.value = 0;
  });
}

/**
 * Show the cluster as it was, on every page that is drawn from the picture, and count ages by that instant.
 * @param {any} state a PastState of the API
 */
export function showPast(state) {
  batch(() => {
    takeAll(state, true);
    past.value = state.at;
    clock.value = Date.parse(state.at);
  });
}

/** The picture is to be live again. */
export function leavePast() {
  forget();
  clock.value = Date.now() + skewMs;
}

/** Say what matters most of a change: what went down or came back, and jobs that failed. @param {any} data */
function announce(data) {
  const said = [];
  const states = (
    /** @type {Record<string, any>} */ section,
    /** @type {Signal<Map<string, any>>} */ before,
    /** @type {string} */ joint,
  ) =>
    Object.entries(section ?? {})
      .filter(([key, record]) => record?.state && before.value.get(key)?.state !== record.state)
      .map(([key, record]) => `${key.replace(">", joint)} ${t(record.state)}`);
  const moved = [...states(data.nodes, nodes, ""), ...states(data.links, links, " › ")];
  said.push(...moved.slice(0, 3));
  if (moved.length > 3) said.push(t("{n} more nodes and links changed", { n: moved.length - 3 }));
  const failed = (data.counts?.failed ?? 0) - (counts.value.get("failed") ?? 0);
  if (failed > 0) said.push(tn(failed, "1 job has failed", "{n} jobs have failed"));
  if (said.length) tell(said.join("; "));
}

/** Tell somebody who does not see the page. @param {string} text */
export function tell(text) {
  news.value = { number: news.value.number + 1, text };
}

/** @param {number | null} last @returns {number | null} how many events came after that one; null: not known yet */
export const eventsSince = (last) => (lastEvent.value ? Math.max(0, lastEvent.value - (last ?? 0)) : null);

/** @param {Item} link @returns {number} what it carries in bit/s: the lower of configured and measured capacity */
export const capacityOf = (link) => (link.measured == null ? link.bandwidth : Math.min(link.bandwidth, link.measured));

/** States of jobs in their usual order: of those under way, and of those that are over. */
export const UNDER_WAY = "queued planned preparing starting running elsewhere resizing rescheduling paused suspended".split(" ");
export const OVER = ["succeeded", "failed", "cancelled"];

/** @param {Item} job @returns {boolean} whether it waits for the scheduler to say that there is room */
export const waits = (job) => job.state === "queued" || job.state === "suspended";

/**
 * The keys of what is busiest. They keep their places for some seconds, so that rows can be read and clicked.
 * @param {Map<string, Item>} all @param {(item: Item) => number} busy @param {number} [most]
 */
export function useBusiest(all, busy, most = 8) {
  const kept = useRef({ at: 0, size: 0, keys: /** @type {string[]} */ ([]) });
  const { at, size } = kept.current;
  if (clock.value - at >= STEADY_MS || size !== all.size || kept.current.keys.some((key) => !all.has(key))) {
    const found = [...all]
      .map(([key, item]) => /** @type {const} */ ([key, busy(item)]))
      .filter(([, share]) => share > 0);
    found.sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
    kept.current = { at: clock.value, size: all.size, keys: found.slice(0, most).map(([key]) => key) };
  }
  return kept.current.keys;
}

// When it is open -------------------------------------------------------------------------------------------------

function settle() {
  const wanted =
    Boolean(session.value) && holders.value === 0 && (document.visibilityState === "visible" || closeLive !== null);
  if (wanted && !closeLive) {
    state.value = "connecting";
    const told = (/** @type {string} */ now, /** @type {any} */ problem) => {
      state.value = now;
      if (problem || now === "open") trouble.value = problem ?? null;
    };
    closeLive = follow("/v1/live", { last: lastId, heard: apply, told });
  } else if (!wanted && closeLive) {
    closeLive();
    closeLive = null;
    state.value = "waiting";
  }
}

/** Close the live stream while a page follows another one, so that a tab never has two. @returns {() => void} undo */
export function holdLive() {
  holders.value++;
  settle();
  return () => {
    holders.value--;
    settle();
  };
}

/** A stream that a page follows instead: what it hears says how fresh things are. @param {boolean} open */
export function heardElsewhere(open) {
  state.value = open ? "open" : "waiting";
  if (open) heardAt.value = performance.now();
}

/** Connect at once instead of after the rest of the pause. */
export function reconnect() {
  closeLive?.();
  closeLive = null;
  settle();
}

/** Follow sessions, visibility and time from now on. */
export function beginLive() {
  session.subscribe((now) => {
    if (!now) {
      closeLive?.();
      closeLive = null;
      forget();
    }
    settle();
  });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let hiding;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.visibilityState === "visible") return settle();
    hiding = setTimeout(() => {
      closeLive?.();
      closeLive = null;
      state.value = "waiting";
    }, HIDDEN_S * 1000);
  });
  setInterval(() => {
    if (document.visibilityState !== "visible") return;
    ticks.value++;
    if (!past.value) clock.value = Date.now() + skewMs;
  }, 1000);
}
