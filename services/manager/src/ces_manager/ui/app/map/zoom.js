/** The buttons above a picture. */
import { html, t } from "../show.js";

/** @param {{picture: {current: import("./picture.js").Picture | null}}} props */
export function Zoom({ picture }) {
  const zoom = (/** @type {number} */ factor) => () => picture.current?.zoom(factor);
  return html`<div class="map-zoom" role="group" aria-label=${t("Zoom")}>
    <button type="button" aria-label=${t("Closer")} title=${t("Closer")} onClick=${zoom(1.4)}>+</button>
    <button type="button" aria-label=${t("Farther")} title=${t("Farther")} onClick=${zoom(1 / 1.4)}>−</button>
    <button type="button" aria-label=${t("Show everything")} title=${t("Show everything")} onClick=${() => picture.current?.fit(true)}><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" /></svg></button>
  </div>`;
}
