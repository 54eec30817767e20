/** The map: where everything is, what is promised there, and what it carries. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { links, nodes, pictureAt } from "../live.js";
import { JobPanel } from "../map/job_panel.js";
import { Legend } from "../map/legend.js";
import { graph } from "../map/model.js";
import { Panel } from "../map/panel.js";
import { beginPlaces } from "../map/places.js";
import { styled } from "../map/styles.js";
import { Surface } from "../map/surface.js";
import { MapTable } from "../map/table.js";
import { Arranging, Narrowed, PlacesNote, Tools } from "../map/tools.js";
import { view } from "../map/view.js";
import { Head, html, t, tx } from "../show.js";

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
  return text && html`<p class="map-empty">${text}</p>`;
}

export default function MapPage() {
  const [arranging, setArranging] = useState(false);
  const picture = useRef(/** @type {import("../map/picture.js").Picture | null} */ (null));
  useEffect(beginPlaces, []);
  const { table, selection, job } = view.value;
  return html`<div class="map">
    <${Head} title=${t("Map")} />
    <${Tools} picture=${picture} arranging=${arranging} setArranging=${setArranging} />
    <${Narrowed} />
    ${arranging && html`<${Arranging} />`}
    ${table
      ? html`<${MapTable} />`
      : html`<div class="map-body">
          <div><div class="map-frame"><${Surface} arranging=${arranging} picture=${picture} /><${Empty} /><${PlacesNote} /></div><${Legend} /></div>
          ${(selection || job) && html`<div class="map-side"><${JobPanel} /><${Panel} /></div>`}
        </div>`}
  </div>`;
}
