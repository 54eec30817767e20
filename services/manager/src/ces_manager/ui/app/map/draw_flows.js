/** Flows on a canvas: an arrow from end to end, bent to the right of its direction, so that the way back lies beside it. */
import { distanceToLine } from "./grid.js";
import { radiusOf } from "./sizes.js";

/** @typedef {import("./job_graph.js").Arrow} Arrow */
/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {{x1: number, y1: number, cx: number, cy: number, x2: number, y2: number}} Curve a quadratic one, in pixels */

const BEND = 0.17; // of the length, by which the first arrow between two leaves the straight line
const MORE = 0.12; // by which each further one does
const LEAST = 14; // pixels, that arrows over short links can be told from them
const NEAR = 6; // pixels beside it that still count
const STEPS = 14; // pieces of a curve, for its distance to the pointer
const HEAD = 8;

/** @param {Arrow} arrow @param {Sheet} sheet @returns {Curve | null} null where its ends touch */
export function curveOf({ from, to, rank }, { k, s, ox, oy }) {
  const [ax, ay, bx, by] = [from.x * k + ox, from.y * k + oy, to.x * k + ox, to.y * k + oy];
  const length = Math.hypot(bx - ax, by - ay);
  const [r1, r2] = [radiusOf(from, s) + 3, radiusOf(to, s) + 4];
  if (length <= r1 + r2) return null;
  const off = Math.max(LEAST * (rank + 1), length * (BEND + MORE * rank)) * 2; // a curve reaches half as far as its control point
  const [cx, cy] = [(ax + bx) / 2 - ((by - ay) / length) * off, (ay + by) / 2 + ((bx - ax) / length) * off];
  const toward = Math.hypot(cx - ax, cy - ay);
  return { cx, cy, x1: ax + ((cx - ax) / toward) * r1, y1: ay + ((cy - ay) / toward) * r1, x2: bx + ((cx - bx) / toward) * r2, y2: by + ((cy - by) / toward) * r2 };
}

/** @param {Curve} curve @param {number} at 0 to 1 @returns {[number, number]} */
export function pointOn({ x1, y1, cx, cy, x2, y2 }, at) {
  const [a, b, c] = [(1 - at) ** 2, 2 * at * (1 - at), at ** 2];
  return [a * x1 + b * cx + c * x2, a * y1 + b * cy + c * y2];
}

/** @param {Curve} curve @param {number} x @param {number} y @returns {number} how far a point is from it */
export function distanceToCurve(curve, x, y) {
  let least = Infinity;
  let before = pointOn(curve, 0);
  for (let step = 1; step <= STEPS; step++) {
    const next = pointOn(curve, step / STEPS);
    least = Math.min(least, distanceToLine(x, y, ...before, ...next));
    before = next;
  }
  return least;
}

/** @param {Arrow[]} arrows @param {Sheet} sheet @param {number} x in the picture @param {number} y @returns {import("./view.js").Selection | null} the flow that is drawn there */
export function flowAt(arrows, sheet, x, y) {
  let [best, least] = ["", NEAR];
  for (const arrow of arrows) {
    const curve = curveOf(arrow, sheet);
    const distance = curve ? distanceToCurve(curve, x, y) : Infinity;
    if (distance <= least) [best, least] = [arrow.key, distance];
  }
  return best ? { kind: "flow", key: best } : null;
}

/** @param {CanvasRenderingContext2D} ctx @param {Arrow[]} arrows @param {Sheet} sheet @param {import("./palette.js").Palette} palette */
export function drawFlows(ctx, arrows, sheet, palette) {
  ctx.lineCap = "round";
  ctx.lineJoin = "round";
  for (const arrow of arrows) {
    const curve = curveOf(arrow, sheet);
    if (!curve) continue;
    const { x1, y1, cx, cy, x2, y2 } = curve;
    const chosen = arrow.state === "chosen";
    const colour = arrow.short ? palette.bad : chosen ? palette.accent : palette.flow;
    ctx.globalAlpha = arrow.state === "back" ? 0.35 : 1;
    // Around it the ground, so that it is seen above links and hulls.
    for (const [style, width] of /** @type {[string, number][]} */ ([[palette.ground, 5], [colour, chosen ? 2.5 : 1.75]])) {
      ctx.strokeStyle = style;
      ctx.lineWidth = width;
      ctx.beginPath();
      ctx.moveTo(x1, y1);
      ctx.quadraticCurveTo(cx, cy, x2, y2);
      ctx.stroke();
    }
    head(ctx, curve, colour, chosen ? HEAD * 1.25 : HEAD);
  }
  ctx.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} ctx @param {Curve} curve @param {string} colour @param {number} size */
function head(ctx, { cx, cy, x2, y2 }, colour, size) {
  const angle = Math.atan2(y2 - cy, x2 - cx);
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x2 + Math.cos(angle) * 2, y2 + Math.sin(angle) * 2);
  for (const side of [0.42, -0.42]) ctx.lineTo(x2 - Math.cos(angle + side) * size, y2 - Math.sin(angle + side) * size);
  ctx.closePath();
  ctx.fill();
}
