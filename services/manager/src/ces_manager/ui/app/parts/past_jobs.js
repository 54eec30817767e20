/** Jobs as they were: all of them, those that waited, and one on the map. */
import { useEffect } from "../../vendor/preact-hooks.js";
import { jobs, waits } from "../live.js";
import { flows } from "../map/model.js";
import { view, viewHref } from "../map/view.js";
import { DASH, html, Name, plain, rate, rateRange, since, State, t, To } from "../show.js";
import { Names } from "./names.js";
import { startText, whyText } from "./reasons.js";
import { Rows } from "./rows.js";

/** @typedef {any} Job */

/** @returns {Job[]} */
const listed = () => [...jobs.value].map(([id, job]) => ({ ...job, said: job.reason, ...job.waiting, id }));

/** @returns {import("./rows.js").Column<Job>} */
const nameColumn = () => ({
  id: "name",
  title: t("Job"),
  track: "minmax(9em, 1.2fr)",
  by: (job) => job.name,
  cell: (job) => html`<a href=${viewHref({ job: job.id, show: null })}><${Name}>${job.name}<//></a>`,
});

/** @returns {import("./rows.js").Column<Job>[]} */
const columns = () => [
  nameColumn(),
  { id: "state", title: t("State"), track: "minmax(8em, .9fr)", by: (job) => job.state, cell: (job) => html`<${State} state=${job.state} />` },
  { id: "tenant", title: t("Tenant"), track: "minmax(5em, .6fr)", by: (job) => job.tenant, cell: (job) => html`<${Name}>${job.tenant}<//>` },
  { id: "priority", title: t("Priority"), track: "minmax(4em, .4fr)", end: true, by: (job) => job.priority, cell: (job) => job.priority },
  { id: "age", title: t("Age"), track: "minmax(5em, .4fr)", end: true, by: (job) => -Date.parse(job.submitted_at), cell: (job) => since(job.submitted_at) },
  {
    id: "nodes",
    title: t("Nodes"),
    full: true,
    track: "minmax(10em, 2.4fr)",
    cell: (job) => (job.nodes.length ? html`<${Names} names=${job.nodes} place="nodes" />` : job.said ? html`<bdi lang="en">${plain(job.said)}</bdi>` : DASH),
  },
];

/** @returns {import("./rows.js").Column<Job>[]} */
const queueColumns = () => [
  { id: "position", title: t("Position"), track: "minmax(4em, .3fr)", end: true, by: (job) => job.queue_status?.position ?? Infinity, cell: (job) => job.queue_status?.position ?? DASH },
  nameColumn(),
  { id: "waits", title: t("Waits"), track: "minmax(4em, .4fr)", end: true, cell: (job) => since(job.submitted_at) },
  { id: "why", title: t("Why"), track: "minmax(10em, 2.4fr)", full: true, cell: whyText },
  { id: "start", title: t("Start"), track: "minmax(6em, .8fr)", cell: (job) => startText(job.queue_status) },
];

const keyOf = (/** @type {Job} */ job) => job.id;

export const PastJobs = () =>
  html`<${Rows} caption=${t("Jobs then")} columns=${columns()} items=${listed()} keyOf=${keyOf} usual="age"
    empty=${t("No job was under way.")} />`;

/** As they were last told of their places before that instant. */
export const PastQueue = () =>
  html`<${Rows} caption=${t("Queue then")} columns=${queueColumns()} items=${listed().filter(waits)} keyOf=${keyOf}
    usual="position" empty=${t("No job waited.")} />`;

/** The job of the address over the map: what its flows had then. @param {{state: any}} props */
export function PastJob({ state }) {
  const { job: id, flow: chosen } = view.value;
  const job = jobs.value.get(id);
  const own = id ? state.flows.filter((/** @type {any} */ flow) => flow.job === id) : [];
  useEffect(() => {
    flows.value = own;
    return () => void (flows.value = []);
  }, [state, id]);
  if (!id) return null;
  return html`<aside class="map-panel" aria-label=${t("The job on the map")}>
    <a class="map-close" href=${viewHref({ job: null, flow: null })} aria-label=${t("Show no job")} title=${t("Show no job")}>×</a>
    <h2>${job ? html`<${To} path=${["jobs", id]}>${job.name}<//>` : plain(id)}</h2>
    <p>${job ? html`<${State} state=${job.state} />` : t("It was not there, or over.")}</p>
    ${job && !own.length && html`<p class="quiet">${t("It had no bandwidth then.")}</p>`}
    ${own.map((/** @type {any} */ flow) => {
      const key = `${flow.src}>${flow.dst}`;
      return html`<section class="map-flow" key=${key}>
        <h3><${Name}>${flow.src}<//> → <${Name}>${flow.dst}<//></h3>
        <p>${t("{rate} of {range}", { rate: rate(flow.rate), range: rateRange(flow.min, flow.max) })} <a
          href=${viewHref({ flow: chosen === key ? null : key })} aria-current=${chosen === key ? "true" : undefined}>${chosen === key ? t("show all flows") : t("show only this one")}</a></p>
        <p>${flow.path.length > 1 ? plain(flow.path.join(" › ")) : t("within {node}", { node: plain(flow.path[0]) })}</p>
      </section>`;
    })}
  </aside>`;
}
