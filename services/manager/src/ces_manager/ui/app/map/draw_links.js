/**
 * Links on a canvas. A wire is two strokes beside each other, each on the right of its direction: its width tells the
 * capacity, the part of the width that is filled what is reserved, the line inside what is used.
 *
 * Strokes are sorted by style and drawn one by one: without a GPU, one path with thousands of segments takes three
 * times as long, except where lines are one pixel wide.
 */
import { loadStep } from "./palette.js";
import { gapOf, widthOf } from "./sizes.js";

/** @typedef {import("./graph.js").Edge} Edge */
/** @typedef {import("./palette.js").Palette} Palette */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {{edge: Edge, x1: number, y1: number, x2: number, y2: number, length: number, width: number}} Stroke */

const FULL = 0.95; // used beyond this is worth a look

/** @param {Edge} edge @param {Sheet} sheet @param {number} [shift] whether it lies beside its twin @returns {Stroke | null} null where it cannot be seen */
export function strokeOf(edge, { k, w, ox, oy, width, height }, shift = 1) {
  let [x1, y1, x2, y2] = [edge.from.x * k + ox, edge.from.y * k + oy, edge.to.x * k + ox, edge.to.y * k + oy];
  if (Math.max(x1, x2) < -20 || Math.min(x1, x2) > width + 20 || Math.max(y1, y2) < -20 || Math.min(y1, y2) > height + 20) return null;
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return null;
  const thick = widthOf(edge.capacity, w);
  if (edge.twin && shift) {
    const [nx, ny] = [-(y2 - y1) / length, (x2 - x1) / length];
    const off = ((thick + gapOf(w)) / 2) * shift;
    [x1, y1, x2, y2] = [x1 + nx * off, y1 + ny * off, x2 + nx * off, y2 + ny * off];
  }
  return { edge, x1, y1, x2, y2, length, width: thick };
}

/** @param {Context} ctx @param {Stroke} stroke */
function line(ctx, { x1, y1, x2, y2 }) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

/** Lines of a whole stroke's width, or of a part of it. @param {Context} ctx @param {Stroke[]} strokes @param {(stroke: Stroke) => number} widthFor @param {string} colour */
function layer(ctx, strokes, widthFor, colour) {
  /** @type {Map<number, Stroke[]>} */
  const byWidth = new Map();
  for (const stroke of strokes) {
    const width = Math.round(widthFor(stroke) * 2) / 2;
    if (width <= 0) continue;
    const known = byWidth.get(width);
    if (known) known.push(stroke);
    else byWidth.set(width, [stroke]);
  }
  ctx.strokeStyle = colour;
  for (const [width, group] of byWidth) {
    ctx.lineWidth = width;
    for (const stroke of group) line(ctx, stroke);
  }
}

/** @param {Context} ctx @param {Iterable<Edge>} edges @param {Sheet} sheet @param {Palette} palette */
export function drawLinks(ctx, edges, sheet, palette) {
  if (!sheet.near) return drawFar(ctx, edges, sheet, palette);
  const strokes = [];
  for (const edge of edges) {
    const stroke = strokeOf(edge, sheet);
    if (stroke) strokes.push(stroke);
  }
  drawStrokes(ctx, strokes, sheet, palette);
}

/** @param {Context} ctx @param {Stroke[]} strokes @param {Sheet} sheet @param {Palette} palette */
export function drawStrokes(ctx, strokes, sheet, palette) {
  ctx.lineCap = "butt";
  const whole = strokes.filter(({ edge }) => edge.down < edge.links.length);
  const part = (/** @type {Stroke} */ { edge, width }, /** @type {number} */ amount, /** @type {number} */ least) =>
    amount > 0 && edge.capacity > 0 ? Math.max(least, Math.min(1, amount / edge.capacity) * width) : 0;
  layer(ctx, whole, ({ width }) => width, palette.track);
  layer(ctx, whole, (stroke) => part(stroke, stroke.edge.reserved, 1), palette.committed);
  const full = (/** @type {Stroke} */ { edge }) => edge.used > FULL * edge.capacity;
  // Half as wide as its share, so that what is reserved shows on both sides even where all of it is used.
  const usedWidth = (/** @type {Stroke} */ stroke) => part(stroke, stroke.edge.used / 2, Math.min(1, stroke.width / 3));
  layer(ctx, whole.filter((stroke) => !full(stroke)), usedWidth, palette.used);
  layer(ctx, whole.filter(full), usedWidth, palette.bad);
  if (sheet.s > 0.6) for (const stroke of whole) arrow(ctx, stroke, sheet, palette);
  for (const stroke of strokes) if (stroke.edge.down) broken(ctx, stroke, palette);
}

/** Which way it leads. @param {Context} ctx @param {Stroke} stroke @param {Sheet} sheet @param {Palette} palette */
function arrow(ctx, { x1, y1, x2, y2, length, width }, { s }, palette) {
  if (length < 90 * Math.min(s, 1)) return;
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const size = Math.max(4, width * 0.95);
  const at = 0.64; // behind the middle, so that those of both directions do not meet
  const [x, y] = [x1 + (x2 - x1) * at, y1 + (y2 - y1) * at];
  ctx.fillStyle = palette.edge;
  ctx.beginPath();
  ctx.moveTo(x + dx * size, y + dy * size);
  ctx.lineTo(x - dx * size * 0.5 - dy * size * 0.75, y - dy * size * 0.5 + dx * size * 0.75);
  ctx.lineTo(x - dx * size * 0.5 + dy * size * 0.75, y - dy * size * 0.5 - dx * size * 0.75);
  ctx.fill();
}

/** Down: a gap in the middle with a cross in it; of several links as one, the cross alone where others are up. @param {Context} ctx @param {Stroke} stroke @param {Palette} palette */
function broken(ctx, stroke, palette) {
  const { edge, x1, y1, x2, y2, length, width } = stroke;
  const all = edge.down === edge.links.length;
  const size = Math.max(3, width * 0.75);
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  // Beside the middle, so that the crosses of both directions do not cover each other.
  const at = edge.twin ? 0.44 : 0.5;
  const [mx, my] = [x1 + (x2 - x1) * at, y1 + (y2 - y1) * at];
  ctx.strokeStyle = palette.bad;
  if (all) {
    const gap = size * 2;
    ctx.lineWidth = Math.max(1, width * 0.3);
    line(ctx, { ...stroke, x2: mx - dx * gap, y2: my - dy * gap });
    line(ctx, { ...stroke, x1: mx + dx * gap, y1: my + dy * gap });
  }
  ctx.lineWidth = Math.max(1.5, width * 0.35);
  ctx.beginPath();
  for (const turn of [1, -1]) {
    const [cx, cy] = [(dx - turn * dy) * size * 0.75, (dy + turn * dx) * size * 0.75];
    ctx.moveTo(mx - cx, my - cy);
    ctx.lineTo(mx + cx, my + cy);
  }
  ctx.stroke();
}

/** From afar: one thin line for a wire, coloured by the fuller direction. @param {Context} ctx @param {Iterable<Edge>} edges @param {Sheet} sheet @param {Palette} palette */
function drawFar(ctx, edges, sheet, palette) {
  /** @type {Stroke[][]} */
  const byLoad = palette.loads.map(() => []);
  const down = [];
  for (const edge of edges) {
    const { twin } = edge;
    if (twin && edge.from.key > edge.to.key) continue; // drawn with the way back
    const stroke = strokeOf(edge, sheet, 0);
    if (!stroke) continue;
    if (edge.down === edge.links.length || (twin && twin.down === twin.links.length)) down.push(stroke);
    else byLoad[loadStep(palette, Math.max(shareOf(edge), twin ? shareOf(twin) : 0))].push(stroke);
  }
  const thin = sheet.pixel === 1 ? 1 : Math.max(sheet.pixel, 0.8);
  byLoad.forEach((strokes, step) => {
    ctx.strokeStyle = palette.loads[step];
    ctx.lineWidth = thin;
    if (sheet.pixel !== 1) return strokes.forEach((stroke) => line(ctx, stroke));
    ctx.beginPath();
    for (const { x1, y1, x2, y2 } of strokes) {
      ctx.moveTo(x1, y1);
      ctx.lineTo(x2, y2);
    }
    ctx.stroke();
  });
  for (const stroke of down) broken(ctx, { ...stroke, width: 3 }, palette);
}

/** @param {Edge} edge @returns {number} what of its capacity is reserved, 0 to 1 */
export const shareOf = ({ reserved, capacity }) => (capacity > 0 ? Math.min(1, reserved / capacity) : 0);
