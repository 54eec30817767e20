/** How large things are drawn, in CSS pixels. They grow with the zoom within bounds, so that they can be told apart. */

/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./graph.js").Edge} Edge */

/** @param {number} value @param {number} least @param {number} most */
export const clamp = (value, least, most) => Math.min(most, Math.max(least, value));

export const NODE = 16; // radius of a node in units of the map, which are pixels at zoom 1
export const LARGEST = 48; // radius of anything
/** Below this radius a node is drawn as its sign alone. */
export const RINGS_FROM = 7;

/** @param {Vertex} vertex @param {number} s scale of signs @returns {number} radius */
export function radiusOf(vertex, s) {
  if (vertex.kind === "group") return clamp((20 + 3 * Math.log2(vertex.members.length)) * s, 10, LARGEST);
  if (vertex.kind === "node") return clamp(NODE * s, 3.5, 30);
  return clamp(11 * s, 2.5, 20);
}

/** @param {number} capacity in bit/s @param {number} s scale @returns {number} width of a link's stroke: three steps for each factor of 100 */
export const widthOf = (capacity, s) => clamp(2 + 1.4 * Math.log10(capacity / 1e6), 2, 10) * clamp(s, 0.3, 1.6);

/** Between the two strokes of a wire. @param {number} s scale */
export const gapOf = (s) => clamp(2 * s, 0.6, 2.5);
