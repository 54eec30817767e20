/** The end of the event log as it grows, and what came before it page by page. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { call, follow, route, session } from "../client.js";
import { heardElsewhere, holdLive } from "../live.js";
import { happened, happenedIn } from "./event_text.js";

/** @typedef {import("./event_text.js").Happened} Happened */
/** @typedef {{gap: [number, number]}} Gap numbers that never came */

const PAGE = 200; // events
const KEPT = 5000; // on the page
const TOGETHER_MS = 250; // what comes within this is drawn once
const MOST_EMPTY = 20; // pages without an event in a row, where few are of a kind

/**
 * A page of events, the newest first.
 * @param {string} path
 * @param {string | null} cursor
 * @param {AbortSignal} signal
 * @returns {Promise<{events: Happened[], next: string | null}>}
 */
async function older(path, cursor, signal) {
  for (let tries = 0; ; tries++) {
    const { items, next } = await call(`${path}${cursor ? `&cursor=${cursor}` : ""}`, { signal });
    if (items.length || !next || tries === MOST_EMPTY) {
      return { events: items.map((/** @type {any} */ item) => happened(item.number, item.event)), next };
    }
    cursor = next;
  }
}

/** @param {Happened[]} events the newest first @returns {(Happened | Gap)[]} with what is missing between them */
const withGaps = (events) =>
  events.flatMap((event, place) => {
    const after = events[place + 1];
    return after && after.id < event.id - 1
      ? [event, { gap: /** @type {[number, number]} */ ([after.id + 1, event.id - 1]) }]
      : [event];
  });

/**
 * Events, the newest first, with gaps where numbers are missing. While it follows them, the live stream rests.
 * @param {{job: string | null, kind: string | null, from: number | null}} which
 *   `job`, `kind`: of which alone; `from`: the newest that is shown, and nothing is followed; null: up to now, and on
 * @returns {{events: (Happened | Gap)[], problem: any, loading: boolean, more: (() => void) | null}} `more`: loads what
 *   came before
 */
export function useTail({ job, kind, from }) {
  const held = useRef(/** @type {Happened[]} */ ([]));
  const [, redraw] = useState(0);
  const [state, setState] = useState({
    problem: /** @type {any} */ (null),
    loading: true,
    next: /** @type {string | null} */ (null),
  });
  const only = [job && route`&job=${job}`, kind && route`&kind=${`ces.v1.${kind}.`}`].filter(Boolean);
  const path = `/v1/events/page?limit=${PAGE}${only.join("")}`;
  const load = async (/** @type {string | null} */ cursor, /** @type {AbortSignal} */ signal) => {
    const { events, next } = await older(path, cursor, signal);
    held.current = [...held.current, ...events];
    setState({ problem: null, loading: false, next });
  };
  const aborter = useRef(new AbortController());
  useEffect(() => {
    aborter.current = new AbortController();
    const { signal } = aborter.current;
    const letLive = from === null ? holdLive() : () => {};
    let drawing = 0;
    let last = 0;
    let stop = () => {};
    held.current = [];
    setState({ problem: null, loading: true, next: null });
    const draw = () => {
      drawing = 0;
      redraw((n) => n + 1);
    };
    const heard = (/** @type {import("../live.js").Heard} */ frame) => {
      heardElsewhere(true);
      const event = happenedIn(frame);
      if (!event) return;
      last = event.id;
      if (kind && !event.type.startsWith(`${kind}.`)) return;
      held.current.unshift(event);
      if (held.current.length > KEPT) held.current.length = KEPT;
      drawing ||= setTimeout(draw, TOGETHER_MS);
    };
    const told = (/** @type {string} */ now, /** @type {any} */ problem) => {
      heardElsewhere(now === "open");
      if (problem || now === "open") setState((before) => ({ ...before, problem: problem ?? null }));
    };
    const open = () => {
      stop = follow(job ? route`/v1/jobs/${job}/events` : "/v1/events", {
        last: last ? String(last) : "",
        heard,
        told,
      });
    };
    const seen = () => {
      stop();
      if (document.visibilityState === "visible") open();
    };
    load(from === null ? null : String(from + 1), signal)
      .then(() => {
        const [newest] = held.current;
        last = newest?.id ?? 0;
        if (from !== null || signal.aborted) return;
        document.addEventListener("visibilitychange", seen);
        signal.addEventListener("abort", () => document.removeEventListener("visibilitychange", seen));
        open();
      })
      .catch((problem) => signal.aborted || setState({ problem, loading: false, next: null }));
    return () => {
      aborter.current.abort();
      stop();
      clearTimeout(drawing);
      letLive();
    };
  }, [job, kind, from]);
  const more = () => {
    const { next } = state;
    setState((before) => ({ ...before, loading: true, next: null }));
    load(next, aborter.current.signal).catch((problem) => setState({ problem, loading: false, next }));
  };
  // Whoever is sent some events only has numbers missing that mean nothing.
  const seesAll = !job && !kind && !session.value?.identity.tenants;
  return {
    events: seesAll ? withGaps(held.current) : held.current,
    problem: state.problem,
    loading: state.loading,
    more: state.next ? more : null,
  };
}
