/** What nodes and jobs have used of energy, and for which share of the time nodes and links are there, in the words of `ces`. */
import { brief, t } from "../show.js";

/** @typedef {{measured: number, modelled: number, watts?: number | null}} Energy in joules */
/** @typedef {{least: number, mean: number, n: number}} Availability */

/** @type {[string, number][]} */
const UNITS = [
  ["GJ", 1e9],
  ["MJ", 1e6],
  ["kJ", 1e3],
];

/** @param {number} value @returns {string} such as `12.3 kJ` */
function joules(value) {
  const [unit, size] = UNITS.find(([, each]) => value >= each) ?? ["J", 1];
  return `${brief(value / size, 3)} ${unit}`;
}

/** @param {number} value @returns {string} */
export const watts = (value) => `${brief(value, 3)} W`;

/** @param {Energy | null | undefined} energy @returns {string} always with how it is known */
export function energyText(energy) {
  if (!energy) return t("unknown");
  const { measured, modelled, watts: now } = energy;
  return [
    measured > 0 && t("{joules} measured", { joules: joules(measured) }),
    modelled > 0 && t("{joules} modelled", { joules: joules(modelled) }),
    measured + modelled > 0 ? false : t("none yet"),
    now != null && t("{watts} now", { watts: watts(now) }),
  ]
    .filter(Boolean)
    .join(", ");
}

/** Rounded down, for 100 % is promised of nothing. @param {number} share */
const percent = (share) => `${Math.floor(share * 1e5) / 1e3} %`;

/** @param {Availability | null | undefined} known @returns {string} */
export const availabilityText = (known) =>
  known
    ? t("at least {least} (95 % sure), mean {mean}, n = {n} minutes", {
        least: percent(known.least),
        mean: percent(known.mean),
        n: known.n,
      })
    : t("nothing learned yet");
