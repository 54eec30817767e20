/** Everything on the map that changes with the values only: painted onto a sheet, which is then moved about. */
import { percent, plain, rate, t, tn } from "../show.js";
import { drawAreas, drawMedia, endsOf, reach, titlePlace } from "./draw_areas.js";
import { drawLabels } from "./draw_labels.js";
import { drawLinks, drawStrokes, strokeOf } from "./draw_links.js";
import { drawNodes, spotsOf } from "./draw_nodes.js";
import { selectionOf } from "./hits.js";
import { RINGS_FROM } from "./sizes.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./graph.js").Edge} Edge */
/** @typedef {import("./palette.js").Palette} Palette */
/** @typedef {import("./draw_links.js").Sheet} Sheet */
/** @typedef {import("./draw_labels.js").Label} Label */
/** @typedef {import("./view.js").Selection} Selection */
/** @typedef {{vertices: Set<Vertex>, edges: Map<Edge, boolean>}} Light what is lit; of links, whether they carry less than they should */
/**
 * @typedef {object} Scene
 * @property {Graph} graph
 * @property {Light | null} light
 * @property {Selection | null} selection
 * @property {string} centre the node around which the map is drawn
 */

const MANY = 2000; // links drawn with contents at once

/** @param {Graph} graph @param {import("./camera.js").Bounds | null} bounds @returns {number} the zoom from which links are drawn with contents */
export function nearFrom(graph, bounds) {
  if (!bounds || graph.edges.size <= MANY) return 0.4;
  const area = Math.max(1, (bounds.right - bounds.left) * (bounds.bottom - bounds.top));
  // At this zoom a picture of usual size shows so many of them.
  return Math.min(1.2, Math.max(0.4, Math.sqrt((graph.edges.size * 1e6) / (area * MANY))));
}

/** @param {CanvasRenderingContext2D} ctx @param {Scene} scene @param {Sheet} sheet @param {Palette} palette @returns {import("./draw_labels.js").Written[]} the names on it */
export function paint(ctx, { graph, light, selection, centre }, sheet, palette) {
  const selected = (/** @type {string} */ kind) => (selection?.kind === kind ? selection.key : undefined);
  ctx.fillStyle = palette.ground;
  ctx.fillRect(0, 0, sheet.width, sheet.height);
  drawAreas(ctx, graph.areas.values(), sheet, palette, selected("group"));
  drawMedia(ctx, graph.media.values(), sheet, palette, selected("medium"));
  drawLinks(ctx, graph.edges.values(), sheet, palette);
  const spots = spotsOf(graph.vertices.values(), sheet);
  drawNodes(ctx, spots, palette);
  if (light) drawLight(ctx, light, sheet, palette);
  const shown = light ? spots.filter(({ vertex }) => light.vertices.has(vertex)) : spots;
  const labels = [...nameLabels(shown, light, selection, centre, palette), ...(light ? [] : titles(graph, sheet, palette))];
  return drawLabels(ctx, labels, light ? shown : spots, sheet, palette);
}

/** Everything steps back, and what is lit is drawn again above it. @param {CanvasRenderingContext2D} ctx @param {Light} light @param {Sheet} sheet @param {Palette} palette */
function drawLight(ctx, { vertices, edges }, sheet, palette) {
  ctx.globalAlpha = 0.72;
  ctx.fillStyle = palette.ground;
  ctx.fillRect(0, 0, sheet.width, sheet.height);
  ctx.globalAlpha = 1;
  const strokes = [...edges.keys()].map((edge) => strokeOf(edge, sheet)).filter((stroke) => stroke !== null);
  ctx.lineCap = "round";
  for (const { edge, x1, y1, x2, y2, width } of strokes) {
    ctx.strokeStyle = edges.get(edge) ? palette.bad : palette.accent;
    ctx.lineWidth = width + 5;
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    ctx.stroke();
  }
  drawStrokes(ctx, strokes.map((stroke) => ({ ...stroke, width: Math.max(stroke.width, 2) })), { ...sheet, k: Math.max(sheet.k, 0.7) }, palette);
  drawNodes(ctx, spotsOf(vertices, sheet), palette);
}

/** @param {import("./draw_nodes.js").Spot[]} spots @param {Light | null} light @param {Selection | null} selection @param {string} centre @param {Palette} palette @returns {Label[]} */
function nameLabels(spots, light, selection, centre, palette) {
  return spots.map(({ vertex, x, y, r }) => {
    const { key, state, kind, members, ill } = vertex;
    const group = kind === "group";
    const chosen = key === centre || (selection?.kind === "node" && selection.key === key) || (group && selection?.kind === "group" && selection.key === vertex.name);
    // Otherwise those with most links first, since by them others find their way.
    const rank = chosen ? -2 : light?.vertices.has(vertex) || group ? -1 : state !== "ready" && state !== "absent" ? 0 : 1 + 1 / (1 + vertex.out.length);
    const note = group ? tn(members.length, "1 node", "{n} nodes") : state === "ready" || r < RINGS_FROM ? undefined : state === "absent" ? t("not joined") : t(state);
    return { text: plain(vertex.name), note, noteColour: group && !ill ? palette.muted : palette.state[state], x, y, r, rank, selects: selectionOf(vertex) };
  });
}

/** Names and loads of media, and names of areas. @param {Graph} graph @param {Sheet} sheet @param {Palette} palette @returns {Label[]} */
function titles(graph, sheet, palette) {
  const found = [];
  for (const area of graph.areas.values()) {
    if (area.folded) continue;
    const place = titlePlace(area.members, sheet);
    found.push({ ...place, y: place.y - reach(sheet.k) * 0.2, r: 0, rank: -1, title: true, text: plain(area.value), colour: palette.text, selects: /** @type {Selection} */ ({ kind: "group", key: area.value }) });
  }
  for (const medium of graph.media.values()) {
    const { name, bandwidth, reserved } = medium;
    found.push({ ...titlePlace(endsOf(medium), sheet), r: 0, rank: 0.5, title: true, colour: palette.medium, selects: /** @type {Selection} */ ({ kind: "medium", key: name }), text: t("{medium}: {reserved} of {bandwidth}", { medium: plain(name), reserved: percent(reserved, bandwidth), bandwidth: rate(bandwidth) }) });
  }
  return found;
}
