/** All directed links: what is reserved beside what is used. */
import { capacityOf, links, shortfalls } from "../live.js";
import { address } from "../main.js";
import { Chips, Filter, matches, typedWords } from "../parts/filter.js";
import { linkColumns } from "../parts/network.js";
import { Rows } from "../parts/rows.js";
import { Head, html, State, t, tx } from "../show.js";

/** @typedef {import("../live.js").Item} Item */

/** @type {Record<string, (link: Item) => boolean>} */
const WHICH = {
  up: (link) => link.state === "up",
  down: (link) => link.state !== "up",
  slow: (link) => link.state === "up" && capacityOf(link) < link.bandwidth,
  short: (link) =>
    [...shortfalls.value.values()].some(({ shortfall }) => shortfall.src === link.src && shortfall.dst === link.dst),
};

/** @param {Item} link @returns {string} all that the filter looks at */
const textOf = (link) => [`${link.src} › ${link.dst}`, link.state, link.kind, link.medium, link.reason].join(" ");

export default function Links() {
  const all = [...links.value.values()];
  const state = address.value.query.get("state") ?? "";
  const words = typedWords();
  const found = all.filter((link) => (WHICH[state]?.(link) ?? true) && matches(words, link, textOf));
  /** @type {Record<string, string>} */
  const said = { slow: t("slower than configured"), short: t("carries less than was given") };
  const choices = Object.entries(WHICH).map(([value, which]) => ({
    value,
    text: html`<${State} state=${said[value] ? "slow" : value} word=${said[value]} />`,
    count: all.filter(which).length,
  }));
  const empty = all.length
    ? t("No link fits the filter.")
    : tx("There are no links yet. {command} says which there are.", {
        command: html`<code>ces topology apply FILE</code>`,
      });
  return html`<${Head} title=${t("Links")} />
    <div class="tools">
      <${Filter} label=${t("Filter by node, state or medium")} shown=${found.length} total=${all.length} />
      <${Chips} name="state" label=${t("State")}
        choices=${choices.filter(({ count, value }) => count || value === state)} />
    </div>
    <${Rows} caption=${t("Links")} columns=${linkColumns()} items=${found}
      keyOf=${(/** @type {Item} */ link) => `${link.src}>${link.dst}`} usual="-reserved" empty=${empty} />`;
}
