/** The end of the event log as it grows. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { call, route, session } from "../client.js";
import { follow, heardElsewhere, holdLive } from "../live.js";
import { happenedIn } from "./event_text.js";
import { eventsSoFar } from "./timeline.js";

/** @typedef {import("./event_text.js").Happened} Happened */
/** @typedef {{gap: [number, number]}} Gap numbers that never came */

const KEPT = 2000; // events on the page; older ones are one reload away
const TOGETHER_MS = 250; // what comes within this is drawn once
const QUIET_MS = 1000; // after which a log that has sent nothing has nothing

/**
 * The number after which to begin: that of the first event of a job some way back, since the log does not say where
 * it ends. 0 where there are fewer jobs.
 * @param {number} depth jobs back
 * @param {AbortSignal} aborted
 */
async function beginning(depth, aborted) {
  const { items } = await call(`/v1/jobs?limit=${depth}`, { signal: aborted });
  if (items.length < depth) return 0;
  const [first] = await eventsSoFar(route`/v1/jobs/${items[items.length - 1].id}/events`, 0, aborted, 1);
  return first ? first.id - 1 : 0; // its events are kept no more: few have come since
}

/**
 * Events, the newest first, with gaps where numbers are missing. The live stream rests meanwhile.
 * @param {string | null} job of which alone; null for all
 * @param {number | null} after number to begin after; null: some way back
 * @param {number} depth how far, in jobs; 0 for all that are kept
 * @returns {{events: (Happened | Gap)[], problem: any, loading: boolean}}
 */
export function useTail(job, after, depth) {
  const held = useRef(/** @type {(Happened | Gap)[]} */ ([]));
  const [, redraw] = useState(0);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [loading, setLoading] = useState(true);
  useEffect(() => {
    const aborter = new AbortController();
    const letLive = holdLive();
    let last = 0;
    let drawing = 0;
    let quiet = 0;
    let stop = () => {};
    held.current = [];
    setLoading(true);
    // Whoever sees some tenants only is not sent the others' events, so a missing number means nothing to them.
    const seesAll = !job && !session.value?.identity.tenants;
    const draw = () => {
      drawing = 0;
      setLoading(false);
      redraw((n) => n + 1);
    };
    const heard = (/** @type {import("../live.js").Heard} */ frame) => {
      heardElsewhere(true);
      const event = happenedIn(frame);
      if (!event) return;
      if (seesAll && last && event.id > last + 1) held.current.unshift({ gap: [last + 1, event.id - 1] });
      last = event.id;
      held.current.unshift(event);
      if (held.current.length > KEPT) held.current.length = KEPT;
      drawing ||= setTimeout(draw, TOGETHER_MS);
    };
    const begin = async () => {
      const from = after ?? (job || !depth ? 0 : await beginning(depth, aborter.signal));
      if (aborter.signal.aborted) return;
      last = from;
      const open = () => {
        stop = follow(job ? route`/v1/jobs/${job}/events` : "/v1/events", {
          last: last ? String(last) : "",
          heard,
          told: (state, failed) => {
            heardElsewhere(state === "open");
            setProblem(failed ?? null);
            if (state === "open") quiet = setTimeout(() => setLoading(false), QUIET_MS);
          },
        });
      };
      const seen = () => {
        stop();
        if (document.visibilityState === "visible") open();
      };
      document.addEventListener("visibilitychange", seen);
      aborter.signal.addEventListener("abort", () => document.removeEventListener("visibilitychange", seen));
      open();
    };
    begin().catch((failed) => aborter.signal.aborted || setProblem(failed));
    return () => {
      aborter.abort();
      stop();
      clearTimeout(drawing);
      clearTimeout(quiet);
      letLive();
    };
  }, [job, after, depth]);
  return { events: held.current, problem, loading };
}
