/** The canvas on the page: follows what is to be drawn, and tells what somebody does with it. */
import { effect, signal } from "../../vendor/signals.js";
import { useEffect, useRef } from "../../vendor/preact-hooks.js";
import { tell } from "../live.js";
import { href, html, t } from "../show.js";
import { canvasName, describe } from "./describe.js";
import { selectedVertex } from "./graph.js";
import { mapKeys, onMapKey } from "./keyboard.js";
import { graph, light } from "./model.js";
import { Picture } from "./picture.js";
import { arrange } from "./places.js";
import { followPointer } from "./pointer.js";
import { foldingOther, same, selecting, show, structure, view } from "./view.js";
import { Zoom } from "./zoom.js";

/** @typedef {import("./view.js").Selection} Selection */

const READABLE = 0.9; // zoom at which a node from the address is shown

/** The part of the map that is seen, kept while it is shown as a table. */
export const seenNow = signal(/** @type {{camera: import("./camera.js").Camera, size: import("./camera.js").Size, whole: boolean, of: string} | null} */ (null));

/** @param {Selection | null} selection */
export function select(selection) {
  if (same(selection, view.peek().selection)) return;
  show(selecting(selection));
  tell(selection ? describe(selection, graph.peek(), view.peek()).join(", ") : t("Nothing is selected."));
}

/** @param {Selection} selection */
export function open({ kind, key }) {
  if (kind === "node") location.hash = href("nodes", key);
  else if (kind === "group") show({ ...selecting(null), ...foldingOther(key, view.peek()) });
  else if (kind === "link" && !key.includes("=")) location.hash = href("links", ...key.split(">"));
}

/** Where the picture begins: where it was, at what the address selects, or with everything. @param {Picture} picture */
function begin(picture) {
  const kept = seenNow.peek();
  const { selection } = view.peek();
  const edge = selection?.kind === "link" ? graph.peek().edges.get(selection.key) : undefined;
  const vertex = selectedVertex(graph.peek(), selection) ?? edge?.from;
  if (kept && kept.of === structure.peek()) picture.look(kept.camera, kept.whole);
  else if (vertex && picture.camera.k < READABLE / 2) picture.look({ x: vertex.x, y: vertex.y, k: READABLE });
}

/** @param {{current: Picture | null}} held @param {HTMLCanvasElement} canvas @param {{current: boolean}} arranging @returns {() => void} */
function begun(held, canvas, arranging) {
  const picture = new Picture(canvas, ({ camera, size, whole }) => {
    seenNow.value = { camera, size, whole, of: structure.peek() };
  });
  held.current = picture;
  let shape = structure.peek();
  let empty = true;
  const ends = [
    effect(() => {
      const now = graph.value;
      const kept = structure.peek() === shape;
      shape = structure.peek();
      if (!kept) picture.whole = false; // moved there below instead of at once
      picture.show({ graph: now, centre: view.peek().around });
      if (!kept) picture.fit(true);
      if (empty && now.vertices.size) {
        empty = false;
        begin(picture);
      }
    }),
    effect(() => picture.show({ light: light.value })),
    effect(() => {
      const { selection } = view.value;
      if (!same(selection, picture.scene.selection)) picture.show({ selection });
    }),
    followPointer(picture, {
      select,
      open,
      describe: (selection) => describe(selection, graph.peek(), view.peek()),
      arranging: () => arranging.current,
      arrange: (key, x, y) => arrange(new Map([[key, [x, y]]])),
    }),
    () => picture.end(),
  ];
  return () => {
    held.current = null;
    for (const end of ends) end();
  };
}

/** @param {{arranging: boolean, picture: {current: Picture | null}}} props `picture` is set while it is shown */
export function Surface({ arranging, picture }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const mode = useRef(arranging);
  mode.current = arranging;
  useEffect(() => begun(picture, /** @type {HTMLCanvasElement} */ (canvas.current), mode), []);
  const onKey = (/** @type {KeyboardEvent} */ event) => picture.current && onMapKey(event, picture.current, { select, open, say: tell });
  const { selection } = view.value;
  const chosen = selection ? t("Selected: {what}", { what: describe(selection, graph.value, view.value).join(", ") }) : "";
  return html`<div class="map-picture">
    <canvas ref=${canvas} tabindex="0" role="application" aria-roledescription=${t("map")} aria-label=${canvasName(graph.value)} aria-describedby="map-chosen map-keys" onKeyDown=${onKey}></canvas>
    <span class="unseen" id="map-chosen">${chosen}</span>
    <span class="unseen" id="map-keys">${mapKeys().map(([keys, text]) => `${keys}: ${text}.`).join(" ")}</span>
    <${Zoom} picture=${picture} />
  </div>`;
}
