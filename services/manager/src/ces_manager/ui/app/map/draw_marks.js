/** What is drawn above the sheet in every frame: what is selected, what the pointer is at, and a node that is carried. */
import { strokeOf } from "./draw_links.js";
import { widthOfText } from "./draw_labels.js";
import { selectedVertex } from "./graph.js";
import { sheetOf } from "./sheet.js";
import { radiusOf } from "./sizes.js";
import { neighboursOf } from "./steps.js";

/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./view.js").Selection} Selection */
/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {CanvasRenderingContext2D} Context */

const TIP = 12; // size of its letters

/** @param {Context} ctx @param {Picture} picture */
export function drawMarks(ctx, { scene, hover, camera, size, grain, pixels, palette, marked }) {
  const { graph, selection } = scene;
  const sheet = sheetOf(camera, size, grain, pixels);
  ctx.lineJoin = "round";
  for (const [chosen, colour, wide] of /** @type {[Selection | null, string, number][]} */ ([[hover, palette.edge, 1.5], [selection, palette.accent, 3]])) {
    const vertex = selectedVertex(graph, chosen);
    if (vertex) ring(ctx, vertex, sheet, palette.ground, colour, wide);
    const edge = chosen?.kind === "link" && graph.edges.get(chosen.key);
    const stroke = edge && strokeOf(edge, sheet);
    if (stroke) outline(ctx, stroke, colour, wide);
  }
  if (marked.carried) carry(ctx, marked.carried, graph, sheet, palette);
  if (marked.tip) tip(ctx, marked.tip, size, palette);
}

/** @param {Context} ctx @param {Vertex} vertex @param {import("./sheet.js").Sheet} sheet @param {string} ground @param {string} colour @param {number} wide */
function ring(ctx, vertex, { k, s, ox, oy }, ground, colour, wide) {
  const r = radiusOf(vertex, s) + 3 + wide / 2;
  for (const [style, width] of /** @type {[string, number][]} */ ([[ground, wide + 3], [colour, wide]])) {
    ctx.strokeStyle = style;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.arc(vertex.x * k + ox, vertex.y * k + oy, r, 0, 2 * Math.PI);
    ctx.stroke();
  }
}

/** Two lines beside a link. @param {Context} ctx @param {import("./draw_links.js").Stroke} stroke @param {string} colour @param {number} wide */
function outline(ctx, { x1, y1, x2, y2, length, width }, colour, wide) {
  const off = width / 2 + 1 + wide / 2;
  const [nx, ny] = [(-(y2 - y1) / length) * off, ((x2 - x1) / length) * off];
  ctx.strokeStyle = colour;
  ctx.lineWidth = wide;
  ctx.lineCap = "round";
  ctx.beginPath();
  ctx.moveTo(x1 + nx, y1 + ny);
  ctx.lineTo(x2 + nx, y2 + ny);
  ctx.moveTo(x1 - nx, y1 - ny);
  ctx.lineTo(x2 - nx, y2 - ny);
  ctx.stroke();
}

/** A node on its way to another place, with its links. @param {Context} ctx @param {{key: string, x: number, y: number}} carried @param {Graph} graph @param {import("./sheet.js").Sheet} sheet @param {import("./palette.js").Palette} palette */
function carry(ctx, { key, x, y }, graph, { k, s, ox, oy }, palette) {
  const vertex = graph.vertices.get(key);
  if (!vertex) return;
  const [px, py] = [x * k + ox, y * k + oy];
  ctx.strokeStyle = palette.accent;
  ctx.lineWidth = 1.5;
  ctx.setLineDash([4, 4]);
  ctx.beginPath();
  for (const other of neighboursOf(vertex)) {
    ctx.moveTo(px, py);
    ctx.lineTo(other.x * k + ox, other.y * k + oy);
  }
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillStyle = palette.accent;
  ctx.beginPath();
  ctx.arc(px, py, radiusOf(vertex, s), 0, 2 * Math.PI);
  ctx.fill();
}

/** Some lines of text beside the pointer. @param {Context} ctx @param {{x: number, y: number, lines: string[]}} tip @param {import("./camera.js").Size} size @param {import("./palette.js").Palette} palette */
function tip(ctx, { x, y, lines }, size, palette) {
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  const fonts = lines.map((_, index) => `${index ? 400 : 600} ${TIP}px ${palette.font}`);
  const wide = Math.max(...lines.map((text, index) => ((ctx.font = fonts[index]), widthOfText(ctx, text)))) + 16;
  const tall = lines.length * TIP * 1.4 + 10;
  const left = Math.max(4, Math.min(x + 14, size.width - wide - 4));
  const top = y + 18 + tall > size.height ? Math.max(4, y - tall - 10) : y + 18;
  ctx.fillStyle = palette.ground;
  ctx.strokeStyle = palette.edge;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.roundRect(left, top, wide, tall, 5);
  ctx.fill();
  ctx.stroke();
  lines.forEach((text, index) => {
    ctx.font = fonts[index];
    ctx.fillStyle = index ? palette.muted : palette.text;
    ctx.fillText(text, left + 8, top + 7 + index * TIP * 1.4);
  });
}
