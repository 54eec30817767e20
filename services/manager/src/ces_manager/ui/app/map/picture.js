/**
 * The picture of the map: a canvas that is drawn again only where something changed.
 *
 * Everything but the selection is painted onto a larger sheet. Moving about shows another part of that sheet, and while
 * somebody zooms it is shown larger or smaller; it is painted again when the movement rests, or leaves it.
 */
import { boundsOf, fitted, panned, seen, toMap, toPicture, zoomed } from "./camera.js";
import { flowAt } from "./draw_flows.js";
import { drawMarks } from "./draw_marks.js";
import { Grid } from "./grid.js";
import { hitAt, nameAt } from "./hits.js";
import { paint } from "./paint.js";
import { readPalette, watchColours } from "./palette.js";
import { grainOf, sheetOf } from "./sheet.js";
import { clamp } from "./sizes.js";

/** @typedef {import("./paint.js").Scene} Scene */
/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./view.js").Selection} Selection */

const BEYOND = 0.4; // of the picture's size, by which the sheet reaches beyond it on each side
const MOST_PIXELS = 9e6; // of the sheet
const REST_MS = 90; // after which a zoom has come to rest
const QUICK_MS = 9; // a sheet painted as fast as this is painted for every frame
const GLIDE_MS = 220;
const FIRST = "map-drawn"; // marks the first picture for whoever measures

export class Picture {
  /** @param {HTMLCanvasElement} canvas @param {(picture: Picture) => void} moved told when another part is seen */
  constructor(canvas, moved) {
    this.canvas = canvas;
    this.moved = moved;
    this.ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.sheet = document.createElement("canvas");
    this.sheetCtx = /** @type {CanvasRenderingContext2D} */ (this.sheet.getContext("2d", { alpha: false }));
    /** @type {Scene} */
    this.scene = { graph: { vertices: new Map(), edges: new Map(), media: new Map(), areas: new Map(), sites: new Map(), vertexOf: new Map() }, light: null, selection: null, centre: "", arrows: [], notes: new Map() };
    /** @type {Camera} */
    this.camera = { x: 0, y: 0, k: 1 };
    this.size = { width: 0, height: 0 };
    this.pixels = devicePixelRatio;
    /** @type {Selection | null} */
    this.hover = null;
    /** @type {{tip: {x: number, y: number, lines: string[]} | null, carried: {key: string, x: number, y: number} | null}} */
    this.marked = { tip: null, carried: null };
    /** @type {import("./draw_labels.js").Written[]} on the sheet */
    this.names = [];
    this.painted = { x: 0, y: 0, k: 0, width: 0, height: 0 };
    this.stale = true; // the sheet
    this.cost = 0;
    this.opening = true; // nothing was drawn so far
    /** @type {Grid | null} */
    this.grid = null;
    this.turning = ""; // the node whose links are gone through by keys
    this.whole = true;
    this.covered = 0; // pixels on the right that lie below what is written about the selection
    /** @type {import("./camera.js").Bounds | null} */
    this.bounds = null;
    this.grain = grainOf(this.scene.graph);
    /** @type {{from: Camera, to: Camera, start: number} | null} */
    this.glide = null;
    this.asked = 0;
    this.rest = 0;
    this.palette = readPalette(/** @type {HTMLElement} */ (canvas.parentElement));
    const endWatch = watchColours(canvas, () => {
      this.colours = true;
      this.change();
    });
    this.colours = false;
    const observer = new ResizeObserver(() => this.resized());
    observer.observe(canvas);
    this.end = () => {
      endWatch();
      observer.disconnect();
      cancelAnimationFrame(this.asked);
      clearTimeout(this.rest);
    };
    this.resized();
  }

  resized() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const before = this.size;
    this.size = { width, height };
    this.pixels = devicePixelRatio;
    this.canvas.width = Math.round(width * this.pixels);
    this.canvas.height = Math.round(height * this.pixels);
    if (!before.width || this.whole) this.fit(false);
    this.change();
  }

  // What is shown -------------------------------------------------------------------------------------------------

  /** @param {Partial<Scene>} changes */
  show(changes) {
    Object.assign(this.scene, changes);
    if (changes.graph) {
      const before = JSON.stringify(this.bounds);
      this.bounds = boundsOf(changes.graph.vertices.values());
      this.grain = grainOf(changes.graph);
      if (this.grid && !this.grid.fits(changes.graph)) this.grid = null;
      // Until somebody moves it, the picture shows everything.
      if (this.whole && JSON.stringify(this.bounds) !== before) this.fit(false);
    }
    this.change();
  }

  /** The sheet is no longer right. */
  change() {
    this.stale = true;
    this.redraw();
  }

  /** Draw at the next frame, once. */
  redraw() {
    this.asked ||= requestAnimationFrame((now) => {
      this.asked = 0;
      this.frame(now);
    });
  }

  // Moving about --------------------------------------------------------------------------------------------------

  /** @param {Camera} camera @param {boolean} [whole] whether it shows everything, and goes on doing so */
  look(camera, whole = false) {
    this.whole = whole;
    this.glide = null;
    this.camera = camera;
    this.moved(this);
    this.redraw();
  }

  /** @param {Camera} camera @param {boolean} smoothly @param {boolean} [whole] */
  go(camera, smoothly, whole = false) {
    if (!smoothly || matchMedia("(prefers-reduced-motion: reduce)").matches) return this.look(camera, whole);
    this.whole = whole;
    this.glide = { from: this.camera, to: camera, start: performance.now() };
    this.redraw();
  }

  /** Show everything. @param {boolean} smoothly */
  fit(smoothly) {
    if (!this.size.width) return;
    const { x, y, k } = fitted(this.bounds, { ...this.size, width: this.size.width - this.covered });
    this.go({ x: x + this.covered / 2 / k, y, k }, smoothly, true);
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.look(panned(this.camera, dx, dy));
  }

  /** @param {number} factor @param {number} [px] @param {number} [py] what stays where it is; the middle if left out */
  zoom(factor, px = this.size.width / 2, py = this.size.height / 2) {
    this.look(zoomed(this.camera, this.size, px, py, factor));
  }

  /** Move so that a place can be seen, if it cannot. @param {number} x @param {number} y */
  reveal(x, y) {
    const { left, right, top, bottom } = seen(this.camera, this.size);
    const { k } = this.camera;
    const [margin, covered] = [40 / k, this.covered / k];
    if (x > left + margin && x < right - covered - margin && y > top + margin && y < bottom - margin) return;
    this.go({ k, x: x + covered / 2, y }, true);
  }

  // Finding -------------------------------------------------------------------------------------------------------

  /** @param {number} px @param {number} py @returns {Selection | null} what is drawn there */
  at(px, py) {
    this.grid ??= new Grid(this.scene.graph);
    const { painted, size, camera } = this;
    const [x, y] = toMap(camera, size, px, py);
    const hit = hitAt(this.scene.graph, this.grid, x, y, camera.k, this.grain);
    if (hit && hit.kind !== "link") return hit;
    const flow = flowAt(this.scene.arrows, sheetOf(camera, size, this.grain, this.pixels), px, py);
    return flow ?? hit ?? nameAt(this.names, ...toPicture(painted, painted, x, y));
  }

  /** @param {number} px @param {number} py @returns {[number, number]} in units of the map */
  place(px, py) {
    return toMap(this.camera, this.size, px, py);
  }

  // Drawing -------------------------------------------------------------------------------------------------------

  /** @param {number} now */
  frame(now) {
    if (!this.size.width) return;
    if (this.pixels !== devicePixelRatio) this.resized();
    if (this.colours) {
      this.colours = false;
      this.palette = readPalette(/** @type {HTMLElement} */ (this.canvas.parentElement));
    }
    if (this.glide) this.step(now);
    if (this.mustPaint()) this.paintSheet();
    const { ctx, camera, size, pixels, painted, sheet } = this;
    const scale = camera.k / painted.k;
    const [left, top] = toPicture(camera, size, painted.x - painted.width / 2 / painted.k, painted.y - painted.height / 2 / painted.k);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    if (scale === 1) ctx.drawImage(sheet, Math.round(left * pixels), Math.round(top * pixels));
    else {
      ctx.fillStyle = this.palette.ground;
      ctx.fillRect(0, 0, this.canvas.width, this.canvas.height);
      ctx.drawImage(sheet, left * pixels, top * pixels, sheet.width * scale, sheet.height * scale);
      this.settle();
    }
    ctx.setTransform(pixels, 0, 0, pixels, 0, 0);
    drawMarks(ctx, this);
    if (this.opening && this.scene.graph.vertices.size) {
      this.opening = false;
      performance.mark(FIRST, { detail: { nodes: this.scene.graph.vertexOf.size } });
    }
  }

  /** @returns {boolean} whether the sheet has to be painted before the next frame */
  mustPaint() {
    const { painted, camera, size } = this;
    if (!painted.k || this.stale) return true;
    if (painted.k !== camera.k && this.cost < QUICK_MS) return true;
    const [here, there] = [seen(camera, size), seen(painted, painted)];
    const slack = 1 / camera.k;
    return here.left < there.left - slack || here.right > there.right + slack || here.top < there.top - slack || here.bottom > there.bottom + slack;
  }

  /** Paint the sheet in the right size once the zoom rests. */
  settle() {
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.change(), REST_MS);
  }

  paintSheet() {
    const start = performance.now();
    const { size, pixels, camera } = this;
    const fitting = Math.sqrt(MOST_PIXELS / (size.width * size.height * pixels * pixels));
    const beyond = clamp((fitting - 1) / 2, 0, BEYOND);
    const [width, height] = [Math.round(size.width * (1 + 2 * beyond)), Math.round(size.height * (1 + 2 * beyond))];
    if (this.sheet.width !== Math.round(width * pixels) || this.sheet.height !== Math.round(height * pixels)) {
      this.sheet.width = Math.round(width * pixels);
      this.sheet.height = Math.round(height * pixels);
    }
    this.painted = { ...camera, width, height };
    this.sheetCtx.setTransform(pixels, 0, 0, pixels, 0, 0);
    this.names = paint(this.sheetCtx, this.scene, sheetOf(camera, { width, height }, this.grain, pixels), size, this.palette);
    this.stale = false;
    this.cost = performance.now() - start;
  }

  /** @param {number} now */
  step(now) {
    const { from, to, start } = /** @type {{from: Camera, to: Camera, start: number}} */ (this.glide);
    const part = clamp((now - start) / GLIDE_MS, 0, 1);
    const eased = part * (2 - part);
    // Zoom by equal factors in equal times.
    const k = part === 1 ? to.k : from.k * (to.k / from.k) ** eased;
    this.camera = { k, x: from.x + (to.x - from.x) * eased, y: from.y + (to.y - from.y) * eased };
    if (part === 1) this.glide = null;
    this.moved(this);
    this.redraw();
  }
}
