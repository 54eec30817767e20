/** What one version of a policy gains over another: a mean with its interval, as numbers and as a bar around zero. */
import { brief, DASH, html, t, tn } from "../show.js";

const [WIDTH, HEIGHT] = [100, 10]; // of a bar's own scale
export const CAP = 0.1; // gains count up to this much either way

/** @typedef {{decisions: number, mean: number, low: number, high: number, refused: number, slower: number}} Gain */

/** @param {Gain} gain @returns {{x: number, width: number, mean: number}} on the bar's scale, zero in the middle */
export function barOf({ mean, low, high }) {
  const at = (/** @type {number} */ value) => (WIDTH * (Math.min(CAP, Math.max(-CAP, value)) + CAP)) / (2 * CAP);
  return { x: at(low), width: Math.max(0.5, at(high) - at(low)), mean: at(mean) };
}

/** @param {number} value @returns {string} with its sign, such as `+0.0021` */
export const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(4)}`;

/** @param {{gain: Gain | null | undefined}} props */
export function GainBar({ gain }) {
  if (!gain) return html`<span class="quiet">${t("nothing compared yet")}</span>`;
  const { x, width, mean } = barOf(gain);
  return html`${signed(gain.mean)} <span class="quiet">${t("{low} to {high}, of {decisions}", {
    low: signed(gain.low),
    high: signed(gain.high),
    decisions: tn(gain.decisions, "1 decision", "{n} decisions"),
  })}</span>
    <svg class="span-bar" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">
      <rect class="axis" y="4.5" width=${WIDTH} height="1" />
      <rect class="took" x=${x} y="2" width=${width} height="6" />
      <rect class="axis" x=${WIDTH / 2 - 0.25} width="0.5" height=${HEIGHT} />
      <rect class="deadline" x=${mean - 0.25} width="0.5" height=${HEIGHT} />
    </svg>`;
}

/** @param {{gain: Gain | null | undefined}} props how its slowest decisions compare, and what it refused */
export const Costs = ({ gain }) =>
  gain
    ? html`${t("{n} times as long", { n: brief(gain.slower, 3) })}${
        gain.refused > 0 && html`, ${tn(gain.refused, "1 job refused", "{n} jobs refused")}`
      }`
    : DASH;
