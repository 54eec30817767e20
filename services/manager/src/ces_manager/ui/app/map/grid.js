/** Finds what lies at a point of the map: nodes and links sorted into square cells, by their keys. */

/** @typedef {import("./graph.js").Graph} Graph */

import { boundsOf } from "./camera.js";

const LEAST_CELL = 160; // units of the map
const MOST_ACROSS = 200; // cells, however far apart nodes lie

export class Grid {
  /** @param {Graph} graph */
  constructor(graph) {
    /** @type {Map<number, {vertices: string[], edges: string[]}>} */
    this.cells = new Map();
    this.graph = graph;
    const bounds = boundsOf(graph.vertices.values()) ?? { left: 0, right: 0, top: 0, bottom: 0 };
    this.size = Math.max(LEAST_CELL, Math.max(bounds.right - bounds.left, bounds.bottom - bounds.top) / MOST_ACROSS);
    for (const { key, x, y } of graph.vertices.values()) this.cell(Math.floor(x / this.size), Math.floor(y / this.size)).vertices.push(key);
    for (const edge of graph.edges.values()) this.addEdge(edge.key, edge.from.x, edge.from.y, edge.to.x, edge.to.y);
  }

  /** @param {number} i @param {number} j */
  cell(i, j) {
    const key = i * 1048576 + j;
    let found = this.cells.get(key);
    if (!found) this.cells.set(key, (found = { vertices: [], edges: [] }));
    return found;
  }

  /** Into every cell that the line touches, column by column. @param {string} key @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
  addEdge(key, x1, y1, x2, y2) {
    const { size } = this;
    if (x1 > x2) [x1, y1, x2, y2] = [x2, y2, x1, y1];
    const slope = x2 > x1 ? (y2 - y1) / (x2 - x1) : 0;
    for (let i = Math.floor(x1 / size); i <= Math.floor(x2 / size); i++) {
      const enter = x2 > x1 ? y1 + slope * (Math.max(x1, i * size) - x1) : y1;
      const leave = x2 > x1 ? y1 + slope * (Math.min(x2, (i + 1) * size) - x1) : y2;
      for (let j = Math.floor(Math.min(enter, leave) / size); j <= Math.floor(Math.max(enter, leave) / size); j++) this.cell(i, j).edges.push(key);
    }
  }

  /** @param {Graph} graph @returns {boolean} whether everything in it lies where it did when this was made */
  fits({ vertices, edges }) {
    const known = this.graph;
    if (known.vertices.size !== vertices.size || known.edges.size !== edges.size) return false;
    for (const { key, x, y } of vertices.values()) {
      const before = known.vertices.get(key);
      if (!before || before.x !== x || before.y !== y) return false;
    }
    for (const key of edges.keys()) if (!known.edges.has(key)) return false;
    return true;
  }

  /** @param {number} x @param {number} y @param {number} far @param {"vertices" | "edges"} kind @returns {Set<string>} keys of what may lie so near */
  near(x, y, far, kind) {
    const { size } = this;
    const found = new Set();
    for (let i = Math.floor((x - far) / size); i <= Math.floor((x + far) / size); i++) {
      for (let j = Math.floor((y - far) / size); j <= Math.floor((y + far) / size); j++) {
        for (const key of this.cells.get(i * 1048576 + j)?.[kind] ?? []) found.add(key);
      }
    }
    return found;
  }
}

/** @param {number} x @param {number} y @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @returns {number} distance of a point from a line between two others */
export function distanceToLine(x, y, x1, y1, x2, y2) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const part = Math.min(1, Math.max(0, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - x1 - part * dx, y - y1 - part * dy);
}
