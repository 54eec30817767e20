/** For addresses that lead nowhere. */
import { Head, html, t } from "../show.js";

export default function Missing() {
  return html`<${Head} title=${t("There is no such page")} /><p><a href="#/">${t("Go to the overview")}</a></p>`;
}
