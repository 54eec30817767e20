/** Jobs that regions hold for each other, and what has become of them. */
import { OVER } from "../live.js";
import { Part } from "../parts/facts.js";
import { Rows } from "../parts/rows.js";
import { clock, DASH, html, Name, since, span, State, t, To } from "../show.js";
import { RegionTo } from "./text.js";

/** @typedef {Record<string, any>} Hold a HoldView of the API */
/** @typedef {{here: Hold[], there: Hold[], more: boolean}} Holds */

/** @param {Hold} hold @returns {boolean} whether it still holds something */
const lasts = (hold) => hold.state !== "released" && !OVER.includes(hold.job_state);

/** @param {Holds | null} holds @param {string} region @returns {{here: number, there: number}} that go on, of that region */
export const countsOf = (holds, region) => ({
  here: (holds?.here ?? []).filter((hold) => hold.region === region && lasts(hold)).length,
  there: (holds?.there ?? []).filter((hold) => hold.region === region && lasts(hold)).length,
});

/** @param {Hold} hold @returns {string} when it ends by itself, or when it ended */
function endsText({ ends, finished_at: finished }) {
  if (finished) return t("{span} ago", { span: since(finished) });
  return ends ? t("in {span}", { span: span((Date.parse(ends) - clock.value) / 1000) }) : DASH;
}

/** @param {boolean} here @returns {import("../parts/rows.js").Column<Hold>[]} `here`: of others' jobs */
const columnsOf = (here) => [
  {
    id: "job",
    title: t("Job"),
    track: "minmax(9em, 1.2fr)",
    by: (hold) => hold.name,
    cell: (hold) => html`<${To} path=${["jobs", hold.job]}>${hold.name}<//>${
      hold.part != null && html` <span class="quiet">${t("part {n}", { n: hold.part })}</span>`
    }`,
  },
  {
    id: "region",
    title: here ? t("Home") : t("Region"),
    track: "minmax(6em, .8fr)",
    by: (hold) => hold.region,
    cell: (hold) => html`<${RegionTo} name=${hold.region} />`,
  },
  {
    id: "tenant",
    title: t("Tenant"),
    track: "minmax(5em, .7fr)",
    by: (hold) => hold.tenant,
    cell: (hold) => html`<${Name}>${hold.tenant}<//>`,
  },
  {
    id: "attempt",
    title: t("Attempt"),
    track: "minmax(4em, .4fr)",
    end: true,
    by: (hold) => hold.attempt,
    cell: (hold) => hold.attempt,
  },
  {
    id: "hold",
    title: t("Hold"),
    track: "minmax(7em, .8fr)",
    by: (hold) => hold.state,
    moves: true,
    cell: (hold) => html`<${State} state=${hold.state} />`,
  },
  {
    id: "state",
    title: t("State"),
    track: "minmax(9em, 1.2fr)",
    by: (hold) => hold.job_state,
    moves: true,
    cell: (hold) => html`<${State} state=${(!here && lasts(hold) && hold.remote_state) || hold.job_state} />${
      hold.unknown_since &&
      html`<span class="why">${t("unknown since {span}", { span: since(hold.unknown_since) })}</span>`
    }`,
  },
  {
    id: "since",
    title: t("Since"),
    track: "minmax(5em, .6fr)",
    end: true,
    by: (hold) => hold.since ?? "",
    cell: (hold) => (hold.since ? t("{span} ago", { span: since(hold.since) }) : DASH),
  },
  {
    id: "ends",
    title: t("Until"),
    track: "minmax(5em, .6fr)",
    end: true,
    by: (hold) => hold.finished_at ?? hold.ends ?? "",
    cell: endsText,
  },
];

/** @param {{holds: Holds, region?: string}} props `region`: with which alone */
export function HoldTables({ holds, region = "" }) {
  const some = (/** @type {Hold[]} */ all) => all.filter((hold) => !region || hold.region === region);
  const table = (/** @type {boolean} */ here, /** @type {string} */ title, /** @type {string} */ empty) => {
    const items = some(here ? holds.here : holds.there);
    return html`<${Part} title=${title} note=${items.length}>
      <${Rows} caption=${title} columns=${columnsOf(here)} items=${items} param=${here ? "here" : "there"} empty=${empty}
        keyOf=${(/** @type {Hold} */ hold) => hold.job} /><//>`;
  };
  return html`
    ${table(false, t("Held by others for this region"), t("No job of this region runs in another one."))}
    ${table(true, t("Held here for others"), t("No job of another region is here."))}
    ${holds.more && html`<p class="quiet">${t("Only the newest are shown.")}</p>`}`;
}
