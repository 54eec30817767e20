/** The map by mouse, pen and finger: drag to pan, wheel or two fingers to zoom, click to select. */

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./view.js").Selection} Selection */
/**
 * @typedef {object} Wishes
 * @property {(selection: Selection | null) => void} select
 * @property {(selection: Selection) => void} open
 * @property {(selection: Selection) => string[]} describe
 * @property {() => boolean} arranging whether dragging a node moves it
 * @property {(key: string, x: number, y: number) => void} arrange
 * @property {boolean} [within] whether it is one part of a page, which goes on scrolling below the wheel: that zooms with Ctrl only
 */

const STILL = 4; // pixels that a click may move

/** @param {Picture} picture @param {Wishes} wishes @returns {() => void} ends it */
export function followPointer(picture, wishes) {
  const { canvas, marked } = picture;
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let last = /** @type {Selection | null} */ (null); // what was clicked
  let [dragging, start, carried] = [false, { x: 0, y: 0 }, /** @type {string | null} */ (null)];
  const at = (/** @type {MouseEvent} */ event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };

  /** @param {Selection | null} hit @param {{x: number, y: number}} [point] */
  const hover = (hit, point) => {
    const before = picture.hover;
    picture.hover = hit;
    marked.tip = hit && point ? { ...point, lines: wishes.describe(hit) } : null;
    canvas.style.cursor = hit ? (wishes.arranging() && hit.kind === "node" ? "move" : "pointer") : "";
    if (hit || before) picture.redraw();
  };

  const press = (/** @type {PointerEvent} */ event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    const point = at(event);
    down.set(event.pointerId, point);
    if (down.size > 1) return;
    [dragging, start] = [false, point];
    const hit = wishes.arranging() ? picture.at(point.x, point.y) : null;
    carried = hit?.kind === "node" ? hit.key : null;
  };

  const move = (/** @type {PointerEvent} */ event) => {
    const point = at(event);
    const before = down.get(event.pointerId);
    if (!before) {
      if (!down.size && event.pointerType !== "touch") hover(picture.at(point.x, point.y), point);
      return;
    }
    if (down.size === 2) {
      const [other] = [...down].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
      const spread = (/** @type {{x: number, y: number}} */ each) => Math.hypot(each.x - other.x, each.y - other.y) || 1;
      picture.pan((point.x - before.x) / 2, (point.y - before.y) / 2);
      picture.zoom(spread(point) / spread(before), (point.x + other.x) / 2, (point.y + other.y) / 2);
      dragging = true;
    } else if (dragging || Math.hypot(point.x - start.x, point.y - start.y) > STILL) {
      if (!dragging) hover(null);
      const from = dragging ? before : start;
      dragging = true;
      if (carried === null) picture.pan(point.x - from.x, point.y - from.y);
      else {
        const [x, y] = picture.place(point.x, point.y);
        marked.carried = { key: carried, x, y };
        picture.redraw();
      }
    } else return;
    down.set(event.pointerId, point);
  };

  const release = (/** @type {PointerEvent} */ event) => {
    if (!down.delete(event.pointerId) || down.size) return;
    if (marked.carried) {
      const { key, x, y } = marked.carried;
      marked.carried = null;
      if (event.type === "pointerup") wishes.arrange(key, x, y);
      picture.redraw();
    } else if (!dragging && event.type === "pointerup") {
      const { x, y } = at(event);
      last = picture.at(x, y);
      wishes.select(last);
    }
    carried = null;
  };

  const twice = (/** @type {MouseEvent} */ event) => {
    const { x, y } = at(event);
    // The first click may have moved the map.
    if (last) wishes.open(last);
    else picture.zoom(1.8, x, y);
  };

  const wheel = (/** @type {WheelEvent} */ event) => {
    if (wishes.within && !event.ctrlKey) return;
    event.preventDefault();
    const { x, y } = at(event);
    const lines = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 400 : 1;
    // Two fingers on a touchpad arrive as a wheel with Ctrl, in smaller steps.
    picture.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), x, y);
    hover(null);
  };

  const away = () => hover(null);
  /** @type {[string, (event: any) => void][]} */
  const heard = [["pointerdown", press], ["pointermove", move], ["pointerup", release], ["pointercancel", release], ["pointerleave", away], ["dblclick", twice]];
  for (const [name, listener] of heard) canvas.addEventListener(name, listener);
  canvas.addEventListener("wheel", wheel, { passive: false });
  return () => {
    for (const [name, listener] of heard) canvas.removeEventListener(name, listener);
    canvas.removeEventListener("wheel", wheel);
  };
}
