/** The other regions: what each tells of itself, and what they hold for each other. */
import { pictureAt, region } from "../live.js";
import { Part } from "../parts/facts.js";
import { Rows } from "../parts/rows.js";
import { HoldTables } from "../regions/holds.js";
import { useRegions } from "../regions/known.js";
import { RegionMap } from "../regions/picture.js";
import { styled } from "../regions/styles.js";
import { Accepts, Block, Borders, largestText, queueText, RegionState, RegionTo, roomText, takenOf } from "../regions/text.js";
import { DASH, Head, html, ProblemBox, t, tx } from "../show.js";

await styled;

/** @typedef {import("../regions/text.js").Region} Region */

/** @param {Region[]} regions @returns {(import("../parts/rows.js").Column<Region> | false)[]} */
function columnsOf(regions) {
  const sums = (/** @type {(summary: any) => any} */ show) => (/** @type {Region} */ { summary }) => (summary ? show(summary) : DASH);
  const taken = (/** @type {number} */ place) => sums((summary) => takenOf(summary)[place][1]);
  const used = (/** @type {"cpu" | "memory" | "gpu"} */ kind) => (/** @type {Region} */ { summary }) =>
    summary?.total[kind] ? 1 - summary.free[kind] / summary.total[kind] : -1;
  return [
    {
      id: "region",
      title: t("Region"),
      track: "minmax(7em, 1fr)",
      by: ({ name }) => name,
      cell: ({ name }) => html`<${RegionTo} name=${name} />`,
    },
    {
      id: "state",
      title: t("State"),
      track: "minmax(8em, 1.2fr)",
      by: ({ state }) => state,
      moves: true,
      cell: (each) => html`<${RegionState} region=${each} />`,
    },
    { id: "cpu", title: t("CPU"), track: "minmax(8em, 1fr)", by: used("cpu"), moves: true, cell: taken(0) },
    { id: "memory", title: t("Memory"), track: "minmax(8em, 1fr)", by: used("memory"), moves: true, cell: taken(1) },
    { id: "gpu", title: t("GPU"), track: "minmax(4em, .5fr)", by: used("gpu"), moves: true, cell: taken(2) },
    {
      id: "largest",
      title: t("Largest free node"),
      track: "minmax(8em, 1fr)",
      by: ({ summary }) => summary?.largest.cpu ?? -1,
      moves: true,
      cell: sums((summary) => (summary.nodes ? largestText(summary) : DASH)),
    },
    {
      id: "cards",
      title: t("Cards with room"),
      track: "minmax(8em, 1fr)",
      cell: sums((summary) => (summary.cards.length ? summary.cards.map((/** @type {any} */ room) => html`<div><bdi>${roomText(room)}</bdi></div>`) : DASH)),
    },
    {
      id: "queue",
      title: t("Queue"),
      track: "minmax(8em, 1fr)",
      by: ({ summary }) => summary?.queued ?? -1,
      moves: true,
      cell: sums(queueText),
    },
    regions.some(({ summary }) => summary?.borders?.length) && {
      id: "borders",
      title: t("Border links"),
      track: "minmax(8em, 1fr)",
      full: true,
      cell: sums((summary) => (summary.borders?.length ? html`<${Borders} sums=${summary} />` : DASH)),
    },
    { id: "accepts", title: t("Takes jobs of"), track: "minmax(6em, .7fr)", cell: (each) => html`<${Accepts} region=${each} />` },
    { id: "block", title: t("Addresses"), track: "minmax(8em, .9fr)", cell: (each) => html`<${Block} region=${each} />` },
  ];
}

export default function Regions() {
  const { regions, holds, problems, again } = useRegions();
  if (!region.value)
    return html`<${Head} title=${t("Regions")} /><div class="empty">${
      pictureAt.value
        ? tx("This cluster is no region, and knows no other. {command} starts some on one machine.", {
            command: html`<code>ces up --regions 2</code>`,
          })
        : t("Loading…")
    }</div>`;
  return html`<${Head} title=${t("Regions")} />
    ${problems.map((problem) => html`<${ProblemBox} problem=${problem} again=${again} />`)}
    ${!regions && !problems.length && html`<p class="quiet">${t("Loading…")}</p>`}
    ${
      regions &&
      html`<${RegionMap} regions=${regions} holds=${holds} />
      <${Part} title=${t("The same as a table")}>
        <${Rows} caption=${t("Regions")} columns=${columnsOf(regions)} items=${regions} empty=""
          keyOf=${(/** @type {Region} */ each) => each.name} /><//>`
    }
    ${holds && html`<${HoldTables} holds=${holds} />`}`;
}
