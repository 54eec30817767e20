/** Curves as numbers: workers' lines on one time axis, their mean, holes in samples, and how high a scale goes. */

/** @typedef {(number | null)[]} Values */
/** @typedef {{at: number[], values: Record<string, Values>}} Series times in seconds, and what there was at them */
/** @typedef {{name: string, values: Values, mean?: boolean}} Line of a picture; `mean`: the thick one */
/** @typedef {{name: string, value: number, look: number}} Limit a straight line; `look`: which dashes */

const MOST_TIMES = 400; // of one picture
const REACH = 10; // times the highest value, up to which a limit is in the picture
const ROOM = 1.08; // above the highest value
/** Of its own mean distances, for which a worker's last value still stands in the mean: others may be a little later. */
const LINGERS = 3;

/** Fields of progress that say how far it is, how much was sent, or who speaks: no curves. */
const COUNTERS =
  /^(rounds?|(global_?)?steps?|epochs?|iterations?|batch(es)?|total|rank|workers?|world(_?size)?|seed|attempt|incarnation|time(stamp)?|at|elapsed(_s)?|seconds)$|bytes|(^|_)(sent|received)($|_)/i;
/** What is looked at first, in this order. */
const FIRST = [/loss/i, /accuracy|(^|_)acc($|_)/i, /success/i, /^(mean_?|episode_?)?(return|reward)s?$/i];

/**
 * The fields that are curves: those to show at once, and the others.
 * @param {Record<string, {values: Record<string, unknown>}>} tasks
 * @returns {{first: string[], others: string[]}}
 */
export function fieldsOf(tasks) {
  const names = new Set(Object.values(tasks).flatMap((task) => Object.keys(task.values)));
  const curves = [...names].filter((name) => !COUNTERS.test(name)).sort();
  const place = (/** @type {string} */ name) => FIRST.findIndex((each) => each.test(name));
  const first = curves.filter((name) => place(name) >= 0).sort((a, b) => place(a) - place(b));
  const others = curves.filter((name) => place(name) < 0);
  return first.length ? { first, others } : { first: others.slice(0, 2), others: others.slice(2) };
}

/** @param {string[]} at @returns {number[]} in seconds */
export const seconds = (at) => at.map((each) => Date.parse(each) / 1000);

/**
 * The times at which anything was said: all of them, or as many as a picture needs, spread evenly.
 * @param {number[][]} each
 * @returns {number[]}
 */
function timesOf(each) {
  const all = [...new Set(each.flat())].sort((a, b) => a - b);
  if (all.length <= MOST_TIMES) return all;
  const [first, last] = [all[0], all[all.length - 1]];
  return Array.from({ length: MOST_TIMES }, (_, n) => first + ((last - first) * n) / (MOST_TIMES - 1));
}

/**
 * A worker's values at other times, on the straight lines between its own; null before its first and after its last.
 * @param {{at: number[], values: number[]}} own the oldest first
 * @param {number[]} times
 * @param {number} [lingers] seconds for which the last value stands
 * @returns {Values}
 */
function valuesAt({ at, values }, times, lingers = 0) {
  let next = 0;
  return times.map((time) => {
    while (next < at.length && at[next] < time) next++;
    if (next === at.length) return time <= at[next - 1] + lingers ? values[next - 1] : null;
    if (at[next] === time) return values[next];
    if (next === 0) return null;
    const share = (time - at[next - 1]) / (at[next] - at[next - 1]);
    return values[next - 1] + share * (values[next] - values[next - 1]);
  });
}

/** @param {Values[]} each @param {number} length @returns {Values} the mean of those that have a value */
function meanOf(each, length) {
  return Array.from({ length }, (_, n) => {
    let [sum, count] = [0, 0];
    for (const values of each) {
      const value = values[n];
      if (value === null) continue;
      sum += value;
      count++;
    }
    return count ? sum / count : null;
  });
}

/**
 * One field's curves: a line for each worker and, of several, their mean, which comes last and so lies above them.
 * @param {Record<string, Series>} tasks
 * @param {string} field
 * @param {string} meanName
 * @param {number} most workers that get a line; the mean is of all
 * @returns {{at: number[], lines: Line[], workers: number}}
 */
export function curvesOf(tasks, field, meanName, most) {
  const said = Object.entries(tasks)
    .map(([name, { at, values }]) => {
      const kept = at.map((_, n) => n).filter((n) => values[field]?.[n] != null);
      return { name, at: kept.map((n) => at[n]), values: kept.map((n) => /** @type {number} */ (values[field][n])) };
    })
    .filter((each) => each.at.length)
    .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  if (!said.length) return { at: [], lines: [], workers: 0 };
  const at = timesOf(said.map((each) => each.at));
  if (said.length === 1) {
    const [only] = said;
    return { at, lines: [{ name: only.name, values: valuesAt(only, at), mean: true }], workers: 1 };
  }
  const lingers = ({ at: own } = said[0]) => (LINGERS * (own[own.length - 1] - own[0])) / Math.max(1, own.length - 1);
  const mean = meanOf(
    said.map((each) => valuesAt(each, at, lingers(each))),
    at.length,
  );
  const lines = said.slice(0, most).map((each) => ({ name: each.name, values: valuesAt(each, at) }));
  return { at, lines: [...lines, { name: meanName, values: mean, mean: true }], workers: said.length };
}

/**
 * Samples with a hole wherever some are missing, so that no line leads across it.
 * @param {Series} samples
 * @param {number} every seconds between two
 * @returns {Series}
 */
export function withHoles({ at, values }, every) {
  /** @type {Series} */
  const holed = { at: [], values: Object.fromEntries(Object.keys(values).map((name) => [name, []])) };
  at.forEach((time, n) => {
    if (n && time - at[n - 1] > 1.5 * every) {
      holed.at.push(at[n - 1] + every);
      for (const own of Object.values(holed.values)) own.push(null);
    }
    holed.at.push(time);
    for (const [name, own] of Object.entries(holed.values)) own.push(values[name][n] ?? null);
  });
  return holed;
}

/** @param {Values} values @returns {number} the place of the last one there is, or -1 */
export const lastOf = (values) => values.findLastIndex((value) => value !== null);

/**
 * How high a scale that begins at nothing goes. A limit far above all values is left out: it would press them flat.
 * @param {Values[]} each
 * @param {number[]} limits
 * @returns {number}
 */
export function topOf(each, limits) {
  let highest = 0;
  for (const values of each) for (const value of values) highest = Math.max(highest, value ?? 0);
  const near = limits.filter((limit) => limit <= REACH * highest);
  const lowest = limits.filter((limit) => limit > 0);
  return ROOM * (Math.max(highest, ...near) || (lowest.length ? Math.min(...lowest) : 1));
}
