/** Where a node lies that has no place yet: near its neighbours, where there is room. No other node is moved. Pure. */

/** @typedef {import("./graph.js").Place} Place */

export const APART = 90; // usual length of a link, in units of the map
const ROOM = 62; // between two nodes
const ANGLES = 16;

/** Finds out quickly whether a place is taken. */
class Taken {
  /** @param {Iterable<Place>} places */
  constructor(places) {
    /** @type {Map<string, Place[]>} */
    this.cells = new Map();
    for (const place of places) this.add(place);
  }

  /** @param {number} x @param {number} y */
  static cell = (x, y) => `${Math.floor(x / ROOM)} ${Math.floor(y / ROOM)}`;

  /** @param {Place} place */
  add(place) {
    const key = Taken.cell(...place);
    const known = this.cells.get(key);
    if (known) known.push(place);
    else this.cells.set(key, [place]);
  }

  /** @param {number} x @param {number} y @returns {number} distance to the nearest place, no more than ROOM */
  distance(x, y) {
    let nearest = ROOM;
    for (let dx = -1; dx <= 1; dx++) {
      for (let dy = -1; dy <= 1; dy++) {
        for (const [a, b] of this.cells.get(Taken.cell(x + dx * ROOM, y + dy * ROOM)) ?? []) nearest = Math.min(nearest, Math.hypot(a - x, b - y));
      }
    }
    return nearest;
  }
}

/** @param {Place[]} places @returns {Place} */
const middle = (places) => [places.reduce((sum, [x]) => sum + x, 0) / places.length, places.reduce((sum, [, y]) => sum + y, 0) / places.length];

/**
 * The first free place around another, ring by ring.
 * @param {Taken} taken @param {Place} centre @param {number} from radius of the first ring @param {number} toward angle tried first
 * @returns {Place}
 */
function freeAround(taken, [x, y], from, toward) {
  if (from === 0 && taken.distance(x, y) >= ROOM) return [x, y];
  for (let radius = from || ROOM; ; radius += ROOM / 2) {
    for (let step = 0; step < ANGLES; step++) {
      // To both sides of the first angle in turn.
      const angle = toward + (Math.ceil(step / 2) * (step % 2 ? 1 : -1) * 2 * Math.PI) / ANGLES;
      const [px, py] = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
      if (taken.distance(px, py) >= ROOM) return [px, py];
    }
  }
}

/**
 * Places for names that have none.
 * @param {Iterable<string>} names
 * @param {Iterable<import("../live.js").Item>} links
 * @param {Map<string, Place>} known
 * @returns {Map<string, Place>}
 */
export function newcomers(names, links, known) {
  const all = new Map(known);
  const taken = new Taken(known.values());
  /** @type {Map<string, Set<string>>} */
  const beside = new Map();
  for (const { src, dst } of links) {
    for (const [one, other] of [[src, dst], [dst, src]]) beside.set(one, (beside.get(one) ?? new Set()).add(other));
  }
  const placed = new Map();
  const put = (/** @type {string} */ name, /** @type {Place} */ place) => {
    placed.set(name, place);
    all.set(name, place);
    taken.add(place);
    waiting.delete(name);
  };
  /** @type {Place | undefined} */
  let aside; // where those go to whom no link leads
  const waiting = new Set([...names].filter((name) => !known.has(name)).sort());
  while (waiting.size) {
    // Who has neighbours with places comes first; whoever is led to by the new ones only comes after them.
    const ready = [...waiting].filter((name) => [...(beside.get(name) ?? [])].some((other) => all.has(other)));
    for (const name of ready) {
      const near = [...(beside.get(name) ?? [])].filter((other) => all.has(other));
      const places = /** @type {Place[]} */ (near.map((other) => all.get(other)));
      const centre = middle(places);
      if (places.length > 1) put(name, freeAround(taken, centre, 0, Math.PI / 2));
      else put(name, freeAround(taken, centre, APART, away(near[0], centre, beside, all)));
    }
    if (ready.length) continue;
    const [first] = waiting;
    aside ??= below(all);
    put(first, freeAround(taken, aside, 0, 0));
  }
  return placed;
}

/** Away from the other neighbours of a neighbour. @param {string} name @param {Place} centre @param {Map<string, Set<string>>} beside @param {Map<string, Place>} all */
function away(name, [x, y], beside, all) {
  const others = [...(beside.get(name) ?? [])].flatMap((other) => [all.get(other)].filter((place) => place !== undefined));
  if (!others.length) return 0;
  const [mx, my] = middle(others);
  return Math.atan2(y - my, x - mx);
}

/** Where a node without neighbours goes: below all others. @param {Map<string, Place>} all @returns {Place} */
function below(all) {
  if (!all.size) return [0, 0];
  const places = [...all.values()];
  return [middle(places)[0], places.reduce((lowest, [, y]) => Math.max(lowest, y), -Infinity) + ROOM];
}
