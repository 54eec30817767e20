/** Everything on the map that changes with the values only: painted onto a sheet, which is then moved about. */
import { percent, plain, rate, t, tn } from "../show.js";
import { drawAreas, drawMedia, endsOf, extent } from "./draw_areas.js";
import { drawFlows } from "./draw_flows.js";
import { drawLabels } from "./draw_labels.js";
import { drawLinks, drawStrokes, strokeOf } from "./draw_links.js";
import { drawNodes, spotsOf } from "./draw_nodes.js";
import { selectionOf } from "./hits.js";
import { NODE, RINGS_FROM } from "./sizes.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./graph.js").Edge} Edge */
/** @typedef {import("./palette.js").Palette} Palette */
/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {import("./draw_labels.js").Label} Label */
/** @typedef {import("./view.js").Selection} Selection */
/** @typedef {{vertices: Set<Vertex>, edges: Map<Edge, boolean>}} Light what is lit; of links, whether they carry less than they should */
/**
 * @typedef {object} Scene
 * @property {Graph} graph
 * @property {Light | null} light
 * @property {Selection | null} selection
 * @property {string} centre the node around which the map is drawn
 * @property {import("./job_graph.js").Arrow[]} arrows flows of the job that is drawn
 * @property {Map<string, import("./job_graph.js").Note>} notes by key of a vertex, below its name, which is written even where others are lit
 */

const LONGEST = 32; // characters of a name
const CROWDED = 150; // nodes of which, from afar, those alone are named by which others find their way
/** @param {CanvasRenderingContext2D} ctx @param {Scene} scene @param {Sheet} sheet @param {import("./camera.js").Size} size of its middle, which is seen @param {Palette} palette @returns {import("./draw_labels.js").Written[]} the names on it */
export function paint(ctx, { graph, light, selection, centre, arrows, notes }, sheet, size, palette) {
  const selected = (/** @type {string} */ kind) => (selection?.kind === kind ? selection.key : undefined);
  ctx.fillStyle = palette.ground;
  ctx.fillRect(0, 0, sheet.width, sheet.height);
  drawAreas(ctx, graph.areas.values(), sheet, palette, selected("group"));
  drawMedia(ctx, graph.media.values(), sheet, palette, selected("medium"));
  drawLinks(ctx, graph.edges.values(), sheet, palette);
  const spots = spotsOf(graph.vertices.values(), sheet);
  drawNodes(ctx, spots, palette);
  if (light) drawLight(ctx, light, sheet, palette);
  drawFlows(ctx, arrows, sheet, palette);
  const shown = light ? spots.filter(({ vertex }) => light.vertices.has(vertex) || notes.has(vertex.key)) : spots;
  const crowded = graph.vertices.size > CROWDED && NODE * sheet.s < RINGS_FROM;
  const labels = [...nameLabels(shown, { light, selection, centre, notes }, crowded, palette), ...(light ? [] : titles(graph, sheet, crowded, palette))];
  return drawLabels(ctx, labels, light ? shown : spots, sheet, size, palette);
}

/** @param {string} text @returns {string} as much of it as has room; the panel and the table have all of it */
function short(text) {
  const shown = plain(text);
  return shown.length > LONGEST ? `${shown.slice(0, LONGEST - 1)}…` : shown;
}

/** Everything steps back, and what is lit is drawn again above it. @param {CanvasRenderingContext2D} ctx @param {Light} light @param {Sheet} sheet @param {Palette} palette */
function drawLight(ctx, { vertices, edges }, sheet, palette) {
  ctx.globalAlpha = 0.72;
  ctx.fillStyle = palette.ground;
  ctx.fillRect(0, 0, sheet.width, sheet.height);
  ctx.globalAlpha = 1;
  // Those that carry less than they should come last, above the others.
  const order = [...edges].sort(([, one], [, other]) => Number(one) - Number(other)).map(([edge]) => edge);
  const strokes = order.map((edge) => strokeOf(edge, sheet)).filter((stroke) => stroke !== null);
  ctx.lineCap = "round";
  for (const { edge, x1, y1, x2, y2, width } of strokes) {
    ctx.strokeStyle = edges.get(edge) ? palette.bad : palette.accent;
    ctx.lineWidth = width + 5;
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    ctx.stroke();
  }
  drawStrokes(ctx, strokes.map((stroke) => ({ ...stroke, width: Math.max(stroke.width, 2) })), { ...sheet, s: Math.max(sheet.s, 0.7) }, palette);
  drawNodes(ctx, spotsOf(vertices, sheet), palette);
}

/** @param {import("./draw_nodes.js").Spot[]} spots @param {Pick<Scene, "light" | "selection" | "centre" | "notes">} scene @param {boolean} crowded @param {Palette} palette @returns {Label[]} */
function nameLabels(spots, { light, selection, centre, notes }, crowded, palette) {
  const named = crowded && !light ? spots.filter(({ vertex: { kind, state, key } }) => kind !== "node" || state !== "ready" || key === centre || key === selection?.key) : spots;
  return named.map(({ vertex, x, y, r }) => {
    const { key, state, kind, ill } = vertex;
    const group = kind === "group";
    const chosen = key === centre || (selection?.kind === "node" && selection.key === key) || (group && selection?.kind === "group" && selection.key === vertex.name);
    // Otherwise those with most links first, since by them others find their way.
    const rank = chosen ? -2 : light?.vertices.has(vertex) || group ? -1 : state !== "ready" && state !== "absent" ? 0 : 1 + 1 / (1 + vertex.out.length);
    const own = notes.get(key);
    if (own) return { text: short(vertex.name), note: short(own.text), noteColour: own.quiet ? palette.muted : palette.accent, colour: own.quiet ? palette.muted : palette.text, x, y, r, rank: own.quiet ? 1 : -2, selects: selectionOf(vertex) };
    const note = group ? (ill ? tn(ill, "1 is not well", "{n} are not well") : undefined) : state === "ready" || r < RINGS_FROM ? undefined : state === "absent" ? t("not joined") : t(state);
    return { text: short(vertex.name), note, noteColour: palette.state[state], x, y, r: chosen ? r + 6 : r, rank, selects: selectionOf(vertex) };
  });
}

/** Names and loads of media, and names of areas; from afar of sites, too. @param {Graph} graph @param {Sheet} sheet @param {boolean} crowded @param {Palette} palette @returns {Label[]} */
function titles(graph, sheet, crowded, palette) {
  /** @type {Label[]} */
  const found = [];
  const add = (/** @type {Iterable<Vertex>} */ members, /** @type {Partial<Label> & {text: string}} */ label) => {
    const around = extent(members, sheet);
    found.push({ x: (around.left + around.right) / 2, y: around.top, r: 0, rank: -1, around, ...label });
  };
  if (crowded && !graph.areas.size) for (const [site, members] of graph.sites) add(members, { text: short(site), colour: palette.muted });
  for (const { value, folded, members } of graph.areas.values()) if (!folded) add(members, { text: short(value), selects: { kind: "group", key: value } });
  for (const medium of graph.media.values()) {
    const { name, bandwidth, reserved } = medium;
    const text = t("{medium}: {reserved} of {bandwidth} reserved", { medium: short(name), reserved: percent(reserved, bandwidth), bandwidth: rate(bandwidth) });
    add(endsOf(medium), { text, rank: 0.5, colour: palette.medium, selects: { kind: "medium", key: name } });
  }
  return found;
}
