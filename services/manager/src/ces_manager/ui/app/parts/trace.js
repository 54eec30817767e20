/** Where the time of an attempt went, until it ran: a line for each step, with a bar. */
import { useState } from "../../vendor/preact-hooks.js";
import { route } from "../client.js";
import { html, plain, ProblemBox, t } from "../show.js";
import { useAnswer } from "./answers.js";

const [WIDTH, HEIGHT] = [100, 10]; // of the bars' own scale
const MOST_DEEP = 8; // levels that are set in

/** @typedef {{id: string, depth: number, name: string, service: string, node?: string, start_us: number,
 *   duration_us?: number, attributes: Record<string, unknown>}} Step */

/** Steps of a waterfall of events, which have no names of their own making. @type {Record<string, string>} */
const PHASES = { attempt: "attempt", queued: "queued", network: "network", workers: "workers" };

/** @param {number} microseconds @returns {string} at three digits */
export function duration(microseconds) {
  const [value, unit] = Math.abs(microseconds) < 1e6 ? [microseconds / 1e3, "ms"] : [microseconds / 1e6, "s"];
  return `${Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3))} ${unit}`;
}

/**
 * @param {Step} step @param {number} first @param {number} last microseconds
 * @returns {{x: number, width: number}} on the bars' scale; what goes on reaches to the end
 */
export function barOf(step, first, last) {
  const scale = WIDTH / Math.max(1, last - first);
  const x = (step.start_us - first) * scale;
  const end = step.duration_us == null ? WIDTH : x + step.duration_us * scale;
  return { x: Math.min(x, WIDTH - 0.5), width: Math.max(0.5, end - x) };
}

/** @param {{step: Step, first: number, last: number, phases: boolean}} props */
function Row({ step, first, last, phases }) {
  const { x, width } = barOf(step, first, last);
  const name = phases && step.name in PHASES ? t(PHASES[step.name]) : plain(step.name);
  const more = Object.entries(step.attributes ?? {}).map(([key, value]) => `${key}: ${plain(String(value))}`);
  return html`<tr>
    <th scope="row" class=${`deep-${Math.min(step.depth, MOST_DEEP)}`} title=${more.join(", ") || undefined}>
      <bdi>${name}</bdi></th>
    <td class="quiet">${plain(step.service)} ${step.node && html`<bdi>${plain(step.node)}</bdi>`}</td>
    <td class="num">${duration(step.start_us)}</td>
    <td class="num">${step.duration_us == null ? t("goes on") : duration(step.duration_us)}</td>
    <td class="bar"><svg class="span-bar" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">
      <rect class="axis" y="4.5" width=${WIDTH} height="1" />
      <rect class="took" x=${x} width=${width} height=${HEIGHT} /></svg></td>
  </tr>`;
}

/** @param {{id: string, version: string}} props `version`: it is asked again when this changes */
export function Trace({ id, version }) {
  const [attempt, setAttempt] = useState(0); // 0: the present one
  const path = attempt ? `${route`/v1/jobs/${id}/trace`}?attempt=${attempt}` : route`/v1/jobs/${id}/trace`;
  const { data, problem, again } = useAnswer(path, { version });
  if (!data)
    return problem
      ? html`<${ProblemBox} problem=${problem} again=${again} />`
      : html`<p class="quiet">${t("Loading…")}</p>`;
  /** @type {Step[]} */
  const steps = data.spans;
  const first = Math.min(...steps.map((step) => step.start_us));
  const last = Math.max(...steps.map((step) => step.start_us + (step.duration_us ?? 0)));
  const choose = (/** @type {any} */ event) => setAttempt(Number(event.target.value));
  return html`
    <${ProblemBox} problem=${problem} again=${again} />
    ${
      data.attempts > 1 &&
      html`<p><label>${t("Attempt")} <select value=${data.attempt} onChange=${choose}>
      ${Array.from({ length: data.attempts }, (_, index) => html`<option value=${index + 1}>${index + 1}</option>`)}
      </select></label></p>`
    }
    <p class="quiet">${
      data.source === "spans"
        ? t("As the services told, in trace {trace}.", { trace: data.trace })
        : t("From its events: this attempt is not traced.")
    }</p>
    ${
      steps.length
        ? html`<table class="plain-table trace">
      <thead><tr>${[t("Step"), t("Service"), t("From"), t("Took")].map(
        (name) => html`<th scope="col">${name}</th>`,
      )}<td></td></tr></thead>
      <tbody>${steps.map(
        (step) => html`<${Row} key=${step.id} step=${step} first=${first} last=${last}
        phases=${data.source === "events"} />`,
      )}</tbody></table>`
        : html`<p class="quiet">${t("Nothing is kept of this attempt any more.")}</p>`
    }`;
}
