/** Jobs: those that are not over from the live picture, the others page by page. Filters stand in the address. */
import { may } from "../client.js";
import { counts, jobs, OVER, UNDER_WAY } from "../live.js";
import { address } from "../main.js";
import { usePages } from "../parts/answers.js";
import { Chips, Filter, matches, typedWords } from "../parts/filter.js";
import { Names } from "../parts/names.js";
import { deadlineText } from "../parts/reasons.js";
import { Rows } from "../parts/rows.js";
import { DASH, Head, href, html, Name, plain, ProblemBox, since, State, t, tn, To, tx } from "../show.js";

/** @typedef {any} Job a JobSummary of the API */

const ALL = "all";

/** @param {Job} job @returns {string} all that the filter looks at */
const textOf = ({ name, id, state, tenant, nodes, reason }) => [name, id, state, tenant, ...nodes, reason].join(" ");

/** @param {Job[]} shown @returns {(import("../parts/rows.js").Column<Job> | false)[]} */
function columnsOf(shown) {
  return [
    {
      id: "name",
      title: t("Job"),
      track: "minmax(10em, 1.3fr)",
      by: (job) => job.name,
      cell: (job) => html`<${To} path=${["jobs", job.id]}>${job.name}<//>`,
    },
    {
      id: "state",
      title: t("State"),
      track: "minmax(8.5em, .9fr)",
      by: (job) => job.state,
      moves: true,
      cell: (job) =>
        html`<${State} state=${job.state} />${
          job.restarts > 0 &&
          html` <span
          class="wait">(${tn(job.restarts, "1 restart", "{n} restarts")})</span>`
        }`,
    },
    {
      id: "tenant",
      title: t("Tenant"),
      track: "minmax(5em, .6fr)",
      by: (job) => job.tenant,
      cell: (job) => html`<${Name}>${job.tenant}<//>`,
    },
    {
      id: "priority",
      title: t("Priority"),
      track: "minmax(4.5em, .4fr)",
      end: true,
      by: (job) => job.priority,
      cell: (job) => job.priority,
    },
    {
      id: "tasks",
      title: t("Tasks"),
      track: "minmax(4em, .4fr)",
      end: true,
      by: (job) => job.tasks,
      cell: (job) => job.tasks,
    },
    {
      id: "age",
      title: t("Age"),
      track: "minmax(5em, .4fr)",
      end: true,
      by: (job) => -Date.parse(job.submitted_at),
      cell: (job) => since(job.submitted_at),
    },
    shown.some((job) => job.deadline_at) && {
      id: "deadline",
      title: t("Deadline"),
      track: "minmax(8em, .9fr)",
      by: (job) => job.deadline_at ?? "9",
      cell: deadlineText,
    },
    {
      id: "nodes",
      title: t("Nodes"),
      full: true,
      track: "minmax(12em, 2.4fr)",
      cell: (job) =>
        job.nodes.length
          ? html`<${Names} names=${job.nodes} place="nodes" />`
          : job.region && !OVER.includes(job.state)
            ? tx("in region {region}", { region: html`<${To} path=${["regions", job.region]}>${job.region}<//>` })
            : job.reason
              ? html`<bdi lang="en">${plain(job.reason)}</bdi>`
              : DASH,
    },
    {
      id: "id",
      title: t("Id"),
      full: true,
      track: "minmax(16.5em, .8fr)",
      wide: true,
      cell: (job) => html`<code>${plain(job.id)}</code>`,
    },
  ];
}

export default function Jobs() {
  const state = address.value.query.get("state") ?? "";
  const stored = OVER.includes(state) || state === ALL;
  const pages = usePages(stored ? `/v1/jobs?limit=200${state === ALL ? "" : `&state=${state}`}` : null);
  const words = typedWords();
  /** @type {Job[]} */
  const all = stored
    ? pages.items.map((job) => ({ ...job, ...jobs.value.get(job.id) }))
    : [...jobs.value]
        .map(([id, job]) => /** @type {Job} */ ({ ...job, id }))
        .filter((job) => (state ? job.state === state : !OVER.includes(job.state)));
  const found = all.filter((job) => matches(words, job, textOf));
  const many = (/** @type {string} */ value) => counts.value.get(value) ?? 0;
  const choices = [
    ...[...UNDER_WAY, ...OVER]
      .filter((value) => many(value) || value === state)
      .map((value) => ({ value, text: html`<${State} state=${value} />`, count: many(value) })),
    {
      value: ALL,
      text: t("all that are kept"),
      count: [...counts.value.values()].reduce((sum, number) => sum + number, 0),
    },
  ];
  const empty = pages.busy
    ? t("Loading…")
    : all.length || state
      ? t("No job fits the filter.")
      : tx("No job is under way. {command} submits one.", { command: html`<code>ces submit FILE</code>` });
  return html`<${Head} title=${t("Jobs")}>${may("submitter") && html`<a href=${href("submit")}>${t("Submit a job")}</a>`}<//>
    <div class="tools">
      <${Filter} label=${t("Filter by name, id, tenant or node")} shown=${found.length} total=${all.length} />
      <${Chips} name="state" label=${t("State")} choices=${choices} />
    </div>
    <${ProblemBox} problem=${pages.problem} again=${pages.next} />
    <${Rows} caption=${t("Jobs")} columns=${columnsOf(found)} items=${found} keyOf=${(/** @type {Job} */ job) => job.id}
      usual="age" empty=${empty} />
    ${
      pages.more &&
      html`<p><button type="button" aria-disabled=${pages.busy} onClick=${() => pages.busy || pages.next()}>
      ${pages.busy ? t("Loading…") : t("Load older jobs")}
    </button></p>`
    }`;
}
