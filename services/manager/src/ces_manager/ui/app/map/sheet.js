/** Where the map lies on a canvas, and how large its signs are there. */
import { boundsOf } from "./camera.js";
import { clamp, radiusOf, widthOf } from "./sizes.js";

/** @typedef {import("./graph.js").Graph} Graph */
/**
 * @typedef {object} Sheet
 * @property {number} k zoom
 * @property {number} s scale of signs: the zoom, or more where there is room for it
 * @property {number} w scale of links' widths: the same, or less where they would cover everything
 * @property {number} ox where the map's origin is
 * @property {number} oy
 * @property {number} width in CSS pixels
 * @property {number} height
 * @property {number} pixel size of one pixel of the screen
 * @property {boolean} near whether links are drawn as strokes with contents
 */

const ROOMY = 20; // pixels: the radius to which signs grow where they have room, however far the map is
const SHARE = 0.4; // of the usual distance to the nearest node, for the radius of a sign
const LOOKED_AT = 100; // nodes whose nearest is looked for
const THINNEST = 0.4; // of its usual width, to which a link is thinned where there are many
const FEW = 600; // links that are always drawn with contents
const MANY = 2000; // links drawn with contents at once

/**
 * @typedef {object} Grain what a map's density allows
 * @property {number} grain by how much signs may be larger than the zoom has it
 * @property {number} roomy the scale that they do not exceed thereby
 * @property {number} ink share of the picture that links cover at zoom 1
 * @property {number} nearFrom the zoom from which links are drawn with contents
 */

/** @param {Graph} graph @returns {Grain} */
export function grainOf({ vertices, edges }) {
  const bounds = boundsOf(vertices.values());
  if (!bounds) return { grain: 1, roomy: 1, ink: 0, nearFrom: 0 };
  const area = Math.max(1, (bounds.right - bounds.left) * (bounds.bottom - bounds.top));
  let radius = 0;
  for (const vertex of vertices.values()) radius += radiusOf(vertex, 1) / vertices.size;
  const grain = Math.max(1, (SHARE * usualDistance([...vertices.values()])) / radius);
  // At that zoom a picture of usual size shows MANY links.
  const crowded = Math.sqrt((edges.size * 1e6) / (area * MANY));
  let ink = 0;
  for (const { from, to, capacity } of edges.values()) ink += (Math.hypot(from.x - to.x, from.y - to.y) * widthOf(capacity, 1)) / area;
  return { grain, roomy: ROOMY / radius, ink, nearFrom: edges.size <= FEW ? 0 : Math.min(1.2, Math.max(0.4, edges.size > MANY ? crowded : 0)) };
}

/** @param {import("./graph.js").Vertex[]} vertices @returns {number} the median distance to the nearest other */
function usualDistance(vertices) {
  const step = Math.ceil(vertices.length / LOOKED_AT);
  const found = [];
  for (let index = 0; index < vertices.length; index += step) {
    const { x, y } = vertices[index];
    let nearest = Infinity;
    for (const other of vertices) if (other !== vertices[index]) nearest = Math.min(nearest, (other.x - x) ** 2 + (other.y - y) ** 2);
    found.push(nearest);
  }
  return Math.sqrt(found.sort((one, other) => one - other)[found.length >> 1]);
}

/** @param {number} k @param {Grain} grain @returns {number} the scale of signs at a zoom */
export const scaleOf = (k, { grain, roomy }) => Math.max(k, Math.min(roomy, k * grain));

/** @param {number} k @param {Grain} grain @returns {number} the scale of links' widths at a zoom: from afar there is more of them in the picture */
export const widthScaleOf = (k, grain) => scaleOf(k, grain) * clamp(k / (grain.ink || 1e-9), THINNEST, 1);

/**
 * @param {import("./camera.js").Camera} camera what lies in its middle
 * @param {import("./camera.js").Size} size
 * @param {Grain} grain
 * @param {number} pixels of the screen per CSS pixel
 * @returns {Sheet}
 */
export function sheetOf({ x, y, k }, { width, height }, grain, pixels) {
  return { k, s: scaleOf(k, grain), w: widthScaleOf(k, grain), ox: width / 2 - x * k, oy: height / 2 - y * k, width, height, pixel: 1 / pixels, near: k >= grain.nearFrom };
}
