/** Above the map: what is looked for, what the rings tell, how nodes are grouped, and where they lie. */
import { useRef } from "../../vendor/preact-hooks.js";
import { may } from "../client.js";
import { nodes, tell } from "../live.js";
import { Actions } from "../parts/facts.js";
import { Filter } from "../parts/filter.js";
import { html, Name, plain, ProblemBox, t, tn } from "../show.js";
import { RINGS } from "./describe.js";
import { labelKeys } from "./graph.js";
import { selectionOf } from "./hits.js";
import { found, graph } from "./model.js";
import { arrange, arrangeAgain, arranged, forgetArranged, places, placesProblem, savePlaces, saved, settling, unsaved } from "./places.js";
import { ALL, FARTHEST, show, view, viewHref } from "./view.js";
import { select } from "./surface.js";

/** @typedef {import("./picture.js").Picture} Picture */

const CROWDED = 150; // nodes beyond which groups begin folded
const STEP = 20; // units of the map by which a button moves a node

/** Look for nodes; Enter goes to the next one that fits. @param {{picture: {current: Picture | null}}} props */
function Find({ picture }) {
  const last = useRef(-1);
  const next = (/** @type {Event} */ event) => {
    event.preventDefault();
    const all = found.value ?? [];
    if (!all.length) return;
    last.current = (last.current + 1) % all.length;
    picture.current?.reveal(all[last.current].x, all[last.current].y);
    select(selectionOf(all[last.current]));
  };
  const shown = (found.value ?? [...graph.value.vertices.values()]).reduce((sum, { members }) => sum + members.length, 0);
  return html`<form class="map-find" onSubmit=${next}><${Filter} label=${t("Find nodes by name, state or label")} shown=${shown} total=${graph.value.vertexOf.size} /></form>`;
}

/** @param {{label: string, value: string, choices: [string, string][], choose: (value: string) => void}} props */
const Choice = ({ label, value, choices, choose }) => html`<label class="map-choice">${label}
  <select value=${value} onChange=${(/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value)}>
    ${choices.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
  </select></label>`;

/** What is shown of the map, and how. */
export function Tools(/** @type {{picture: {current: Picture | null}, arranging: boolean, setArranging: (on: boolean) => void}} */ { picture, arranging, setArranging }) {
  const { rings, by, table } = view.value;
  const keys = labelKeys(nodes.value).filter(({ key, values }) => values > 1 || key === by);
  if (by && !keys.some(({ key }) => key === by)) keys.push({ key: by, values: 0 });
  const group = (/** @type {string} */ key) => show({ by: key || null, around: null, hops: null, fold: key && nodes.value.size > CROWDED ? ALL : null, group: null });
  return html`<div class="tools map-tools">
    <${Find} picture=${picture} />
    <${Choice} label=${t("Rings")} value=${rings} choices=${Object.entries(RINGS).map(([key, { name }]) => [key, name()])} choose=${(/** @type {string} */ key) => show({ rings: key === "cpu" ? null : key })} />
    ${keys.length > 0 && html`<${Choice} label=${t("Group by")} value=${by} choices=${[["", t("nothing")], ...keys.map(({ key }) => [key, plain(key)])]} choose=${group} />`}
    <span class="map-modes">
      ${!table && html`<button type="button" aria-pressed=${arranging} onClick=${() => setArranging(!arranging)}>${t("Arrange")}</button>`}
      <button type="button" aria-pressed=${table} onClick=${() => show({ as: table ? null : "table" })}>${t("As a table")}</button>
    </span>
  </div>`;
}

/** What the address narrows the map to, and how to see more again. */
export function Narrowed() {
  const { around, hops, by, folded } = view.value;
  if (around) {
    return html`<div class="tools map-narrowed"><span>${tn(hops, "1 hop around", "{n} hops around")} <b><${Name}>${around}<//></b></span>
      <span class="map-around">${Array.from({ length: FARTHEST }, (_, index) => index + 1).map((n) => html`<a href=${viewHref({ hops: String(n) })} aria-label=${tn(n, "1 hop", "{n} hops")} aria-current=${n === hops ? "true" : undefined}>${n}</a> `)}</span>
      <a href=${viewHref({ around: null, hops: null })}>${t("Show the whole map")}</a></div>`;
  }
  if (by) {
    const { areas } = graph.value;
    const some = [...areas.values()].some((area) => area.folded);
    const all = [...areas.values()].every((area) => area.folded);
    return html`<div class="tools map-narrowed"><span>${tn(areas.size, "1 group by {label}", "{n} groups by {label}", { label: plain(by) })}</span>
      ${(!all || !areas.size) && html`<a href=${viewHref({ fold: ALL })}>${t("Fold all")}</a>`}
      ${(some || folded.size > 0) && html`<a href=${viewHref({ fold: null })}>${t("Unfold all")}</a>`}</div>`;
  }
  return null;
}

/** Moving nodes, and keeping where they lie. */
export function Arranging() {
  const { selection } = view.value;
  const key = selection?.kind === "node" ? selection.key : "";
  const place = places.value.get(key);
  const move = (/** @type {number} */ dx, /** @type {number} */ dy) => () => {
    if (!place) return tell(t("Select a node first."));
    arrange(new Map([[key, [place[0] + dx * STEP, place[1] + dy * STEP]]]));
  };
  const count = unsaved().size;
  const moves = /** @type {[string, string, number, number][]} */ ([["←", t("Move the selected node to the left"), -1, 0], ["→", t("Move the selected node to the right"), 1, 0], ["↑", t("Move the selected node up"), 0, -1], ["↓", t("Move the selected node down"), 0, 1]]);
  return html`<div class="tools map-narrowed">
    <span>${t("Drag nodes to where they should lie, or move the selected one:")}</span>
    <span class="map-modes">${moves.map(([sign, label, dx, dy]) => html`<button type="button" aria-label=${label} title=${label} aria-disabled=${!place} onClick=${move(dx, dy)}>${sign}</button>`)}</span>
    <button type="button" onClick=${arrangeAgain} aria-disabled=${settling.value}>${t("Lay out again")}</button>
    ${arranged.value.size > 0 && html`<button type="button" onClick=${forgetArranged}>${saved.value?.size ? t("Back to the saved places") : t("Forget what I arranged")}</button>`}
    ${may("operator")
      ? html`<${Actions} actions=${[count > 0 && { text: t("Save for everybody"), act: savePlaces }]} />${count === 0 && html`<span class="quiet">${t("All places are saved.")}</span>`}`
      : arranged.value.size > 0 && html`<span class="quiet">${t("Kept in this browser.")}</span>`}
  </div>`;
}

/** What is going on with places, where something is. */
export function PlacesNote() {
  if (placesProblem.value) return html`<${ProblemBox} problem=${placesProblem.value} />`;
  return settling.value ? html`<p class="quiet map-note" role="status">${t("Finding places for the nodes…")}</p>` : null;
}
