/** What is drawn at a point of the map: a node before a link, a link before a name. */
import { toPicture } from "./camera.js";
import { distanceToLine } from "./grid.js";
import { scaleOf, widthScaleOf } from "./sheet.js";
import { gapOf, LARGEST, radiusOf, widthOf } from "./sizes.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Edge} Edge */
/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./camera.js").Size} Size */
/** @typedef {import("./view.js").Selection} Selection */

const NEAR = 5; // pixels beside it that still count

/** @param {Vertex} vertex @returns {Selection} */
export const selectionOf = (vertex) => (vertex.kind === "group" ? { kind: "group", key: vertex.name } : { kind: "node", key: vertex.key });

/**
 * @param {Graph} graph @param {import("./grid.js").Grid} grid
 * @param {number} x in units of the map @param {number} y @param {number} k zoom @param {import("./sheet.js").Grain} grain
 * @returns {Selection | null}
 */
export function hitAt(graph, grid, x, y, k, grain) {
  const s = scaleOf(k, grain);
  /** @type {{vertex: Vertex, distance: number} | null} */
  let best = null;
  for (const key of grid.near(x, y, (LARGEST + NEAR) / k, "vertices")) {
    const vertex = graph.vertices.get(key);
    if (!vertex) continue;
    const distance = Math.hypot(vertex.x - x, vertex.y - y) * k - radiusOf(vertex, s);
    if (distance < NEAR && (!best || distance < best.distance)) best = { vertex, distance };
  }
  if (best) return selectionOf(best.vertex);
  const edge = nearestEdge(graph, grid, x, y, k, widthScaleOf(k, grain));
  return edge ? { kind: "link", key: edge.key } : null;
}

/** @param {import("./draw_labels.js").Written[]} names @param {number} x on the sheet @param {number} y @returns {Selection | null} */
export const nameAt = (names, x, y) => names.find(({ left, right, top, bottom }) => x >= left && x <= right && y >= top && y <= bottom)?.selects ?? null;

/** @param {Graph} graph @param {import("./grid.js").Grid} grid @param {number} x @param {number} y @param {number} k @param {number} w scale of widths @returns {Edge | null} */
function nearestEdge(graph, grid, x, y, k, w) {
  const far = NEAR + 16;
  let [best, least] = [/** @type {Edge | null} */ (null), NEAR];
  for (const key of grid.near(x, y, far / k, "edges")) {
    const edge = graph.edges.get(key);
    if (!edge) continue;
    const { from, to } = edge;
    const width = widthOf(edge.capacity, w);
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const off = edge.twin ? (width + gapOf(w)) / 2 / k : 0;
    const [nx, ny] = [(-(to.y - from.y) / length) * off, ((to.x - from.x) / length) * off];
    const distance = distanceToLine(x, y, from.x + nx, from.y + ny, to.x + nx, to.y + ny) * k - width / 2;
    if (distance < least) [best, least] = [edge, distance];
  }
  return best;
}

/** @param {Graph} graph @param {Camera} camera @param {Size} size @returns {Vertex | null} the one nearest to the middle of the picture */
export function nearestToMiddle(graph, camera, size) {
  let [best, least] = [/** @type {Vertex | null} */ (null), Infinity];
  for (const vertex of graph.vertices.values()) {
    const [px, py] = toPicture(camera, size, vertex.x, vertex.y);
    const distance = Math.hypot(px - size.width / 2, py - size.height / 2);
    if (distance < least) [best, least] = [vertex, distance];
  }
  return best;
}
