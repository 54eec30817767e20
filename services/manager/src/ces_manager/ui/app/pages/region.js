/** One region: all that it tells of itself, and what it and this one hold for each other. */
import { pictureAt, region as own } from "../live.js";
import { Facts, Part } from "../parts/facts.js";
import { Names } from "../parts/names.js";
import { HoldTables } from "../regions/holds.js";
import { useRegions } from "../regions/known.js";
import { styled } from "../regions/styles.js";
import { Accepts, Block, Borders, CardRooms, CoreRooms, largestText, queueText, RegionState, takenOf } from "../regions/text.js";
import { DASH, Head, href, html, plain, ProblemBox, t } from "../show.js";

await styled;

/** @param {{path: string[]}} props */
export default function Region({ path: [, name] }) {
  const { regions, holds, problems, again } = useRegions();
  const found = regions?.find((each) => each.name === name);
  const sums = found?.summary;
  const unknown = regions ? t("No region of this name is known here.") : t("This cluster is no region, and knows no other.");
  return html`<${Head} title=${name}>${found && html`<${RegionState} region=${found} />`}
      <a href=${href("regions")}>${t("All regions")}</a><//>
    ${problems.map((problem) => html`<${ProblemBox} problem=${problem} again=${again} />`)}
    ${!found && !problems.length && html`<p class="quiet">${regions || (pictureAt.value && !own.value) ? unknown : t("Loading…")}</p>`}
    ${
      found &&
      html`<${Facts} items=${[
        ...(sums ? takenOf(sums) : []),
        sums && [t("Nodes that take work"), sums.nodes],
        sums && [t("Largest free node"), sums.nodes ? largestText(sums) : DASH],
        sums && [t("Queue"), queueText(sums)],
        found.state !== "here" && [t("Takes jobs of"), html`<${Accepts} region=${found} />`],
        [t("Addresses"), html`<${Block} region=${found} />`],
        sums?.borders?.length > 0 && [t("Border links"), html`<${Borders} sums=${sums} />`],
        sums && [t("Datasets"), sums.datasets.length ? html`<${Names} names=${sums.datasets} />` : DASH],
        sums && [t("Database"), html`<code>${plain(sums.epoch)}</code>`],
      ]} />
      ${!sums && html`<p class="quiet">${t("It has told nothing yet.")}</p>`}
      ${sums && html`<${Part} title=${t("Nodes by how many cores are free")}><${CoreRooms} sums=${sums} /><//>`}
      ${sums?.cards.length > 0 && html`<${Part} title=${t("GPU cards by how much of each is free")}><${CardRooms} sums=${sums} /><//>`}`
    }
    ${holds && found && html`<${HoldTables} holds=${holds} region=${found.state === "here" ? "" : name} />`}`;
}
