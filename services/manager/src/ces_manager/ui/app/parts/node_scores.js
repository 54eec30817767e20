/** How fast a node is, as its agent measured it: one level, a score for each category, and what was measured. */
import { brief, html, Name, since, State, t } from "../show.js";
import { Facts, Part } from "./facts.js";

/** @typedef {Record<string, any>} Raw a RawScore of the API */
/** @typedef {{category: string, score: number, noisy: boolean, kinds: string[]}} Category */

/** @param {string} name @returns {string} */
function nameOf(name) {
  const names = /** @type {Record<string, () => string>} */ ({
    integer: () => t("integers"),
    float: () => t("floats"),
    matrix: () => t("matrices"),
    inference: () => t("inference"),
    memory: () => t("memory"),
    disk: () => t("disk"),
    network: () => t("network"),
    computing: () => t("computing"),
    core: () => t("one core"),
    storage: () => t("storage"),
    communication: () => t("communication"),
  });
  return names[name]?.() ?? name;
}

/** @param {number} value @param {string} unit @returns {string} such as `79.8 kpowers/s` */
export function rateText(value, unit) {
  const prefixes = /** @type {[number, string][]} */ ([
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ]);
  const [factor, prefix] = prefixes.find(([each]) => value >= each) ?? [1, ""];
  return `${brief(value / factor, 3)} ${prefix}${unit}`;
}

const Noisy = () => html` <${State} state="slow" word=${t("noisy")} />`;

/** @param {{of: Category}} props */
const CategoryScore = ({ of: { score, noisy, kinds } }) =>
  html`${brief(score, 3)}${noisy && html`<${Noisy} />`} <span class="quiet">${kinds.map(nameOf).join(", ")}</span>`;

/** @param {{raw: Raw[]}} props */
function RawScores({ raw }) {
  const caption = t("What was measured");
  return html`<div tabindex="0" role="region" aria-label=${caption}><table class="plain-table">
    <thead><tr><th scope="col">${t("Kind")}</th><th scope="col" class="end">${t("Threads")}</th>
      <th scope="col" class="end">${t("Rate")}</th><th scope="col" class="end">${t("Score")}</th>
      <th scope="col" class="end">${t("Spread")}</th><th scope="col">${t("Source")}</th></tr></thead>
    <tbody>${raw.map(
      (each) => html`<tr key=${`${each.kind} ${each.threads} ${each.cores}`}>
      <th scope="row">${nameOf(each.kind)}${each.cores && html` <${Name}>${each.cores}<//>`}</th>
      <td class="end">${each.threads}</td><td class="end">${rateText(each.rate, each.unit)}</td>
      <td class="end">${brief(each.score, 3)}</td>
      <td class="end">${brief(each.spread * 100, 2)} %${each.noisy && html`<${Noisy} />`}</td>
      <td lang="en"><${Name}>${each.source}<//></td>
    </tr>`,
    )}</tbody></table></div>`;
}

/** @param {{scores: Record<string, any> | null | undefined}} props undefined: not known yet */
export function NodeScores({ scores }) {
  if (scores === undefined) return null;
  if (scores === null) {
    return html`<${Part} title=${t("Scores")}>
      <p class="quiet">${t("Its agent has not measured: it has had no time yet, or measuring is off.")}</p><//>`;
  }
  const level = scores.level == null ? t("not known") : t("{level} of 10", { level: scores.level });
  return html`<${Part} title=${t("Scores")} note=${t("measured {span} ago", { span: since(scores.at) })}>
    <p class="quiet">${t("In cores of the reference machine, by the word of its agent.")}</p>
    <${Facts} items=${[
      [t("Level"), html`${level}${scores.noisy && html`<${Noisy} />`}`],
      ...scores.categories.map((/** @type {Category} */ each) => [nameOf(each.category), html`<${CategoryScore} of=${each} />`]),
    ]} />
    <${RawScores} raw=${scores.raw} /><//>`;
}
