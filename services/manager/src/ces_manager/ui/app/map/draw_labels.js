/**
 * Names on the map. What matters most is written first, and nothing is written over anything: a name without room
 * appears when somebody zooms in or points at it.
 */

/** @typedef {import("./palette.js").Palette} Palette */
/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {import("./draw_nodes.js").Spot} Spot */
/** @typedef {CanvasRenderingContext2D} Context */
/**
 * @typedef {object} Label
 * @property {string} text
 * @property {string} [note] a second line
 * @property {string} [noteColour]
 * @property {string} [colour]
 * @property {number} x
 * @property {number} y
 * @property {number} r how far around that point nothing may be written
 * @property {number} rank the lowest first
 * @property {Box} [around] of a title: what many nodes take, beside which it is written
 * @property {import("./view.js").Selection} [selects] what is selected with it
 */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */
/** @typedef {Label & Box} Written */

const [SIZE, TITLE] = [12, 13];
const LINE = 1.25;
const MOST = 500;
const CELL = 48;
const MARGIN = 2;

/** @type {Map<string, number>} font and text -> width */
const widths = new Map();

/** @param {Context} ctx @param {string} text @returns {number} */
export function widthOfText(ctx, text) {
  const key = `${ctx.font}|${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 8000) widths.clear();
    widths.set(key, (width = ctx.measureText(text).width));
  }
  return width;
}

/**
 * Corners for a title: beside that part of its place which is seen, if one is.
 * @param {Box} around @param {number} width @param {number} height @param {Box} seen
 * @returns {[number, number][]}
 */
function besides(around, width, height, seen) {
  const visible = around.left < seen.right && around.right > seen.left && around.top < seen.bottom && around.bottom > seen.top;
  const [left, right] = visible ? [Math.max(around.left, seen.left), Math.min(around.right, seen.right)] : [around.left, around.right];
  const [top, bottom] = visible ? [Math.max(around.top, seen.top), Math.min(around.bottom, seen.bottom)] : [around.top, around.bottom];
  const [middle, level] = [(left + right - width) / 2, (top + bottom - height) / 2];
  /** @type {[number, number][]} */
  const found = [
    [middle, top - height], [middle, bottom], [left, top - height], [right - width, top - height], [left, bottom], [right - width, bottom],
    [left - width, level], [right, level], [middle, top - 2 * height], [middle, bottom + height], [middle, top], [left, top], [right - width, top],
  ];
  return visible ? found.map(([px, py]) => [Math.max(seen.left + MARGIN, Math.min(px, seen.right - width - MARGIN)), Math.max(seen.top, Math.min(py, seen.bottom - height))]) : found;
}

/** Which parts of the picture are taken. */
class Occupied {
  constructor() {
    /** @type {Map<number, Box[]>} */
    this.cells = new Map();
  }

  /** @param {Box} box @param {(cell: Box[]) => boolean} look ends the search @returns {boolean} */
  each({ left, top, right, bottom }, look) {
    for (let x = Math.floor(left / CELL); x <= Math.floor(right / CELL); x++) {
      for (let y = Math.floor(top / CELL); y <= Math.floor(bottom / CELL); y++) {
        const key = x * 65536 + y;
        let cell = this.cells.get(key);
        if (!cell) this.cells.set(key, (cell = []));
        if (look(cell)) return true;
      }
    }
    return false;
  }

  /** @param {Box} box */
  hits(box) {
    return this.each(box, (cell) => cell.some((other) => other.left < box.right && other.right > box.left && other.top < box.bottom && other.bottom > box.top));
  }

  /** @param {Box} box */
  add(box) {
    this.each(box, (cell) => (cell.push(box), false));
  }
}

/** @param {Label} label @param {number} width @param {number} height @param {Box} seen @returns {[number, number][]} top left corners to try in turn */
function corners({ x, y, r, around }, width, height, seen) {
  if (around) return besides(around, width, height, seen);
  return [
    [x - width / 2, y + r + 2],
    [x - width / 2, y - r - height - 1],
    [x + r + 4, y - height / 2],
    [x - r - width - 4, y - height / 2],
    ...[r * 0.7 + 2, -r * 0.7 - height - 2].flatMap((dy) => /** @type {[number, number][]} */ ([[x + r * 0.7 + 2, y + dy], [x - r * 0.7 - width - 2, y + dy]])),
  ];
}

/**
 * @param {Context} ctx
 * @param {Label[]} labels
 * @param {Spot[]} spots what is not to be written over
 * @param {Sheet} sheet
 * @param {import("./camera.js").Size} size of its middle, which is seen
 * @param {Palette} palette
 * @returns {Written[]} what was written, and where
 */
export function drawLabels(ctx, labels, spots, { width, height }, size, palette) {
  const [dx, dy] = [(width - size.width) / 2, (height - size.height) / 2];
  const seen = { left: dx, top: dy, right: width - dx, bottom: height - dy };
  const occupied = new Occupied();
  for (const { x, y, r } of spots) {
    const half = r * 0.8; // corners of a square around a disc are free
    occupied.add({ left: x - half, right: x + half, top: y - half, bottom: y + half });
  }
  const written = [];
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.lineJoin = "round";
  for (const label of labels.sort((one, other) => one.rank - other.rank)) {
    const letters = label.around ? TITLE : SIZE;
    ctx.font = `${label.around ? 650 : 500} ${letters}px ${palette.font}`;
    const box = placed(ctx, label, letters, occupied, seen) ?? (label.note ? placed(ctx, { ...label, note: undefined }, letters, occupied, seen) : null);
    if (!box) continue;
    occupied.add(box);
    if (box.right < 0 || box.left > width || box.bottom < 0 || box.top > height) continue;
    write(ctx, box, letters, palette);
    written.push(box);
    if (written.length >= MOST) break;
  }
  return written;
}

/** @param {Context} ctx @param {Label} label @param {number} size @param {Occupied} occupied @param {Box} seen @returns {Written | null} where it finds room, in the part that is seen if possible */
function placed(ctx, label, size, occupied, seen) {
  const wide = Math.max(widthOfText(ctx, label.text), label.note ? widthOfText(ctx, label.note) : 0);
  const tall = size * LINE * (label.note ? 2 : 1);
  let beyond = null;
  for (const [left, top] of corners(label, wide, tall, seen)) {
    const box = { left: left - MARGIN, top, right: left + wide + MARGIN, bottom: top + tall };
    if (occupied.hits(box)) continue;
    if (box.left >= seen.left && box.right <= seen.right && box.top >= seen.top && box.bottom <= seen.bottom) return { ...label, ...box };
    beyond ??= { ...label, ...box };
  }
  return beyond;
}

/** @param {Context} ctx @param {Written} label @param {number} size @param {Palette} palette */
function write(ctx, label, size, palette) {
  const lines = [[label.text, label.colour ?? palette.text], ...(label.note ? [[label.note, label.noteColour ?? palette.muted]] : [])];
  lines.forEach(([text, colour], index) => {
    const x = (label.left + label.right - widthOfText(ctx, text)) / 2;
    const y = label.top + 1 + index * size * LINE;
    ctx.strokeStyle = palette.ground;
    ctx.lineWidth = 3;
    ctx.strokeText(text, x, y);
    ctx.fillStyle = colour;
    ctx.fillText(text, x, y);
  });
}
