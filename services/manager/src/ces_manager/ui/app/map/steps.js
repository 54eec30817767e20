/** Going about the map by keys: along links to a neighbour, and around a node from link to link. Pure. */

/** @typedef {import("./graph.js").Vertex} Vertex */
/** @typedef {import("./graph.js").Edge} Edge */

const WIDEST = Math.PI / 2.6; // how far a neighbour may lie aside of an arrow's direction

/** @type {Record<string, [number, number]>} */
export const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** @param {Vertex} vertex @returns {Set<Vertex>} */
export const neighboursOf = (vertex) => new Set([...vertex.out.map(({ to }) => to), ...vertex.in.map(({ from }) => from)]);

/** @param {number} dx @param {number} dy @param {[number, number]} direction @returns {number} the angle between them */
const aside = (dx, dy, [ax, ay]) => Math.abs(Math.atan2(dx * ay - dy * ax, dx * ax + dy * ay));

/** @param {Vertex} from @param {[number, number]} direction @returns {Vertex | null} the neighbour that lies there best */
export function neighbourToward(from, direction) {
  let [best, least] = [/** @type {Vertex | null} */ (null), Infinity];
  for (const other of neighboursOf(from)) {
    const [dx, dy] = [other.x - from.x, other.y - from.y];
    const angle = aside(dx, dy, direction);
    if (angle > WIDEST) continue;
    const cost = Math.hypot(dx, dy) * (1 + 2 * angle);
    if (cost < least) [best, least] = [other, cost];
  }
  return best;
}

/** @param {Edge} edge @param {[number, number]} direction @returns {Vertex} the end that lies there */
export function endToward({ from, to }, direction) {
  return aside(to.x - from.x, to.y - from.y, direction) <= Math.PI / 2 ? to : from;
}

/**
 * Links of a node in turn, clockwise, each with its way back after it.
 * @param {Vertex} vertex
 * @returns {Edge[]}
 */
export function linksAround(vertex) {
  const angle = (/** @type {Edge} */ edge) => {
    const other = edge.from === vertex ? edge.to : edge.from;
    return Math.atan2(other.y - vertex.y, other.x - vertex.x);
  };
  return [...vertex.out, ...vertex.in].sort((one, other) => angle(one) - angle(other) || Number(one.to === vertex) - Number(other.to === vertex));
}

/**
 * The link after or before the chosen one.
 * @param {Vertex} vertex @param {Edge | null} chosen @param {number} step
 * @returns {Edge | null}
 */
export function nextLink(vertex, chosen, step) {
  const all = linksAround(vertex);
  if (!all.length) return null;
  const at = chosen ? all.indexOf(chosen) : step > 0 ? -1 : 0;
  return all[(at + step + all.length) % all.length];
}
