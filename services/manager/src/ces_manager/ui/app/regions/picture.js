/** This region, and a wire to each of the others: a drawing made of boxes, which a screen reader reads as a list. */
import { DASH, html, Name, t, tn } from "../show.js";
import { countsOf } from "./holds.js";
import { Block, borderOf, borderText, largestText, queueText, RegionState, RegionTo, RoomBar, roomText, takenOf } from "./text.js";

/** @typedef {import("./text.js").Region} Region */

/** @param {{region: Region}} props */
function Box({ region }) {
  const sums = region.summary;
  const own = region.state === "here";
  return html`<div class=${own ? "region-box own" : `region-box${region.state === "old" ? " stale" : ""}`}>
    <h3><${RegionTo} name=${region.name} /> <${RegionState} region=${region} /></h3>
    ${
      sums
        ? html`<dl class="region-sums">${takenOf(sums).map(([name, amount]) => html`<dt>${name}</dt><dd>${amount}</dd>`)}</dl>
      <p>${tn(sums.nodes, "1 node takes work", "{n} nodes take work")}${
        sums.nodes > 0 && html`; ${t("one has up to {amounts} free", { amounts: largestText(sums) })}`
      }</p>
      ${sums.cards.map((/** @type {any} */ room) => html`<${RoomBar} room=${room} /><p><bdi>${roomText(room)}</bdi></p>`)}
      <p>${queueText(sums)}</p>
      <p class="quiet"><${Block} region=${region} /></p>`
        : html`<p class="quiet">${t("It has told nothing yet.")}</p>`
    }
  </div>`;
}

/** Who runs jobs of whom, and what border links there are, as is said on a wire. @param {{region: Region, own?: Region, holds: any}} props */
function Wire({ region, own, holds }) {
  const { here, there } = countsOf(holds, region.name);
  const [out, back] = [borderOf(own, region.name), borderOf(region, own?.name ?? "")];
  const said = [
    out && t("border link there: {text}", { text: borderText(out) }),
    back && t("border link back: {text}", { text: borderText(back) }),
    there > 0 && tn(there, "1 job of ours there", "{n} jobs of ours there"),
    here > 0 && tn(here, "1 job of theirs here", "{n} jobs of theirs here"),
    region.accepts.length > 0 && t("takes jobs of {tenants}", { tenants: region.accepts.join(", ") }),
    region.state !== "silent" && !region.accepts.length && t("takes nobody's jobs"),
  ].filter(Boolean);
  return html`<p class="region-wire quiet">${said.length ? html`<${Name}>${said.join("; ")}<//>` : DASH}</p>`;
}

/** @param {{regions: Region[], holds: any}} props */
export function RegionMap({ regions, holds }) {
  const others = regions.filter(({ state }) => state !== "here");
  const own = regions.find(({ state }) => state === "here");
  return html`<section class="region-map" aria-label=${t("Regions and what they tell of themselves")}>
    ${own && html`<${Box} region=${own} />`}
    ${
      others.length > 0
        ? html`<ul class="region-others">${others.map(
            (region) => html`<li key=${region.name}
        class=${region.state === "ready" && borderOf(own, region.name)?.up ? "bordered" : region.state}>
        <${Wire} region=${region} own=${own} holds=${holds} /><${Box} region=${region} /></li>`,
          )}</ul>`
        : html`<p class="quiet">${t("It knows no other region.")}</p>`
    }
  </section>`;
}
