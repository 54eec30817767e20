/** A score as a bar: the parts that count for a job to the right of the middle, those against it to the left. */
import { html, t } from "../show.js";
import { PARTS } from "./reasons.js";

const [WIDTH, HEIGHT] = [120, 10];

/** @param {{score: Record<string, number>, largest: number}} props `largest`: of all parts that share the scale */
export function ScoreBar({ score, largest }) {
  const middle = WIDTH / 2;
  const scale = middle / (largest * 1.5);
  let [left, right] = [middle, middle];
  const parts = PARTS.map((part) => {
    const width = Math.min(middle, Math.abs(score[part]) * scale);
    const x = score[part] < 0 ? (left -= width) : (right += width) - width;
    return html`<rect class=${`part-${part}`} x=${x} y="1" width=${width} height=${HEIGHT - 2} />`;
  });
  return html`<svg class="score" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${parts}
    <path class="axis" d="M${middle} 0v${HEIGHT}" /></svg>`;
}

/** What the shades of the bar mean. */
export const ScoreLegend = () =>
  html`<p class="legend quiet">${PARTS.map(
    (part) => html`<span><svg viewBox="0 0 10 10" aria-hidden="true">
    <rect class=${`part-${part}`} width="10" height="10" /></svg>${t(part)}</span>`,
  )}</p>`;
