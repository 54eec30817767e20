/**
 * Names on the map. What matters most is written first, and nothing is written over anything: a name without room
 * appears when somebody zooms in or points at it.
 */

/** @typedef {import("./palette.js").Palette} Palette */
/** @typedef {import("./draw_links.js").Sheet} Sheet */
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
 * @property {boolean} [title] of many nodes: larger, and above its place
 * @property {import("./view.js").Selection} [selects] what is selected with it
 */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */
/** @typedef {Label & Box} Written */

const [SIZE, TITLE] = [12, 13];
const LINE = 1.25;
const MOST = 500;
const CELL = 48;

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

  /** @param {Box} box @param {Box} [but] its own */
  hits(box, but) {
    return this.each(box, (cell) => cell.some((other) => other !== but && other.left < box.right && other.right > box.left && other.top < box.bottom && other.bottom > box.top));
  }

  /** @param {Box} box */
  add(box) {
    this.each(box, (cell) => (cell.push(box), false));
  }
}

/** @param {Label} label @param {number} width @param {number} height @returns {[number, number][]} top left corners to try in turn */
function corners({ x, y, r, title }, width, height) {
  if (title) return [[x - width / 2, y - height - 2], [x - width / 2, y - height - 18], [x - width / 2, y + 4]];
  return [
    [x - width / 2, y + r + 2],
    [x - width / 2, y - r - height - 1],
    [x + r + 4, y - height / 2],
    [x - r - width - 4, y - height / 2],
  ];
}

/**
 * @param {Context} ctx
 * @param {Label[]} labels
 * @param {Spot[]} spots what is not to be written over
 * @param {Sheet} sheet
 * @param {Palette} palette
 * @returns {Written[]} what was written, and where
 */
export function drawLabels(ctx, labels, spots, { width, height }, palette) {
  const occupied = new Occupied();
  const own = new Map();
  for (const { vertex, x, y, r } of spots) {
    const box = { left: x - r, right: x + r, top: y - r, bottom: y + r };
    own.set(vertex.key, box);
    occupied.add(box);
  }
  const written = [];
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.lineJoin = "round";
  for (const label of labels.sort((one, other) => one.rank - other.rank)) {
    const size = label.title ? TITLE : SIZE;
    ctx.font = `${label.title ? 650 : 500} ${size}px ${palette.font}`;
    const wide = Math.max(widthOfText(ctx, label.text), label.note ? widthOfText(ctx, label.note) : 0);
    const tall = size * LINE * (label.note ? 2 : 1);
    const free = corners(label, wide, tall).find(([left, top]) => !occupied.hits({ left: left - 2, top, right: left + wide + 2, bottom: top + tall }));
    if (!free) continue;
    const [left, top] = free;
    const box = { left: left - 2, top, right: left + wide + 2, bottom: top + tall };
    occupied.add(box);
    if (box.right < 0 || box.left > width || box.bottom < 0 || box.top > height) continue;
    write(ctx, label, left, top, wide, size, palette);
    written.push({ ...label, ...box });
    if (written.length >= MOST) break;
  }
  return written;
}

/** @param {Context} ctx @param {Label} label @param {number} left @param {number} top @param {number} wide @param {number} size @param {Palette} palette */
function write(ctx, label, left, top, wide, size, palette) {
  const lines = [[label.text, label.colour ?? palette.text], ...(label.note ? [[label.note, label.noteColour ?? palette.muted]] : [])];
  lines.forEach(([text, colour], index) => {
    const x = left + (wide - widthOfText(ctx, text)) / 2;
    const y = top + 1 + index * size * LINE;
    ctx.strokeStyle = palette.ground;
    ctx.lineWidth = 3;
    ctx.strokeText(text, x, y);
    ctx.fillStyle = colour;
    ctx.fillText(text, x, y);
  });
}
