/** The same as a table: the nodes and links of the part that is seen. */
import { nodes } from "../live.js";
import { linkColumns, nodeColumns } from "../parts/network.js";
import { Part } from "../parts/facts.js";
import { Rows } from "../parts/rows.js";
import { html, Name, plain, State, t, tn, To } from "../show.js";
import { seen } from "./camera.js";
import { found, graph, light } from "./model.js";
import { seenNow } from "./surface.js";

/** @typedef {import("../live.js").Item} Item */
/** @typedef {import("./graph.js").Vertex} Vertex */

/** @returns {(vertex: Vertex) => boolean} whether it lies in the part of the map that was seen last */
function inPicture() {
  const now = seenNow.value;
  if (!now || now.whole || !now.size.width) return () => true;
  const { left, right, top, bottom } = seen(now.camera, now.size);
  return ({ x, y }) => x >= left && x <= right && y >= top && y <= bottom;
}

/** Those that have joined have a page. @param {Item} node */
const nameCell = (node) => (node.absent ? html`<${Name}>${node.name}<//> <${State} state="absent" word=${t("not joined")} />` : html`<${To} path=${["nodes", node.name]}>${node.name}<//>`);

/** Nodes and links in view. */
export function MapTable() {
  const fits = inPicture();
  const lit = light.value && !found.value ? light.value.vertices : found.value && new Set(found.value);
  const vertices = [...graph.value.vertices.values()].filter((vertex) => fits(vertex) && (!lit || lit.has(vertex)));
  const kept = new Set(vertices);
  const names = vertices.flatMap(({ members }) => members);
  const shown = names.map((name) => ({ ...(nodes.value.get(name) ?? { absent: true, state: null, labels: {}, arch: "", runtime: "", network: "" }), name }));
  const edges = [...graph.value.edges.values()].filter(({ from, to }) => kept.has(from) && kept.has(to)).flatMap((edge) => edge.links);
  const [first, ...others] = nodeColumns();
  const total = graph.value.vertexOf.size;
  return html`
    ${names.length < total && html`<p>${t("{shown} of {total} nodes are in view.", { shown: names.length, total })} <button type="button" onClick=${() => (seenNow.value = null)}>${t("Show everything")}</button></p>`}
    <${Part} title=${t("Nodes")} note=${names.length}>
      <${Rows} caption=${tn(names.length, "1 node of the map", "{n} nodes of the map")} columns=${[{ ...first, cell: nameCell }, ...others]} items=${shown} keyOf=${(/** @type {Item} */ node) => node.name} usual="name" param="nodes" empty=${t("No node is in view.")} />
    <//>
    <${Part} title=${t("Links")} note=${edges.length}>
      <${Rows} caption=${tn(edges.length, "1 link of the map", "{n} links of the map")} columns=${linkColumns()} items=${edges} keyOf=${(/** @type {Item} */ link) => plain(`${link.src}>${link.dst}`)} usual="link" param="links" empty=${t("No link is in view.")} />
    <//>
  `;
}
