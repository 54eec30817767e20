/** What a job's workers printed of their progress, as curves: a thin line for each worker, a thick one for the mean. */
import { useMemo, useState } from "../../vendor/preact-hooks.js";
import { route } from "../client.js";
import { brief, html, Name, plain, ProblemBox, t, tn } from "../show.js";
import { useAnswer } from "./answers.js";
import { Curve } from "./curve.js";
import { curvesOf, fieldsOf, seconds } from "./curve_data.js";
import { Part } from "./facts.js";

const EVERY_S = 5;
const MOST_LINES = 64; // workers with a line of their own

const number = (/** @type {number} */ value) => brief(value);

/** @param {{tasks: Record<string, import("./curve_data.js").Series>, field: string}} props */
function FieldCurve({ tasks, field }) {
  const mean = t("mean");
  const { at, lines, workers } = useMemo(() => curvesOf(tasks, field, mean, MOST_LINES), [tasks, field, mean]);
  if (!lines.length) return null;
  const drawn = lines.length - 1;
  const title = html`<${Name}>${field}<//>${
    workers > MOST_LINES &&
    html` <small>${t("{n} of {m} workers, and the mean of all", { n: drawn, m: workers })}</small>`
  }`;
  const label = t("{field} of {workers}", { field: plain(field), workers: tn(workers, "1 worker", "{n} workers") });
  return html`<${Curve} title=${title} label=${label} at=${at} lines=${lines} show=${number} />`;
}

/** @param {{id: string, state: string, over: boolean}} props `over`: no worker prints any more */
export function Training({ id, state, over }) {
  const [all, setAll] = useState(false);
  const { data, problem, again } = useAnswer(route`/v1/jobs/${id}/progress`, {
    every: state === "running" ? EVERY_S : 0,
    version: state,
  });
  const tasks = useMemo(
    () =>
      Object.fromEntries(
        Object.entries(data?.tasks ?? {}).map(([name, task]) => [name, { at: seconds(task.at), values: task.values }]),
      ),
    [data],
  );
  const { first, others } = fieldsOf(tasks);
  return html`<${Part} title=${t("Training curves")}>
    <${ProblemBox} problem=${problem} again=${again} />
    ${!data && !problem && html`<p class="quiet">${t("Loading…")}</p>`}
    ${
      data &&
      !first.length &&
      html`<p class="quiet">${
        over
          ? t("No curves are kept of it: it printed no numbers, or more than an hour ago, or before the manager started.")
          : t("No worker has printed numbers of its progress since the manager started.")
      }</p>`
    }
    <div class="curves">${(all ? [...first, ...others] : first).map(
      (field) => html`<${FieldCurve} key=${field} tasks=${tasks} field=${field} />`,
    )}</div>
    ${
      others.length > 0 &&
      html`<button type="button" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>
      ${all ? t("Fewer") : tn(others.length, "1 more curve", "{n} more curves")}</button>`
    }
  <//>`;
}
