/** The map by keys, while it has the focus. */
import { t } from "../show.js";
import { selectedVertex } from "./graph.js";
import { nearestToMiddle, selectionOf } from "./hits.js";
import { ARROWS, endToward, neighbourToward, nextLink } from "./steps.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./view.js").Selection} Selection */
/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./graph.js").Edge} Edge */

const STEP = 60; // pixels
const FACTOR = 1.3;

/** @returns {[string, string][]} keys, and what they do */
export const mapKeys = () => [
  ["← → ↑ ↓", t("Along a link to the neighbour in that direction; without a selection, move the map")],
  ["Shift ←", t("Move the map")],
  [", .", t("The next link of the selected node, and the one before")],
  ["Enter", t("Open the page of what is selected; without a selection, select the node in the middle")],
  ["Esc", t("Select nothing")],
  ["+ -", t("Zoom")],
  ["0", t("Show everything")],
];

/**
 * @param {KeyboardEvent} event
 * @param {Picture} picture
 * @param {{select: (selection: Selection | null) => void, open: (selection: Selection) => void, say: (text: string) => void}} wishes
 */
export function onMapKey(event, picture, wishes) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { graph, selection } = picture.scene;
  const choose = (/** @type {Vertex | Edge | null} */ found) => {
    if (!found) return wishes.say(t("No link leads that way."));
    const [x, y] = "from" in found ? [(found.from.x + found.to.x) / 2, (found.from.y + found.to.y) / 2] : [found.x, found.y];
    picture.reveal(x, y);
    wishes.select("from" in found ? { kind: "link", key: found.key } : selectionOf(found));
  };
  const vertex = selectedVertex(graph, selection) ?? null;
  const edge = (selection?.kind === "link" && graph.edges.get(selection.key)) || null;
  const arrow = ARROWS[event.key];
  if (arrow) {
    if (event.shiftKey || (!vertex && !edge)) picture.pan(-arrow[0] * STEP, -arrow[1] * STEP);
    else choose(edge ? endToward(edge, arrow) : neighbourToward(/** @type {Vertex} */ (vertex), arrow));
  } else if (event.key === "." || event.key === ",") {
    // Links are gone through around the node from which that began, as long as the chosen one is at that node.
    const begun = edge && [edge.from, edge.to].find(({ key }) => key === picture.turning);
    const around = vertex ?? begun ?? edge?.from;
    if (!around) return;
    picture.turning = around.key;
    choose(nextLink(around, edge, event.key === "." ? 1 : -1));
  } else if (event.key === "Enter" || event.key === " ") {
    if (selection) wishes.open(selection);
    else choose(nearestToMiddle(graph, picture.camera, picture.size));
  } else if (event.key === "Escape") {
    if (!selection) return;
    wishes.select(null);
  } else if (event.key === "+" || event.key === "=") picture.zoom(FACTOR);
  else if (event.key === "-") picture.zoom(1 / FACTOR);
  else if (event.key === "0") picture.fit(true);
  else return;
  event.preventDefault();
}
