/** Waiting jobs, first in line first: why each waits, and when it starts. */
import { counts } from "../live.js";
import { useAnswer } from "../parts/answers.js";
import { Filter, matches, typedWords } from "../parts/filter.js";
import { deadlineText, figure, holderLinks, PARTS, signed, startText, whyText } from "../parts/reasons.js";
import { Rows } from "../parts/rows.js";
import { ScoreBar, ScoreLegend } from "../parts/score.js";
import { DASH, Head, html, Name, plain, ProblemBox, since, State, t, To } from "../show.js";

const EVERY_S = 3;

/** @typedef {any} Entry a QueueEntry of the API */
/** @param {Entry} entry @returns {string} all that the filter looks at */
const textOf = ({ name, id, tenant, reason, queue_status: status }) =>
  [name, id, tenant, reason?.text, ...(status?.holders ?? []).map((/** @type {any} */ holder) => holder.name)].join(
    " ",
  );

/** @param {Entry[]} entries @returns {(import("../parts/rows.js").Column<Entry> | false)[]} */
function columnsOf(entries) {
  const largest = Math.max(
    1,
    ...entries.flatMap(({ queue_status: status }) => (status ? PARTS.map((part) => Math.abs(status.score[part])) : [])),
  );
  const score = (/** @type {Entry} */ entry) => entry.queue_status?.score;
  /** @param {string} name @returns {import("../parts/rows.js").Column<Entry>} */
  const part = (name) => ({
    id: name,
    title: t(name),
    track: "minmax(4.5em, .35fr)",
    end: true,
    wide: "wider",
    by: (entry) => score(entry)?.[name] ?? 0,
    cell: (entry) => (score(entry) ? signed(score(entry)[name]) : DASH),
  });
  return [
    {
      id: "job",
      title: t("Job"),
      track: "minmax(9em, 1.2fr)",
      cell: (entry) =>
        html`<span class="placed"><span class="quiet">${entry.position}</span><${To} path=${["jobs", entry.id]}>
          ${entry.name}<//></span>`,
    },
    {
      id: "tenant",
      title: t("Tenant"),
      track: "minmax(4.5em, .6fr)",
      cell: (entry) => html`<${Name}>${entry.tenant}<//>`,
    },
    { id: "priority", title: t("Priority"), track: "minmax(3.5em, .3fr)", end: true, cell: (entry) => entry.priority },
    {
      id: "waits",
      title: t("Waits"),
      track: "minmax(4em, .4fr)",
      end: true,
      cell: (entry) => since(entry.submitted_at),
    },
    {
      id: "score",
      title: t("Score"),
      track: "minmax(11em, 1fr)",
      end: true,
      cell: (entry) => (score(entry) ? html`<${Score} status=${entry.queue_status} largest=${largest} />` : DASH),
    },
    ...PARTS.map(part),
    {
      id: "scarce",
      title: t("Scarce"),
      track: "minmax(5em, .4fr)",
      wide: "wider",
      cell: (entry) => (score(entry) ? t(score(entry).scarce) : DASH),
    },
    { id: "why", title: t("Why"), track: "minmax(10em, 2.4fr)", full: true, cell: whyText },
    { id: "start", title: t("Start"), track: "minmax(6em, .8fr)", cell: (entry) => startText(entry.queue_status) },
    entries.some((entry) => entry.deadline_at) && {
      id: "deadline",
      title: t("Deadline"),
      track: "minmax(5em, .6fr)",
      cell: deadlineText,
    },
    {
      id: "held",
      title: t("Held by"),
      full: true,
      track: "minmax(7em, 1fr)",
      cell: (entry) => (entry.queue_status?.holders?.length ? holderLinks(entry.queue_status.holders) : DASH),
    },
  ];
}

/** The bar of a score above its total; its parts are listed where there is no space for their columns. */
function Score(/** @type {{status: any, largest: number}} */ { status: { score, overdue }, largest }) {
  return html`<div class="amount">
    <${ScoreBar} score=${score} largest=${largest} />
    <span class="numbers">${overdue ? html`<${State} state="queued" word=${t("overdue")} />` : figure(score.total)}
      </span>
    <span class="parts quiet">${PARTS.map((part) => html`<span>${t(part)} ${signed(score[part])}</span> `)}<span>
      ${t("scarce: {resource}", { resource: t(score.scarce) })}</span></span>
  </div>`;
}

export default function Queue() {
  const { data, problem, again } = useAnswer("/v1/queue?limit=500", { every: EVERY_S });
  const words = typedWords();
  const all = data?.items ?? [];
  const found = all.filter((/** @type {Entry} */ entry) => matches(words, entry, textOf));
  const waiting = counts.value.get("queued") ?? 0;
  return html`<${Head} title=${t("Queue")} />
    ${
      data?.remark &&
      html`<p class="warning"><${State} state="slow" word=${t("remark")} /> <bdi lang="en">
      ${plain(data.remark)}</bdi></p>`
    }
    <${ProblemBox} problem=${problem} again=${again} />
    ${
      data &&
      html`
      <div class="tools"><${Filter} label=${t("Filter by job, tenant, reason or holder")} shown=${found.length}
        total=${all.length} /><${ScoreLegend} /></div>
      ${
        data.next &&
        html`<p class="quiet">
        ${t("The first {shown} of {total} are shown.", { shown: all.length, total: Math.max(waiting, all.length) })} <a
        href="#/jobs?state=queued">${t("All queued jobs")}</a></p>`
      }
      <${Rows} caption=${t("Queue")} columns=${columnsOf(all)} items=${found}
        keyOf=${(/** @type {Entry} */ entry) => entry.id}
        empty=${all.length ? t("No job fits the filter.") : t("No job waits.")} />
    `
    }
    ${!data && !problem && html`<p class="quiet">${t("Loading…")}</p>`}`;
}
