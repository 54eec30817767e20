/** All nodes: what is allocated beside what is used. */
import { nodes } from "../live.js";
import { address } from "../main.js";
import { Applicants } from "../parts/applicants.js";
import { Chips, Filter, matches, typedWords } from "../parts/filter.js";
import { nodeColumns, nodeStates } from "../parts/network.js";
import { Rows } from "../parts/rows.js";
import { Head, html, State, t, tx } from "../show.js";

const CHOICES = ["ready", "unreachable", "contested", "cordoned", "reclaimed"];

/** @param {import("../live.js").Item} node @returns {string} all that the filter looks at */
const textOf = (node) =>
  [
    node.name,
    ...nodeStates(node),
    node.arch,
    node.runtime,
    node.network,
    ...Object.entries(node.labels ?? {}).map((pair) => pair.join("=")),
    ...(node.datasets ?? []),
  ].join(" ");

export default function Nodes() {
  const all = [...nodes.value].map(([name, node]) => ({ ...node, name }));
  const state = address.value.query.get("state");
  const words = typedWords();
  const found = all.filter((node) => (!state || nodeStates(node).includes(state)) && matches(words, node, textOf));
  const choices = CHOICES.map((value) => ({
    value,
    text: html`<${State} state=${value} />`,
    count: all.filter((node) => nodeStates(node).includes(value)).length,
  }));
  const empty = all.length
    ? t("No node fits the filter.")
    : tx("No node has joined yet. {command} gives out a token with which one may.", {
        command: html`<code>ces node token</code>`,
      });
  return html`<${Head} title=${t("Nodes")} />
    <div class="tools">
      <${Filter} label=${t("Filter by name, state or label")} shown=${found.length} total=${all.length} />
      <${Chips} name="state" label=${t("State")}
        choices=${choices.filter(({ count, value }) => count || value === state)} />
    </div>
    <${Rows} caption=${t("Nodes")} columns=${nodeColumns()} items=${found}
      keyOf=${(/** @type {any} */ node) => node.name} usual="name" empty=${empty} />
    <${Applicants} />`;
}
