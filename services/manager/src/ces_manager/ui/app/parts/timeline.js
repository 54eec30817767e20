/** What happened to a job, in order, and how long each of its states lasted. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { eventsOf, request, route } from "../client.js";
import { clock, html, moment, plain, ProblemBox, span, State, STATES, t, tn } from "../show.js";
import { eventText, happenedIn } from "./event_text.js";

/** @typedef {import("./event_text.js").Happened} Happened */

const QUIET_MS = 700; // after which everything so far has come
const SHOWN = 100; // events before the older ones are folded

/**
 * The events so far. The stream is closed then: a tab keeps no second one open.
 * @param {string} path @param {number} after @param {AbortSignal} aborted
 * @returns {Promise<Happened[]>}
 */
async function eventsSoFar(path, after, aborted) {
  const attempt = new AbortController();
  const end = () => attempt.abort();
  aborted.addEventListener("abort", end);
  const found = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  try {
    const answer = await request(path, {
      headers: after ? { "Last-Event-ID": String(after) } : {},
      signal: attempt.signal,
    });
    timer = setTimeout(end, QUIET_MS);
    for await (const heard of eventsOf(/** @type {ReadableStream<Uint8Array>} */ (answer.body))) {
      clearTimeout(timer);
      const event = happenedIn(heard);
      if (event) found.push(event);
      timer = setTimeout(end, QUIET_MS);
    }
  } catch (problem) {
    if (aborted.aborted || !attempt.signal.aborted) throw problem;
  } finally {
    clearTimeout(timer);
    end();
    aborted.removeEventListener("abort", end);
  }
  return found;
}

/**
 * How long each state lasted, from first to last; the last one goes on.
 * @param {Happened[]} events
 * @returns {{state: string, from: number, to: number}[]}
 */
function phasesOf(events) {
  /** @type {{state: string, from: number, to: number}[]} */
  const phases = [];
  for (const { type, time, data } of events) {
    if (!type.startsWith("job.") || !data.state || !(data.state in STATES)) continue;
    const at = Date.parse(time);
    const last = phases[phases.length - 1];
    if (last) last.to = at;
    if (last?.state !== data.state) phases.push({ state: data.state, from: at, to: at });
  }
  const last = phases[phases.length - 1];
  if (last && !["succeeded", "failed", "cancelled"].includes(last.state)) last.to = clock.value;
  return phases;
}

/** @param {{phases: ReturnType<typeof phasesOf>}} props */
function Phases({ phases }) {
  const lasting = phases.filter(({ from, to }) => to > from);
  if (!lasting.length) return null;
  return html`<div class="stack" aria-hidden="true">${lasting.map(
    ({ state, from, to }) => html`<i
    class=${STATES[state]?.[1]} style=${{ flexGrow: to - from }}></i>`,
  )}</div>
    <ol class="phases">${phases.map(
      ({ state, from, to }) => html`<li><${State} state=${state} />
      ${to > from && html` <b>${span((to - from) / 1000)}</b>`}</li>`,
    )}</ol>`;
}

/** @param {{event: Happened}} props */
const Row = ({ event }) => html`<tr>
  <td class="quiet" title=${`${t("event {n}", { n: event.id })}, ${event.time}`}>${moment(event.time, true)}</td>
  <td><code>${event.type}</code></td>
  <td>
    ${eventText(event)}
    ${event.actor && html`${" "}<span class="quiet">${t("by {actor}", { actor: plain(event.actor) })}</span>`}
  </td>
</tr>`;

/** @param {{id: string, version: string}} props `version`: it is looked again when this changes */
export function Timeline({ id, version }) {
  const [events, setEvents] = useState(/** @type {Happened[] | null} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [all, showAll] = useState(false);
  const last = useRef(0);
  useEffect(() => {
    const aborter = new AbortController();
    eventsSoFar(route`/v1/jobs/${id}/events`, last.current, aborter.signal)
      .then((found) => {
        if (found.length) last.current = found[found.length - 1].id;
        setEvents((before) => [...(before ?? []), ...found]);
        setProblem(null);
      })
      .catch((failed) => aborter.signal.aborted || setProblem(failed));
    return () => aborter.abort();
  }, [id, version]);
  if (!events)
    return problem ? html`<${ProblemBox} problem=${problem} />` : html`<p class="quiet">${t("Loading…")}</p>`;
  if (!events.length) return html`<p class="quiet">${t("Its events are not kept any more.")}</p>`;
  const shown = all ? events : events.slice(-SHOWN);
  return html`
    <${ProblemBox} problem=${problem} />
    <${Phases} phases=${phasesOf(events)} />
    ${
      shown.length < events.length &&
      html`<button type="button" onClick=${() => showAll(true)}>
      ${tn(events.length - shown.length, "Show 1 earlier event", "Show {n} earlier events")}</button>`
    }
    <table class="timeline">
      <thead class="unseen">
        <tr>${[t("Time"), t("Type"), t("What happened")].map((name) => html`<th scope="col">${name}</th>`)}</tr>
      </thead>
      <tbody>${shown.map((event) => html`<${Row} key=${event.id} event=${event} />`)}</tbody>
    </table>
  `;
}
