/**
 * Computes places by forces, away from the page's own thread: links pull their ends together, nodes push each other
 * apart, and the nodes of one group attract each other a little. Fixed nodes stay where they are.
 */
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "../../vendor/d3-force.js";
import { APART } from "./placement.js";

/**
 * @typedef {object} Task
 * @property {number} nodes how many
 * @property {Uint32Array} links indexes of both ends, one pair after the other
 * @property {Int32Array} groups of each node; -1 for none
 * @property {Float64Array} places x and y of each node; NaN where it has none
 * @property {boolean} watched whether intermediate places are wanted
 */
/** @typedef {{places: Float32Array, done: boolean}} Progress */
/** @typedef {{x?: number, y?: number, vx: number, vy: number, fx?: number, fy?: number, group: number}} Body */

const TICKS = 220;
const TURNED = 110; // the tick after which the whole is turned
const TOLD_EVERY_MS = 150;

/** @param {number} strength @returns {{(alpha: number): void, initialize(bodies: Body[]): void}} a force toward the middle of the own group */
function forceGroup(strength) {
  /** @type {Body[]} */
  let bodies = [];
  const force = (/** @type {number} */ alpha) => {
    /** @type {Map<number, {x: number, y: number, n: number}>} */
    const middles = new Map();
    for (const { group, x = 0, y = 0 } of bodies) {
      if (group < 0) continue;
      const middle = middles.get(group) ?? { x: 0, y: 0, n: 0 };
      middles.set(group, middle);
      middle.n++;
      middle.x += (x - middle.x) / middle.n;
      middle.y += (y - middle.y) / middle.n;
    }
    for (const body of bodies) {
      const middle = middles.get(body.group);
      if (!middle) continue;
      body.vx += (middle.x - (body.x ?? 0)) * strength * alpha;
      body.vy += (middle.y - (body.y ?? 0)) * strength * alpha;
    }
  };
  return Object.assign(force, { initialize: (/** @type {Body[]} */ given) => void (bodies = given) });
}

/** Turned so that the longer side lies level, as the page does. @param {Body[]} bodies */
function level(bodies) {
  const mx = bodies.reduce((sum, { x = 0 }) => sum + x, 0) / bodies.length;
  const my = bodies.reduce((sum, { y = 0 }) => sum + y, 0) / bodies.length;
  let [xx, yy, xy] = [0, 0, 0];
  for (const { x = 0, y = 0 } of bodies) {
    xx += (x - mx) ** 2;
    yy += (y - my) ** 2;
    xy += (x - mx) * (y - my);
  }
  const angle = -Math.atan2(2 * xy, xx - yy) / 2;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  for (const body of bodies) {
    const [dx, dy] = [(body.x ?? 0) - mx, (body.y ?? 0) - my];
    body.x = dx * cos - dy * sin;
    body.y = dx * sin + dy * cos;
  }
}

/** @param {Body[]} bodies @param {boolean} done */
function tell(bodies, done) {
  const places = new Float32Array(bodies.length * 2);
  bodies.forEach(({ x = 0, y = 0 }, index) => places.set([x, y], 2 * index));
  postMessage({ places, done }, { transfer: [places.buffer] });
}

/** @param {MessageEvent<Task>} message */
onmessage = ({ data: { nodes, links, groups, places, watched } }) => {
  /** @type {Body[]} */
  const bodies = Array.from({ length: nodes }, (_, index) => {
    const [x, y] = [places[2 * index], places[2 * index + 1]];
    return { vx: 0, vy: 0, group: groups[index], ...(!Number.isNaN(x) && { x, y, fx: x, fy: y }) };
  });
  const pairs = Array.from({ length: links.length / 2 }, (_, index) => ({ source: links[2 * index], target: links[2 * index + 1] }));
  const across = (/** @type {any} */ { source, target }) => source.group !== target.group && source.group >= 0 && target.group >= 0;
  const simulation = forceSimulation(bodies)
    .force("link", forceLink(pairs).distance((/** @type {any} */ link) => (across(link) ? 2.2 * APART : APART)))
    .force("charge", forceManyBody().strength(-320).theta(1).distanceMax(1200))
    .force("collide", forceCollide(30))
    .force("group", forceGroup(0.12))
    .force("x", forceX().strength(0.02))
    .force("y", forceY().strength(0.06))
    .alphaDecay(1 - 0.001 ** (1 / TICKS))
    .stop();
  const free = bodies.every(({ fx }) => fx === undefined);
  let told = performance.now();
  for (let tick = 0; tick < TICKS; tick++) {
    simulation.tick();
    if (tick === TURNED && free) level(bodies);
    if (!watched || performance.now() - told < TOLD_EVERY_MS) continue;
    tell(bodies, false);
    told = performance.now();
  }
  tell(bodies, true);
};
