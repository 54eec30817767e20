/** Long lists of names. */
import { href, html, Name, t } from "../show.js";

const NAMED = 12; // of a group; the others are one click away

/**
 * Names, of which none is dropped: those beyond a dozen are folded.
 * @param {{names: string[], place?: string}} props `place`: of the pages that they lead to
 */
export function Names({ names, place }) {
  const one = (/** @type {string} */ name, /** @type {number} */ index) => [
    index > 0 && ", ",
    place ? html`<a href=${href(place, name)}><${Name}>${name}<//></a>` : html`<${Name}>${name}<//>`,
  ];
  if (names.length <= NAMED + 3) return names.map(one);
  return html`${names.slice(0, NAMED).map(one)} <details class="more"><summary>
    ${t("and {n} more", { n: names.length - NAMED })}</summary>${names.slice(NAMED).map(one)}</details>`;
}
