/** The answer of a dry run, in the sentences of `ces plan`. */
import { clock, cpuQuantity, DASH, html, moment, plain, rate, t, To, tx } from "../show.js";
import { FlowName } from "./flows.js";
import { JobMap } from "./job_map.js";
import { LinkTo, PathName } from "./network.js";
import { Metrics, Policy, Refused } from "./plan.js";
import { holderLinks, reasonText } from "./reasons.js";
import { Requests } from "./requests.js";
import { Rows } from "./rows.js";

const NAMED = 12; // jobs in a sentence; the others are counted

/** @typedef {any} Answer a PlanForecast of the API */
/** @typedef {{name: string, group: string}} Names as the file has them */
/** @typedef {{src: string, dst: string, rate: number, path: string[]}} Flow */

/** @param {Answer} answer @param {Names} names @returns {string} whether it has a place, in a sentence */
export function summaryText({ feasible, size, cpu }, { name, group }) {
  const job = plain(name) || t("the job");
  if (!feasible) return t("no place for {job}", { job });
  if (size == null) return t("{job} has a place", { job });
  const values = { job, size, group: plain(group), cpu: cpu == null ? "" : cpuQuantity(cpu) };
  return cpu == null
    ? t("{job} has a place and would start with {size} {group}", values)
    : t("{job} has a place and would start with {size} {group} with {cpu} each", values);
}

/** When a job without a place now would start; null if never, or if the scheduler does not say. @param {Answer} answer */
function startText({ position, reason, start_at: start, holders }) {
  if (position == null || reason?.forever) return null;
  const place = t("it would be number {n} in the queue", { n: position });
  if (reason?.code === "preempting") return [place, t(" and start as soon as they have")];
  if (!start) return [place, t("; its start cannot be predicted")];
  if (Date.parse(start) - clock.value < 1000)
    return [place, t(" and start as soon as it is its turn and there is free capacity")];
  const after =
    holders.length > 0 &&
    tx(holders.length === 1 ? ", after job {jobs}" : ", after jobs {jobs}", { jobs: holderLinks(holders, NAMED) });
  return [place, t(" and start at about {time}", { time: moment(start) }), after];
}

/** Why it has no place now. @param {{reason: any}} props */
const Reason = ({ reason }) =>
  html`<p>${reasonText(reason)}${
    !reason.forever && reason.code.startsWith("bandwidth-") && ` ${t("(plans may reserve 95 % of a link)")}`
  }</p>`;

/** Hop by hop. @param {{path: string[]}} props */
function Path({ path }) {
  if (!path.length) return DASH;
  if (path.length === 1) return html`<${PathName} path=${path} />`;
  return html`<ul class="hops across">${path.slice(1).map(
    (dst, index) => html`<li><${LinkTo} link=${{ src: path[index], dst }} /></li>`,
  )}</ul>`;
}

/** @returns {import("./rows.js").Column<[string, string]>[]} */
const taskColumns = () => [
  { id: "task", title: t("Task"), track: "minmax(8em, 1fr)", by: ([task]) => task, cell: ([task]) => plain(task) },
  {
    id: "node",
    title: t("Node"),
    track: "minmax(8em, 1fr)",
    by: ([, node]) => node,
    cell: ([, node]) => html`<${To} path=${["nodes", node]}>${node}<//>`,
  },
];

/** @returns {import("./rows.js").Column<Flow>[]} */
const flowColumns = () => [
  {
    id: "flow",
    title: t("Flow"),
    track: "minmax(9em, 1.2fr)",
    by: (flow) => `${flow.src} ${flow.dst}`,
    cell: (flow) => html`<${FlowName} flow=${flow} />`,
  },
  {
    id: "rate",
    title: t("Rate"),
    track: "minmax(6em, .6fr)",
    end: true,
    by: (flow) => flow.rate,
    cell: (flow) => (flow.path.length === 1 ? t("no link") : rate(flow.rate)),
  },
  {
    id: "path",
    title: t("Path"),
    full: true,
    track: "minmax(10em, 2fr)",
    by: (flow) => flow.path.length,
    cell: (flow) => html`<${Path} path=${flow.path} />`,
  },
];

/** Where each task would go, and what each flow would get. @param {{answer: Answer}} props */
const Place = ({ answer }) => html`
  <${Metrics} metrics=${answer.metrics} bound=${answer.bound} />
  ${answer.requests.length > 0 && html`<h3>${t("Requests")}</h3><${Requests} requests=${answer.requests} />`}
  <h3>${t("Tasks")}</h3>
  <${Rows} caption=${t("Tasks")} param="tasks" usual="task" columns=${taskColumns()}
    items=${Object.entries(answer.assignments)} keyOf=${(/** @type {[string, string]} */ [task]) => task}
    empty=${t("The job has no tasks.")} />
  <h3>${t("Flows")}</h3>
  ${
    answer.flows.length
      ? html`<${Rows} caption=${t("Flows")} param="flows" usual="flow" columns=${flowColumns()} items=${answer.flows}
        keyOf=${(/** @type {Flow} */ flow) => `${flow.src}>${flow.dst}`} empty="" />`
      : html`<p class="quiet">${t("The job has no flows.")}</p>`
  }
  ${answer.policy && html`<${Policy} policy=${answer.policy} assignments=${answer.assignments} />`}`;

/** All of it but the first sentence. @param {{answer: Answer}} props */
export function Forecast({ answer }) {
  const { feasible, reason, end_at: end, refused, lacking, solver, version, fallback } = answer;
  const start = feasible ? null : startText(answer);
  return html`
    ${!feasible && reason && html`<${Reason} reason=${reason} />`}
    ${start && html`<p>${start}</p>`}
    ${
      end &&
      reason?.code !== "deadline" &&
      html`<p>
      ${t("it is expected to have ended at about {time}", { time: moment(end) })}</p>`
    }
    ${
      (feasible || Object.keys(refused).length > 0) &&
      html`<${JobMap} tasks=${Object.entries(answer.assignments).map(([name, node]) => ({ name, node }))}
      flows=${answer.flows} refused=${refused} lacking=${lacking} />`
    }
    ${feasible && html`<${Place} answer=${answer} />`}
    ${Object.keys(refused).length > 0 && html`<div class="quiet">
      <${Refused} refused=${refused} lacking=${lacking} /></div>`}
    <p class="quiet">${t("decided by {solver} in {ms} ms, for version {version} of the cluster", {
      solver: plain(solver),
      ms: answer.decision_ms.toFixed(1),
      version,
    })}</p>
    ${fallback && html`<p class="warning"><bdi lang="en">${plain(fallback)}</bdi></p>`}`;
}
