/** Whether every promise was kept, as an auditor outside of the services found; each finding leads to its event. */
import { route } from "../client.js";
import { eventsSince } from "../live.js";
import { useAnswer, usePages } from "../parts/answers.js";
import { EventLink, NotChecked, Promises, PromiseText } from "../parts/audit_promises.js";
import { Facts, Part } from "../parts/facts.js";
import { LinkTo } from "../parts/network.js";
import { Rows } from "../parts/rows.js";
import {
  clock,
  cpu,
  DASH,
  Head,
  href,
  html,
  memory,
  moment,
  Name,
  percent,
  plain,
  ProblemBox,
  rate,
  since,
  t,
  tn,
  To,
  tx,
} from "../show.js";
import { Outcome, spanText } from "./overview.js";

/** @typedef {import("./overview.js").Audit} Audit */
/** @typedef {Record<string, any>} Finding */

const EVERY_S = 30; // in which another audit shows
const OLD_S = 3600; // after which it is said that there was none since

/** @type {Record<string, (amount: number) => string>} */
const AMOUNTS = { cpu, memory, gpu: String, link: rate, medium: rate };

/** What a finding is about. @param {{finding: Finding}} props */
function About({ finding: { job, name, node, link } }) {
  const [src, dst] = (link ?? "").split(">");
  const found = [
    job && html`<${To} path=${["jobs", job]}>${name ?? job}<//>`,
    node && html`<${To} path=${["nodes", node]}>${node}<//>`,
    link && html`<${LinkTo} link=${{ src, dst }} />`,
  ].filter(Boolean);
  if (!found.length) return DASH;
  return html`<span class="about">${found.map((each, place) => [place > 0 && ", ", each])}</span>`;
}

/** @returns {import("../parts/rows.js").Column<Finding>[]} */
const columns = () => [
  {
    id: "event",
    title: t("Event"),
    track: "minmax(5em, .3fr)",
    end: true,
    by: (finding) => finding.event,
    cell: (finding) => html`<${EventLink} number=${finding.event} />`,
  },
  {
    id: "kind",
    title: t("Promise"),
    track: "minmax(12em, 1.4fr)",
    by: (finding) => finding.kind,
    cell: (finding) => html`<${PromiseText} kind=${finding.kind} />`,
  },
  {
    id: "about",
    title: t("About"),
    track: "minmax(9em, 1fr)",
    by: (finding) => finding.name ?? finding.job ?? finding.node ?? finding.link ?? "",
    cell: (finding) => html`<${About} finding=${finding} />`,
  },
  {
    id: "text",
    title: t("Finding"),
    full: true,
    track: "minmax(14em, 2.4fr)",
    cell: (finding) => html`<bdi lang="en">${plain(finding.text)}</bdi>`,
  },
];

/** @param {{audit: Audit}} props */
function Findings({ audit }) {
  const { findings, findings_total: total } = audit;
  if (!total) return null;
  const more = total - findings.length;
  const items = findings.map((/** @type {Finding} */ finding, /** @type {number} */ place) => ({ ...finding, place }));
  return html`<${Part} title=${t("Findings")} note=${total}>
    <${Rows} caption=${t("Findings")} columns=${columns()} items=${items}
      keyOf=${(/** @type {Finding} */ finding) => String(finding.place)} empty="" />
    ${more > 0 && html`<p class="quiet">${tn(more, "and 1 more, which was not published", "and {n} more, which were not published")}</p>`}
  <//>`;
}

/** @typedef {{what: string, where: string, used: number, capacity: number, event: number}} Peak */

/** @returns {import("../parts/rows.js").Column<Peak>[]} */
const peakColumns = () => [
  { id: "what", title: t("Resource"), track: "minmax(6em, .6fr)", cell: ({ what }) => t(what) },
  { id: "where", title: t("Where"), track: "minmax(9em, 1.2fr)", cell: ({ where }) => html`<${Name}>${where}<//>` },
  {
    id: "held",
    title: t("Held"),
    track: "minmax(10em, 1.2fr)",
    end: true,
    cell: ({ what, used, capacity }) => {
      const show = AMOUNTS[what] ?? String;
      return t("{committed} of {whole}", { committed: show(used), whole: show(capacity) });
    },
  },
  {
    id: "share",
    title: t("Share"),
    track: "minmax(4em, .4fr)",
    end: true,
    cell: ({ used, capacity }) => percent(used, capacity),
  },
  {
    id: "event",
    title: t("Event"),
    track: "minmax(5em, .4fr)",
    end: true,
    cell: ({ event }) => html`<${EventLink} number=${event} />`,
  },
];

/** Amounts at their highest. @param {{audit: Audit}} props */
function Peaks({ audit: { peaks } }) {
  if (!peaks.length) return null;
  return html`<${Part} title=${t("Highest use")}>
    <${Rows} caption=${t("Highest use")} columns=${peakColumns()} items=${peaks} param="peaks"
      keyOf=${(/** @type {Peak} */ { what }) => what} empty="" />
  <//>`;
}

/** How much was checked, and what has come since. @param {{audit: Audit, newest: boolean}} props */
function Extent({ audit, newest }) {
  const numbers = Object.values(audit.checked);
  const done = numbers.filter((number) => number !== 0).length;
  const times = numbers.reduce((sum, number) => sum + (number ?? 0), 0);
  const later = newest ? eventsSince(audit.last) : null;
  const page = (/** @type {string} */ text) => html`<a href=${href("events")}>${text}</a>`;
  const values = { done, all: numbers.length, times: times.toLocaleString() };
  const extent = times
    ? t("{done} of {all} promises were checked, {times} times in all.", values)
    : t("{done} of {all} promises were checked.", values);
  return html`<p>${done > 0 && extent} ${
    later != null &&
    (later
      ? page(tn(later, "1 event has come since, which no audit has read.", "{n} events have come since, which no audit has read."))
      : t("No event has come since."))
  }</p>`;
}

/** @param {{audit: Audit, newest: boolean}} props */
function One({ audit, newest }) {
  const old = newest && clock.value - Date.parse(audit.began_at) > OLD_S * 1000;
  return html`
    <p><${Outcome} audit=${audit} />, ${spanText(audit)}, ${t("{span} ago", { span: since(audit.began_at) })}.
      ${" "}${audit.limited && html`<span class="quiet">${t("You are told what is about your own tenants' jobs.")}</span>`}</p>
    <${Extent} audit=${audit} newest=${newest} />
    ${old && html`<p class="quiet">${tx("There was none since: {command} publishes one each ten minutes.", { command: html`<code>ces audit --publish --every 10m</code>` })}</p>`}
    <${Findings} audit=${audit} />
    <${Promises} audit=${audit} />
    <${NotChecked} audit=${audit} />
    <${Peaks} audit=${audit} />
    <${Part} title=${t("The audit")}><${Facts} items=${[
      [t("Events"), tn(audit.events, "1 event", "{n} events")],
      [t("Published"), tx("{time} by {name}", { time: moment(audit.published_at, true), name: html`<${Name}>${audit.published_by}<//>` })],
      [t("Took"), `${audit.took_s.toFixed(1)} s`],
      [t("Auditor"), t("version {version}", { version: plain(audit.version) })],
      audit.plans != null && [t("Plans"), audit.plans.toLocaleString()],
      audit.held != null && [t("Held at the end"), tn(audit.held, "1 allocation", "{n} allocations")],
    ]} /><//>`;
}

/** @returns {import("../parts/rows.js").Column<Audit>[]} */
const historyColumns = () => [
  {
    id: "time",
    title: t("Time"),
    track: "minmax(8em, .6fr)",
    cell: (audit) => html`<a href=${href("audit", audit.id)}>${moment(audit.began_at, true)}</a>`,
  },
  { id: "outcome", title: t("Outcome"), track: "minmax(10em, 1fr)", cell: (audit) => html`<${Outcome} audit=${audit} />` },
  { id: "events", title: t("Events"), track: "minmax(10em, .8fr)", cell: spanText },
  {
    id: "by",
    title: t("Published by"),
    track: "minmax(8em, .8fr)",
    cell: (audit) => html`<${Name}>${audit.published_by}<//>`,
  },
];

function History() {
  const { items, more, busy, problem, next } = usePages("/v1/audits?limit=50");
  return html`<${Part} title=${t("Audits so far")}>
    <${ProblemBox} problem=${problem} />
    <${Rows} caption=${t("Audits so far")} columns=${historyColumns()} items=${items} param="history"
      keyOf=${(/** @type {Audit} */ audit) => audit.id} empty=${busy ? t("Loading…") : DASH} />
    ${more && html`<p><button type="button" aria-disabled=${busy} onClick=${next}>${t("Show earlier ones")}</button></p>`}
  <//>`;
}

/** Where nobody has published any. */
const None = () => html`<div class="empty">
  <p>${t("No audit was published in the last days. An auditor replays the event log with books of its own, and publishes what it finds:")}</p>
  <p><code>ces audit --publish</code> ${t("once")}, <code>ces audit --publish --every 10m</code> ${t("until you end it")}</p>
</div>`;

/** @param {{path: string[]}} props */
export default function Audits({ path: [, asked] }) {
  const list = useAnswer("/v1/audits?limit=1", { every: EVERY_S });
  const newest = list.data?.items[0]?.id;
  const id = asked || newest;
  const { data, problem, again } = useAnswer(id ? route`/v1/audits/${id}` : null);
  const loading = !list.problem && (!list.data || (id && !data && !problem));
  return html`<${Head} title=${t("Audit")}>${
    asked && asked !== newest && html`<a href=${href("audit")}>${t("Show the last one")}</a>`
  }<//>
    <${ProblemBox} problem=${problem ?? list.problem} again=${again} />
    ${loading && html`<p class="quiet">${t("Loading…")}</p>`}
    ${list.data && !id && html`<${None} />`}
    ${data && html`<${One} audit=${data} newest=${data.id === newest} />`}
    ${newest && html`<${History} key=${newest} />`}`;
}
