/** The map: where everything is, what is promised there, and what it carries. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { links, nodes, pictureAt } from "../live.js";
import { selectedVertex } from "../map/graph.js";
import { JobPanel } from "../map/job_panel.js";
import { Legend } from "../map/legend.js";
import { graph } from "../map/model.js";
import { Panel } from "../map/panel.js";
import { askPlaces, beginPlaces } from "../map/places.js";
import { styled } from "../map/styles.js";
import { Surface } from "../map/surface.js";
import { MapTable } from "../map/table.js";
import { Arranging, Narrowed, PlacesNote, Tools } from "../map/tools.js";
import { view } from "../map/view.js";
import { Head, html, t, tx } from "../show.js";
// All that these need in turn, asked for at once instead of import by import.
import "../map/camera.js";
import "../map/describe.js";
import "../map/draw_areas.js";
import "../map/draw_labels.js";
import "../map/draw_links.js";
import "../map/draw_marks.js";
import "../map/draw_nodes.js";
import "../map/grid.js";
import "../map/hits.js";
import "../map/keyboard.js";
import "../map/layout.js";
import "../map/paint.js";
import "../map/palette.js";
import "../map/picture.js";
import "../map/placement.js";
import "../map/pointer.js";
import "../map/sheet.js";
import "../map/sizes.js";
import "../map/steps.js";
import "../map/trusted.js";
import "../parts/answers.js";
import "../parts/facts.js";
import "../parts/filter.js";
import "../parts/flows.js";
import "../parts/network.js";
import "../parts/rows.js";

askPlaces(); // while the rules come
await styled;

/** Why nothing is drawn. */
function Empty() {
  if (graph.value.vertices.size) return null;
  const { around } = view.value;
  const text = !pictureAt.value
    ? t("Loading…")
    : around && nodes.value.size
      ? t("There is no node of this name on the map.")
      : nodes.value.size || links.value.size
        ? ""
        : tx("No node has joined yet. {command} gives out a token with which one may.", { command: html`<code>ces node token</code>` });
  return text && html`<p class="map-empty"><span>${text}</span></p>`;
}

/** What is selected is not left below what is written about it. @param {import("../map/picture.js").Picture} picture @param {HTMLElement | null} side */
function uncover(picture, side) {
  picture.covered = side && getComputedStyle(side).position === "absolute" ? side.offsetWidth : 0;
  const vertex = selectedVertex(graph.peek(), view.peek().selection);
  if (vertex && picture.covered) picture.reveal(vertex.x, vertex.y);
}

export default function MapPage() {
  const [arranging, setArranging] = useState(false);
  const picture = useRef(/** @type {import("../map/picture.js").Picture | null} */ (null));
  const side = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(beginPlaces, []);
  const { table, selection, job } = view.value;
  const beside = Boolean(selection || job);
  useEffect(() => {
    if (picture.current) uncover(picture.current, side.current);
  }, [beside, selection?.kind, selection?.key, table]);
  return html`<div class="map">
    <${Head} title=${t("Map")} />
    <${Tools} picture=${picture} arranging=${arranging} setArranging=${setArranging} />
    <${Narrowed} />
    ${arranging && !table && html`<${Arranging} />`}
    ${table
      ? html`<${MapTable} />`
      : html`<div class="map-body">
          <div><div class="map-frame"><${Surface} arranging=${arranging} picture=${picture} /><${Empty} /><${PlacesNote} /></div><${Legend} /></div>
          ${beside && html`<div class="map-side" ref=${side}><${JobPanel} /><${Panel} /></div>`}
        </div>`}
  </div>`;
}
