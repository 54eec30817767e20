/** What lies beneath nodes and links: hulls of shared media, and areas of nodes that share a label. */
import { boundsOf } from "./camera.js";

/** @typedef {import("./graph.js").Area} Area */
/** @typedef {import("./graph.js").Medium} Medium */
/** @typedef {import("./palette.js").Palette} Palette */
/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{x: number, y: number}} Point */

/** How far a hull or an area reaches beyond its nodes. @param {Sheet} sheet */
export const reach = ({ s }) => Math.max(6, 34 * Math.min(s, 1.6));

/**
 * The hull of a medium follows the links that share it, so that it never swallows a node which has no part in it.
 * @param {Context} ctx @param {Medium} medium @param {Sheet} sheet
 */
function hullPath(ctx, { edges }, { k, ox, oy }) {
  ctx.beginPath();
  for (const { from, to } of edges) {
    ctx.moveTo(from.x * k + ox, from.y * k + oy);
    ctx.lineTo(to.x * k + ox, to.y * k + oy);
  }
}

/** @param {Medium} medium @param {Sheet} sheet @returns {boolean} */
function hullSeen({ edges }, sheet) {
  const { k, ox, oy, width, height } = sheet;
  const far = reach(sheet);
  return edges.some(({ from, to }) => {
    const [x1, y1, x2, y2] = [from.x * k + ox, from.y * k + oy, to.x * k + ox, to.y * k + oy];
    return Math.max(x1, x2) > -far && Math.min(x1, x2) < width + far && Math.max(y1, y2) > -far && Math.min(y1, y2) < height + far;
  });
}

/** @param {Context} ctx @param {Iterable<Medium>} media @param {Sheet} sheet @param {Palette} palette @param {string} [selected] name */
export function drawMedia(ctx, media, sheet, palette, selected) {
  ctx.lineCap = "round";
  ctx.lineJoin = "round";
  for (const medium of media) {
    if (!hullSeen(medium, sheet)) continue;
    const width = reach(sheet) * 1.5;
    // The wider stroke below shows as an outline around the narrower one.
    const edge = medium.name === selected ? 2.5 : 1;
    hullPath(ctx, medium, sheet);
    ctx.strokeStyle = medium.name === selected ? palette.accent : palette.medium;
    ctx.lineWidth = width + 2 * edge;
    ctx.stroke();
    ctx.strokeStyle = palette.mediumFill;
    ctx.lineWidth = width;
    ctx.stroke();
  }
}

/** The corners of the convex hull, counter-clockwise on paper. @param {Point[]} points @returns {Point[]} */
export function convexHull(points) {
  const sorted = [...points].sort((one, other) => one.x - other.x || one.y - other.y);
  const turn = (/** @type {Point} */ o, /** @type {Point} */ a, /** @type {Point} */ b) => (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
  const half = (/** @type {Point[]} */ order) => {
    /** @type {Point[]} */
    const found = [];
    for (const point of order) {
      while (found.length > 1 && turn(found[found.length - 2], found[found.length - 1], point) <= 0) found.pop();
      found.push(point);
    }
    found.pop();
    return found;
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

/** A convex hull with round corners around it. @param {Context} ctx @param {Point[]} corners in pixels @param {number} far */
function roundedPath(ctx, corners, far) {
  ctx.beginPath();
  corners.forEach((corner, index) => {
    const before = corners[(index + corners.length - 1) % corners.length];
    const after = corners[(index + 1) % corners.length];
    const start = Math.atan2(corner.y - before.y, corner.x - before.x) - Math.PI / 2;
    const end = Math.atan2(after.y - corner.y, after.x - corner.x) - Math.PI / 2;
    if (corners.length === 1) ctx.arc(corner.x, corner.y, far, 0, 2 * Math.PI);
    else ctx.arc(corner.x, corner.y, far, start, end);
  });
  ctx.closePath();
}

/** @param {Context} ctx @param {Iterable<Area>} areas @param {Sheet} sheet @param {Palette} palette @param {string} [selected] value */
export function drawAreas(ctx, areas, sheet, palette, selected) {
  const { k, ox, oy } = sheet;
  for (const { value, folded, members } of areas) {
    if (folded) continue;
    const far = reach(sheet) * 1.25;
    const corners = convexHull(members.map(({ x, y }) => ({ x: x * k + ox, y: y * k + oy })));
    if (corners.every(({ x, y }) => x < -far || x > sheet.width + far || y < -far || y > sheet.height + far) && corners.length < 3) continue;
    roundedPath(ctx, corners, far);
    ctx.fillStyle = palette.area;
    ctx.fill();
    ctx.strokeStyle = value === selected ? palette.accent : palette.line;
    ctx.lineWidth = value === selected ? 2.5 : 1;
    ctx.stroke();
  }
}

/** @param {Iterable<Point>} points @param {Sheet} sheet @returns {import("./draw_labels.js").Box} what they and their hull take, in pixels: a title goes beside it */
export function extent(points, sheet) {
  const { k, ox, oy } = sheet;
  const { left, right, top, bottom } = boundsOf(points) ?? { left: 0, right: 0, top: 0, bottom: 0 };
  const far = reach(sheet);
  return { left: left * k + ox - far, right: right * k + ox + far, top: top * k + oy - far, bottom: bottom * k + oy + far };
}

/** @param {Medium} medium @returns {Set<import("./graph.js").Vertex>} the ends of its links */
export function endsOf({ edges }) {
  const found = new Set();
  for (const { from, to } of edges) found.add(from).add(to);
  return found;
}
