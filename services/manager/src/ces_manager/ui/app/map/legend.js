/** What the signs on the map mean, and its keys. */
import { html, State, t } from "../show.js";
import { RINGS } from "./describe.js";
import { mapKeys } from "./keyboard.js";
import { view } from "./view.js";

const ring = (/** @type {number} */ r, /** @type {number} */ share) => {
  const angle = 2 * Math.PI * share - Math.PI / 2;
  return `M20 ${20 - r}A${r} ${r} 0 ${share > 0.5 ? 1 : 0} 1 ${20 + r * Math.cos(angle)} ${20 + r * Math.sin(angle)}`;
};

const NODE = html`<svg viewBox="0 0 40 40" aria-hidden="true"><circle class="track" cx="20" cy="20" r="15" /><path class="committed" d=${ring(15, 0.6)} /><circle class="track thin" cx="20" cy="20" r="9.5" /><path class="used thin" d=${ring(9.5, 0.4)} /><circle class="ready" cx="20" cy="20" r="4" /></svg>`;
const WIRE = html`<svg class="long" viewBox="0 0 80 40" aria-hidden="true"><path class="track" d="M2 14h76M2 26h76" /><path class="committed" d="M2 26h76" /><path class="used thin" d="M2 26h76" /><path class="tip" d="M56 26l-8-5v10zM24 14l8-5v10z" /></svg>`;
const BROKEN = html`<svg class="long" viewBox="0 0 80 40" aria-hidden="true"><path class="bad" d="M2 20h26M52 20h26M34 14l12 12M46 14l-12 12" /></svg>`;
const MEDIUM = html`<svg class="long" viewBox="0 0 80 40" aria-hidden="true"><path class="hull" d="M18 20h44" /><path class="fill" d="M18 20h44" /><path class="track" d="M18 20h44" /></svg>`;
const SWITCH = html`<svg viewBox="0 0 40 40" aria-hidden="true"><path class="outline" d="M11 8h18a3 3 0 0 1 3 3v18a3 3 0 0 1-3 3H11a3 3 0 0 1-3-3V11a3 3 0 0 1 3-3zM14 14l12 12M26 14 14 26" /></svg>`;
const ABSENT = html`<svg viewBox="0 0 40 40" aria-hidden="true"><circle class="outline dashed" cx="20" cy="20" r="12" /></svg>`;
const GROUP = html`<svg viewBox="0 0 40 40" aria-hidden="true"><circle class="track" cx="20" cy="20" r="15" /><path class="committed" d=${ring(15, 0.4)} /><text x="20" y="25">12</text></svg>`;

/** Folded until somebody asks. */
export function Legend() {
  const { name } = RINGS[view.value.rings];
  const rows = [
    [NODE, t("A node: outside what of its {what} is allocated, inside what is used", { what: name() })],
    [GROUP, t("A group of nodes, with how many they are")],
    [SWITCH, t("A switch, without capacity")],
    [ABSENT, t("Named by links, and not joined")],
    [WIRE, t("A wire, each direction on its right: its width is the capacity, filled what is reserved, the line inside what is used")],
    [BROKEN, t("A link that is down")],
    [MEDIUM, t("Links that share a medium")],
  ];
  return html`<details class="map-legend">
    <summary>${t("Signs and keys")}</summary>
    <div>
      <dl>${rows.map(([sign, text]) => html`<div><dt>${sign}</dt><dd>${text}</dd></div>`)}</dl>
      <p class="states">${["ready", "unreachable", "contested", "cordoned", "reclaimed"].map((state) => html`<${State} state=${state} /> `)}</p>
      <table class="keys"><tbody>${mapKeys().map(([keys, text]) => html`<tr><th scope="row">${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</th><td>${text}</td></tr>`)}</tbody></table>
    </div>
  </details>`;
}
