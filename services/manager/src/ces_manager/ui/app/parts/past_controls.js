/** What moves a replay: a slider over all events, single steps, an instant, and playing on. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { address, setQuery } from "../main.js";
import { html, moment, span, t, tx } from "../show.js";

/** @typedef {any} Past a PastState of the API */

const REST_MS = 120; // for which a slider rests before its instant is asked for
const STEP_MS = 900; // between two events while it plays

/** @param {number} event */
const go = (event) => setQuery({ event: String(event), at: null });

/** Whether events that change nothing on the map are left out, of the steps too. */
export const onlyChanges = () => address.value.query.get("events") !== "all";

/** Between which instants the cluster can be seen. @param {{state: Past | null}} props */
export function Span({ state }) {
  if (!state) return null;
  return html`<span class="quiet">${t("events {first} to {last}, since {time}", {
    first: state.oldest.event,
    last: state.newest.event,
    time: moment(state.oldest.at, true),
  })}</span>`;
}

/** @param {Past} state @returns {string} its instant as the field for it writes one, on this device's clock */
function localTime(state) {
  const then = new Date(state.at);
  return new Date(then.getTime() - then.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

/** @param {{state: Past | null, busy: boolean, failed: boolean}} props */
export function Controls({ state, busy, failed }) {
  const [moved, setMoved] = useState(/** @type {number | null} */ (null));
  const [typed, setTyped] = useState(/** @type {string | null} */ (null)); // an instant, while somebody writes it
  const [playing, setPlaying] = useState(false);
  const timer = useRef(0);
  const event = state?.event ?? 0;
  const [first, last] = [state?.oldest.event ?? 0, state?.newest.event ?? 0];
  useEffect(() => setMoved(null), [event]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const changes = onlyChanges();
  const on = () => go((changes ? state?.change_after : Math.min(last, event + 1)) ?? last);
  // Events that were committed together are shown together, so a step back leads before all of them.
  const back = () => go(Math.max(first, (changes ? state?.change_before : state?.before) ?? first));
  useEffect(() => {
    if (!playing || busy) return undefined;
    if (event >= last || failed) return setPlaying(false);
    const next = setTimeout(on, STEP_MS);
    return () => clearTimeout(next);
  }, [playing, busy, failed, event, last]);
  if (!state) return null;
  const slide = (/** @type {Event} */ input) => {
    const value = Number(/** @type {HTMLInputElement} */ (input.target).value);
    setMoved(value);
    setPlaying(false);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go(value), REST_MS);
  };
  const type = (/** @type {Event} */ input) => setTyped(/** @type {HTMLInputElement} */ (input.target).value);
  const ask = () => {
    if (typed) setQuery({ event: null, at: new Date(typed).toISOString() });
    setTyped(null);
  };
  const onKey = (/** @type {KeyboardEvent} */ key) => key.key === "Enter" && ask();
  const [before, after] = changes
    ? [t("One change back"), t("One change on")]
    : [t("One event back"), t("One event on")];
  return html`<section class="past" aria-label=${t("In the past")}>
    <p class="past-now" role="status">${tx("In the past: {time}, {ago} ago, after event {event}", {
      time: html`<strong>${moment(state.at, true)}</strong>`,
      ago: span((Date.now() - Date.parse(state.at)) / 1000),
      event: html`<strong>${state.event}</strong>`,
    })}</p>
    <div class="past-tools">
      <button type="button" onClick=${back} aria-label=${before} title=${before}>◀</button>
      <button type="button" aria-pressed=${playing} onClick=${() => setPlaying(!playing)}>${playing ? t("Pause") : t("Play")}</button>
      <button type="button" onClick=${on} aria-label=${after} title=${after}>▶</button>
      <input type="range" min=${first} max=${last} value=${moved ?? event} step="1" onInput=${slide}
        aria-label=${t("Event")} aria-valuetext=${t("event {event}, {time}", { event: moved ?? event, time: moment(state.at, true) })} />
      <label>${t("At")} <input type="datetime-local" step="1" value=${typed ?? localTime(state)} onInput=${type} onBlur=${ask}
        onKeyDown=${onKey} /></label>
      <label class="check"><input type="checkbox" checked=${changes}
        onChange=${() => setQuery({ events: changes ? "all" : null })} /> ${t("Only what changes the map")}</label>
      <a class="past-leave" href="#/">${t("Back to now")}</a>
    </div>
  </section>`;
}
