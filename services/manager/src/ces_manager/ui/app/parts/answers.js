/** What routes answer, asked for by components. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { call } from "../client.js";

/**
 * A route's answer. While it is asked for again, and where that fails, the last one stays.
 * @param {string | null} path null: nothing is asked for
 * @param {{every?: number, version?: unknown}} [options] `every`: seconds after which it is asked for again;
 *   `version`: it is asked for again when this changes. Nothing is asked for until the tab is visible
 * @returns {{data: any, problem: any, again: () => void}}
 */
export function useAnswer(path, { every = 0, version = "" } = {}) {
  const [answer, setAnswer] = useState(
    /** @type {{path: string | null, data: any, problem: any}} */ ({ path: null, data: null, problem: null }),
  );
  const [asked, ask] = useState(0);
  const again = useRef(() => ask((n) => n + 1));
  useEffect(() => {
    if (!path) return undefined;
    const aborter = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const look = async () => {
      if (document.visibilityState !== "visible") {
        document.addEventListener("visibilitychange", look, { once: true, signal: aborter.signal });
        return;
      }
      try {
        const data = await call(path, { signal: aborter.signal });
        setAnswer({ path, data, problem: null });
      } catch (problem) {
        if (aborter.signal.aborted) return;
        setAnswer((before) => ({ path, data: before.path === path ? before.data : null, problem }));
      }
      if (every && !aborter.signal.aborted) timer = setTimeout(look, every * 1000);
    };
    look();
    return () => {
      aborter.abort();
      clearTimeout(timer);
    };
  }, [path, every, version, asked]);
  const fresh = answer.path === path;
  return { data: fresh ? answer.data : null, problem: fresh ? answer.problem : null, again: again.current };
}

/**
 * A list, page by page: the next one when somebody asks for it.
 * @param {string | null} path with its query, without cursor; null: nothing is asked for
 * @returns {{items: any[], more: boolean, busy: boolean, problem: any, next: () => void}}
 */
export function usePages(path) {
  const empty = {
    path,
    items: /** @type {any[]} */ ([]),
    cursor: /** @type {string | null} */ (null),
    problem: null,
    busy: false,
  };
  const [held, setHeld] = useState(empty);
  const address = (/** @type {string | null} */ cursor) =>
    `${path}${cursor ? `${path?.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}` : ""}`;
  const load = async (
    /** @type {string | null} */ cursor,
    /** @type {any[]} */ before,
    /** @type {AbortSignal | undefined} */ signal,
  ) => {
    setHeld((now) => ({ ...(now.path === path ? now : empty), busy: true }));
    try {
      const answer = await call(address(cursor), { signal });
      setHeld({ path, items: [...before, ...answer.items], cursor: answer.next, problem: null, busy: false });
    } catch (/** @type {any} */ problem) {
      if (!signal?.aborted) setHeld((now) => ({ ...now, problem, busy: false }));
    }
  };
  useEffect(() => {
    if (!path) return undefined;
    const aborter = new AbortController();
    load(null, [], aborter.signal);
    return () => aborter.abort();
  }, [path]);
  const now = held.path === path ? held : empty;
  return { ...now, more: Boolean(now.cursor), next: () => load(now.cursor, now.items, undefined) };
}
