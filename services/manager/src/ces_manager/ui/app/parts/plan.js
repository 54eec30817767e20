/** How a committed plan came about: solver, metrics, seed, and why nodes were refused. */
import { brief, html, Name, plain, ProblemBox, since, t } from "../show.js";
import { route } from "../client.js";
import { Adjustment } from "./adjustment.js";
import { whyNotText } from "./amounts.js";
import { useAnswer } from "./answers.js";
import { Names } from "./names.js";
import { Requests } from "./requests.js";

/** @type {Record<string, string>} */
const METRICS = {
  composite: "quality (composite)",
  load_imbalance: "load imbalance (0 is even)",
  bandwidth_satisfaction: "bandwidth satisfaction",
};

/**
 * Tasks, nodes, why not: tasks with the same refusals share a row, and nodes with the same reason.
 * @param {{refused: Record<string, Record<string, string>>, lacking?: import("./amounts.js").Lacking | null}} props
 */
export function Refused({ refused, lacking }) {
  /** @type {Map<string, {tasks: string[], reasons: Map<string, {nodes: string[], known: boolean}>}>} */
  const alike = new Map();
  for (const [task, nodes] of Object.entries(refused)) {
    const short = lacking?.[task] ?? {};
    const key = JSON.stringify([Object.entries(nodes).sort(), Object.entries(short).sort()]);
    const known = alike.get(key);
    if (known) {
      known.tasks.push(task);
      continue;
    }
    const reasons = new Map();
    for (const [node, why] of Object.entries(nodes)) {
      const text = whyNotText(why, short[node]);
      const same = reasons.get(text);
      if (same) same.nodes.push(node);
      else reasons.set(text, { nodes: [node], known: Boolean(short[node]?.length) });
    }
    alike.set(key, { tasks: [task], reasons });
  }
  return html`<table class="plain-table refused">
    <caption>${t("Nodes that were refused")}</caption>
    <thead><tr><th scope="col">${t("Tasks")}</th><th scope="col">${t("Nodes")}</th><th scope="col">${t("Why not")}</th>
      </tr></thead>
    <tbody>${[...alike.values()].flatMap(({ tasks, reasons }) =>
      [...reasons].map(
        ([why, { nodes, known }], index) => html`<tr>
        ${index === 0 && html`<th scope="rowgroup" rowspan=${reasons.size}><${Names} names=${tasks} /></th>`}
        <td><${Names} names=${nodes} place="nodes" /></td><td><bdi lang=${known ? undefined : "en"}>
          ${why}</bdi></td>
      </tr>`,
      ),
    )}</tbody>
  </table>`;
}

/** What else was considered, as it is kept. @param {{value: any}} props */
function Tree({ value }) {
  if (value === null || typeof value !== "object")
    return html`<${Name}>${typeof value === "number" ? brief(value) : value}<//>`;
  return html`<ul>${Object.entries(value).map(
    ([key, inner]) => html`<li><${Name}>${key}<//>: <${Tree} value=${inner} />
    </li>`,
  )}</ul>`;
}

/**
 * How sure the learned policy was of each task's node.
 * @param {{policy: any, assignments: Record<string, string>}} props
 */
export const Policy = ({ policy, assignments }) => html`<table class="plain-table">
  <caption>${t("Policy {version}", { version: plain(policy.version) })}</caption>
  <thead><tr><th scope="col">${t("Task")}</th><th scope="col">${t("Node")}</th><th scope="col" class="end">
    ${t("Probability")}</th></tr></thead>
  <tbody>${Object.entries(policy.probabilities).map(
    ([task, probability]) => html`<tr><th scope="row"><${Name}>${task}
    <//></th><td><${Name}>${assignments[task]}<//></td><td class="end">${Number(probability).toFixed(4)}</td></tr>`,
  )}
    </tbody>
</table>`;

/**
 * How good a plan is.
 * @param {{metrics: Record<string, number>, bound?: number | null}} props `bound`: no plan has a higher composite
 */
export const Metrics = ({ metrics, bound }) =>
  html`<ul class="metrics">${Object.entries(metrics).map(([name, value]) => {
    const most =
      name === "composite" && typeof bound === "number" ? ` ${t("of at most {n}", { n: brief(bound) })}` : "";
    return html`<li>${t(METRICS[name] ?? name.replaceAll("_", " "))} <b>${brief(Number(value))}</b>${most}</li>`;
  })}</ul>`;

/**
 * @param {{id: string, attempt: string, tasks: any[], look?: any, runs?: boolean}} props `attempt`: it is asked for again when this
 * changes; `tasks`: as they are now, with what they measured of requests; `look`: its `last_look`; `runs`: whether the
 * job does now
 */
export function Plan({ id, attempt, tasks, look, runs = false }) {
  const { data: plan, problem, again } = useAnswer(route`/v1/jobs/${id}/plan`, { version: attempt });
  if (problem?.status === 404) return html`<p class="quiet">${t("There is no plan yet.")}</p>`;
  if (problem) return html`<${ProblemBox} problem=${problem} again=${again} />`;
  if (!plan) return html`<p class="quiet">${t("Loading…")}</p>`;
  const {
    decision_ms: took,
    refused,
    lacking,
    bound,
    fallback,
    policy,
    requests,
    sparing,
    seed,
    time_limit_s: limit,
    ...rest
  } = plan.considered;
  const solver = plain(plan.solver);
  const decided =
    typeof took === "number"
      ? t("decided by {solver} in {ms} ms", { solver, ms: took.toFixed(1) })
      : t("decided by {solver}", { solver });
  const committed = t("committed {span} ago (attempt {n}, for version {version} of the cluster)", {
    span: since(plan.committed_at),
    n: plan.attempt,
    version: plan.version,
  });
  return html`
    <p>${decided}, ${committed}</p>
    <${Metrics} metrics=${plan.metrics} bound=${bound} />
    ${requests?.length > 0 && html`<${Requests} requests=${requests} tasks=${tasks} />`}
    ${requests?.length > 0 && runs && html`<${Adjustment} key=${`${id} ${attempt}`} id=${id} last=${look} />`}
    ${
      sparing === true &&
      html`<p>
      ${t("the cluster was crowded: the place was chosen to leave free capacity for later jobs")}</p>`
    }
    ${fallback && html`<p class="warning"><bdi lang="en">${plain(fallback)}</bdi></p>`}
    ${policy && html`<${Policy} policy=${policy} assignments=${plan.assignments} />`}
    ${refused && Object.keys(refused).length > 0 && html`<${Refused} refused=${refused} lacking=${lacking} />`}
    ${
      seed != null &&
      html`<p class="quiet">${limit != null && t("stopped after {n} s at the latest; ", { n: limit })}
      ${t("seed {n}: the same seed gives the same plan", { n: seed })}</p>`
    }
    ${
      Object.values(rest).some((value) => value != null) &&
      html`<details><summary>${t("other details")}</summary>
      <${Tree} value=${rest} /></details>`
    }
  `;
}
