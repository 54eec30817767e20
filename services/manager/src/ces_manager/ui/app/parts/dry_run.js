/** What the manager makes of a file, asked for while somebody writes it: what would happen to a job, most of all. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { call } from "../client.js";
import { documentOf } from "./job_text.js";

const REST_MS = 500; // after the last key
const AGAIN_MS = 15000; // the cluster changes as well

/**
 * @typedef {object} DryRun
 * @property {string} text of which this is said; the one that is written now may be another
 * @property {string} path which was asked
 * @property {any} answer a PlanForecast of the API, or what another path answers
 * @property {any} problem
 */

/** @param {any} problem @returns {boolean} whether the file itself was refused, and not the request for other reasons */
export const invalid = (problem) =>
  Boolean(problem) && problem.status >= 400 && problem.status < 500 && ![401, 408, 429].includes(problem.status);

/**
 * At most one request is under way, and only what is said of the last text counts.
 * @param {string} text
 * @param {{path?: string, repeats?: boolean}} [options] `path`: what is asked, with its query; `repeats`: whether it is
 *   asked again after a while, since the cluster changes as well
 * @returns {{said: DryRun | null, busy: boolean, again: () => void}} `said`: null before the first answer
 */
export function useDryRun(text, { path = "/v1/plans", repeats = true } = {}) {
  const [said, setSaid] = useState(/** @type {DryRun | null} */ (null));
  const [busy, setBusy] = useState(false);
  const now = useRef({ text, path, ended: new AbortController(), asking: false, ask: () => {} });
  Object.assign(now.current, { text, path });
  /** @type {{current: ReturnType<typeof setTimeout> | undefined}} */
  const timer = useRef(undefined);
  const later = (/** @type {number} */ ms) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => now.current.ask(), ms);
  };
  now.current.ask = async () => {
    const { text: asked, path: where, ended, asking } = now.current;
    if (asking || ended.signal.aborted) return;
    if (!asked.trim()) return;
    if (document.visibilityState !== "visible") return later(AGAIN_MS);
    now.current.asking = true;
    setBusy(true);
    let problem = /** @type {any} */ (null);
    let answer = null;
    try {
      const signal = ended.signal;
      answer = await call(where, { method: "POST", document: documentOf(asked), signal });
    } catch (refused) {
      problem = refused;
    }
    now.current.asking = false;
    if (ended.signal.aborted) return;
    setBusy(false);
    if (now.current.text !== asked || now.current.path !== where) return later(REST_MS);
    setSaid({ text: asked, path: where, answer, problem });
    if ((repeats || problem) && !invalid(problem)) later(Math.max(AGAIN_MS, 1000 * (problem?.retryAfter ?? 0)));
  };
  useEffect(() => {
    if (text.trim()) later(REST_MS);
    else {
      clearTimeout(timer.current);
      setSaid(null);
    }
  }, [text, path]);
  useEffect(() => {
    now.current.ended = new AbortController();
    return () => {
      now.current.ended.abort();
      clearTimeout(timer.current);
    };
  }, []);
  return { said, busy, again: () => later(0) };
}
