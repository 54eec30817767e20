/** What requests of an application take: by the model, part by part up to the deadline, and as their users measured it. */
import { brief, html, Name, plain, State, t } from "../show.js";

const [WIDTH, HEIGHT] = [100, 10]; // of the bars' own scale

/** @typedef {{what: string, ms?: number | null}} Step `ms`: none where it never ends */
/** @typedef {{name: string, user?: string, time_ms?: number | null, deadline_ms?: number | null, hard?: boolean,
 *   steps: Step[]}} Request a RequestTime of the API */

const ms = (/** @type {number | null | undefined} */ value) =>
  value == null ? t("never ends") : `${brief(value)} ms`;

/**
 * @param {Request} request
 * @returns {{deadline: number | null, bars: {x: number, width: number, longest: boolean}[]}} on the bars' scale, each
 * part after the one before; the deadline, or the whole time where that is longer, is at the right end
 */
export function barsOf({ steps, time_ms: took, deadline_ms: deadline }) {
  const known = steps.map((step) => step.ms ?? 0);
  const sum = known.reduce((all, each) => all + each, 0);
  const whole = Math.max(took ?? 0, deadline ?? 0, sum, 1e-9);
  const most = Math.max(...known);
  let begun = 0;
  const bars = known.map((each) => {
    const x = (WIDTH * begun) / whole;
    begun += each;
    return { x, width: (WIDTH * each) / whole, longest: each > 0 && each === most };
  });
  return { deadline: deadline == null ? null : (WIDTH * deadline) / whole, bars };
}

/** What its sender reported last, in a sentence. @param {any[]} tasks @param {string} name @returns {string} */
export function measuredText(tasks, name) {
  for (const { progress } of tasks) {
    const line = progress?.result ?? progress?.progress ?? progress;
    const told = line?.requests?.[name];
    if (!told || typeof told !== "object") continue;
    const shown = ["p50", "p95", "p99"].filter((each) => Number.isFinite(told[`${each}_ms`]));
    const times = shown.map((each) => `${each} ${ms(told[`${each}_ms`])}`).join(", ");
    const count = (/** @type {unknown} */ value) => (Number.isFinite(value) ? Number(value) : 0);
    const [answers, late, lost] = [count(told.answers), count(told.late), count(told.lost)];
    const values = { times: times || t("nothing yet"), answers, late, lost };
    return lost
      ? t("measured: {times}; {answers} answers, {late} late, {lost} requests without an answer", values)
      : t("measured: {times}; {answers} answers, {late} late", values);
  }
  return t("measured: nothing reported yet");
}

/** @param {{request: Request, tasks?: any[]}} props */
function RequestTime({ request, tasks }) {
  const { deadline, bars } = barsOf(request);
  const { name, user, time_ms: took, deadline_ms: within, hard, steps } = request;
  const met = within == null || (took != null && took <= within);
  const told = [within == null ? ms(took) : t("{time} of {deadline}", { time: ms(took), deadline: ms(within) }),
    hard ? t("hard") : ""].filter(Boolean).join(", ");
  return html`<table class="plain-table requests">
    <caption><b><${Name}>${name}<//></b>${user && html` ${t("of user")} <${Name}>${user}<//>`}: ${told}
      ${!met && html` <${State} state="failed" word=${t("misses its deadline")} />`}</caption>
    <thead><tr><th scope="col">${t("Part")}</th><th scope="col" class="end">${t("Takes")}</th>
      <th scope="col" class="bar">${t("When")}</th></tr></thead>
    <tbody>${steps.map(
      (step, index) => html`<tr><th scope="row"><bdi>${step.what === "access" ? t("access") : plain(step.what)}</bdi></th>
      <td class="end">${ms(step.ms)}</td>
      <td class="bar"><svg class="span-bar" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">
        <rect class="axis" y="4.5" width=${WIDTH} height="1" />
        ${bars[index].width > 0 && html`<rect class=${bars[index].longest ? "took longest" : "took"} x=${bars[index].x} width=${Math.max(0.5, bars[index].width)} height=${HEIGHT} />`}
        ${deadline != null && html`<rect class="deadline" x=${Math.min(deadline, WIDTH - 0.5)} width="0.5" height=${HEIGHT} />`}
      </svg></td></tr>`,
    )}</tbody>
    ${tasks && html`<tfoot><tr><td colspan="3" class="quiet">${measuredText(tasks, name)}</td></tr></tfoot>`}
  </table>`;
}

/** @param {{requests: Request[], tasks?: any[]}} props `tasks`: of a job; left out where nothing runs */
export const Requests = ({ requests, tasks }) =>
  requests.map((request) => html`<${RequestTime} key=${request.name} request=${request} tasks=${tasks} />`);
