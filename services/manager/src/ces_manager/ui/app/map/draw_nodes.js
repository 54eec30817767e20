/** Nodes on a canvas: two rings (outside allocated, inside used) around the sign of the state. */
import { loadStep } from "./palette.js";
import { radiusOf, RINGS_FROM } from "./sizes.js";

/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./palette.js").Palette} Palette */
/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{vertex: Vertex, x: number, y: number, r: number}} Spot */

const TOP = -Math.PI / 2;
const TURN = 2 * Math.PI;
const FULL = 0.95;

/** @param {Iterable<Vertex>} vertices @param {Sheet} sheet @returns {Spot[]} those that can be seen */
export function spotsOf(vertices, { k, s, ox, oy, width, height }) {
  const found = [];
  for (const vertex of vertices) {
    const [x, y, r] = [vertex.x * k + ox, vertex.y * k + oy, radiusOf(vertex, s)];
    if (x > -r - 40 && x < width + r + 40 && y > -r - 40 && y < height + r + 40) found.push({ vertex, x, y, r });
  }
  return found;
}

/** @param {Context} ctx @param {Spot[]} spots @param {Palette} palette */
export function drawNodes(ctx, spots, palette) {
  const small = spots.filter(({ r }) => r < RINGS_FROM);
  const large = spots.filter(({ r }) => r >= RINGS_FROM);
  drawSmall(ctx, small, palette);
  const round = large.filter(({ vertex }) => vertex.kind === "node" || vertex.kind === "group");
  ctx.fillStyle = palette.ground;
  for (const { x, y, r } of round) disc(ctx, x, y, r + 1);
  const ringed = round.filter(({ vertex }) => vertex.allocated !== null);
  rings(ctx, ringed, 1, palette.track, () => 1);
  rings(ctx, ringed, 1, palette.committed, ({ vertex }) => vertex.allocated ?? 0);
  const measured = ringed.filter(({ vertex }) => vertex.used !== null);
  const usedBy = (/** @type {Spot} */ { vertex }) => vertex.used ?? 0;
  rings(ctx, measured, 0.68, palette.track, () => 1);
  // A device may use more than the part of it that it offers: that is no alarm.
  const full = (/** @type {Spot} */ spot) => usedBy(spot) > FULL && usedBy(spot) < 2 - FULL;
  rings(ctx, measured.filter((spot) => !full(spot)), 0.68, palette.used, usedBy);
  rings(ctx, measured.filter(full), 0.68, palette.bad, usedBy);
  // Without capacity of this kind, such as nodes without GPUs.
  ctx.strokeStyle = palette.edge;
  ctx.lineWidth = 1;
  for (const { vertex, x, y, r } of round) if (vertex.allocated === null) circle(ctx, x, y, r);
  for (const spot of large) {
    if (spot.vertex.kind === "group") groupSign(ctx, spot, palette);
    else if (spot.vertex.kind === "node") sign(ctx, spot.vertex.state, spot.x, spot.y, spot.r * (spot.vertex.state === "ready" ? 0.26 : 0.5), palette);
    else otherSign(ctx, spot, palette);
  }
}

/** @param {Context} ctx @param {number} x @param {number} y @param {number} r */
function disc(ctx, x, y, r) {
  ctx.beginPath();
  ctx.arc(x, y, r, 0, TURN);
  ctx.fill();
}

/** @param {Context} ctx @param {number} x @param {number} y @param {number} r */
function circle(ctx, x, y, r) {
  ctx.beginPath();
  ctx.arc(x, y, r, 0, TURN);
  ctx.stroke();
}

/** Arcs from the top clockwise. @param {Context} ctx @param {Spot[]} spots @param {number} size of the node's radius @param {string} colour @param {(spot: Spot) => number} share 0 to 1 */
function rings(ctx, spots, size, colour, share) {
  ctx.strokeStyle = colour;
  ctx.lineCap = "butt";
  for (const spot of spots) {
    const part = Math.min(1, share(spot));
    if (part <= 0) continue;
    const wide = Math.max(1.5, spot.r * (size === 1 ? 0.24 : 0.16));
    ctx.lineWidth = wide;
    ctx.beginPath();
    ctx.arc(spot.x, spot.y, spot.r * size - wide / 2, TOP, TOP + part * TURN);
    ctx.stroke();
  }
}

/** The shape of a state, the same as beside its word elsewhere. @param {Context} ctx @param {string} state @param {number} x @param {number} y @param {number} size @param {Palette} palette */
export function sign(ctx, state, x, y, size, palette) {
  ctx.fillStyle = palette.state[state] ?? palette.muted;
  ctx.beginPath();
  if (state === "unreachable" || state === "contested") polygon(ctx, x, y + size * 0.15, size * 1.1, 3);
  else if (state === "reclaimed") polygon(ctx, x, y, size * 1.15, 4);
  else ctx.arc(x, y, size, 0, TURN);
  ctx.fill();
  if (state !== "cordoned") return;
  ctx.fillStyle = palette.ground;
  ctx.fillRect(x - size * 0.65, y - size * 0.2, size * 1.3, size * 0.4);
}

/** @param {Context} ctx @param {number} x @param {number} y @param {number} r @param {number} corners the first one at the top */
function polygon(ctx, x, y, r, corners) {
  for (let corner = 0; corner < corners; corner++) {
    const angle = TOP + (corner * TURN) / corners;
    ctx.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
  }
  ctx.closePath();
}

/** How many nodes it stands for, and how many of them are not ready. @param {Context} ctx @param {Spot} spot @param {Palette} palette */
function groupSign(ctx, { vertex, x, y, r }, palette) {
  const size = Math.max(9, r * 0.5);
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillStyle = palette.text;
  ctx.font = `600 ${size}px ${palette.font}`;
  ctx.fillText(String(vertex.members.length), x, y + size * 0.06);
  if (!vertex.ill) return;
  const [bx, by, br] = [x + r * 0.78, y - r * 0.78, Math.max(6, r * 0.34)];
  ctx.fillStyle = palette.ground;
  disc(ctx, bx, by, br + 1.5);
  ctx.strokeStyle = palette.bad;
  ctx.lineWidth = 1.5;
  circle(ctx, bx, by, br);
  ctx.fillStyle = palette.bad;
  ctx.font = `600 ${br * 1.15}px ${palette.font}`;
  ctx.fillText(String(vertex.ill), bx, by + br * 0.08);
}

/** A switch is a square, what has not joined a broken circle, and a task a filled one. @param {Context} ctx @param {Spot} spot @param {Palette} palette */
function otherSign(ctx, { vertex, x, y, r }, palette) {
  ctx.fillStyle = palette.ground;
  ctx.strokeStyle = vertex.state === "ready" ? palette.edge : (palette.state[vertex.state] ?? palette.edge);
  ctx.lineWidth = 1.5;
  if (vertex.kind === "absent") {
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.arc(x, y, r, 0, TURN);
    ctx.fill();
    ctx.stroke();
    ctx.setLineDash([]);
    return;
  }
  if (vertex.kind === "task") {
    ctx.fillStyle = palette.area;
    ctx.strokeStyle = palette.accent;
    disc(ctx, x, y, r);
    return circle(ctx, x, y, r);
  }
  const half = r * 0.85;
  ctx.beginPath();
  ctx.roundRect(x - half, y - half, 2 * half, 2 * half, half * 0.3);
  ctx.fill();
  ctx.stroke();
  if (vertex.state !== "ready") return sign(ctx, vertex.state, x, y, half * 0.6, palette);
  ctx.beginPath();
  for (const [dx, dy] of [[1, 1], [1, -1]]) {
    ctx.moveTo(x - dx * half * 0.45, y - dy * half * 0.45);
    ctx.lineTo(x + dx * half * 0.45, y + dy * half * 0.45);
  }
  ctx.stroke();
}

/** From afar: the sign alone, of ready nodes coloured by what is allocated. @param {Context} ctx @param {Spot[]} spots @param {Palette} palette */
function drawSmall(ctx, spots, palette) {
  /** @type {Map<string, Spot[]>} */
  const byColour = new Map();
  const ill = [];
  for (const spot of spots) {
    const { vertex } = spot;
    if (vertex.state !== "ready" && vertex.kind === "node") {
      ill.push(spot);
      continue;
    }
    const colour = vertex.kind === "node" && vertex.allocated !== null ? palette.loads[loadStep(palette, vertex.allocated)] : palette.edge;
    const known = byColour.get(colour);
    if (known) known.push(spot);
    else byColour.set(colour, [spot]);
  }
  ctx.strokeStyle = palette.edge;
  ctx.lineWidth = 1;
  for (const [colour, group] of byColour) {
    ctx.fillStyle = colour;
    for (const { vertex, x, y, r } of group) {
      if (vertex.kind === "switch") ctx.fillRect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6);
      else {
        ctx.beginPath();
        ctx.arc(x, y, r, 0, TURN);
        if (vertex.kind !== "absent") ctx.fill();
        ctx.stroke();
      }
    }
  }
  for (const { vertex, x, y, r } of ill) {
    ctx.fillStyle = palette.ground;
    disc(ctx, x, y, r + 2.5);
    sign(ctx, vertex.state, x, y, r + 1, palette);
  }
}
