/** The list of keys, as a dialog. */
import { places } from "../main.js";
import { html, t } from "../show.js";
import { openDialog } from "./dialog.js";

/** Open the list; it closes with Escape. */
export function showKeys() {
  const rows = [
    ["/", t("Go to the filter of this page")],
    ...places().map(([, name, key]) => [`g ${key}`, t("Go to: {page}", { page: t(name) })]),
    ["↑ ↓", t("In a table: the row above or below")],
    ["?", t("Show the keys")],
  ];
  return openDialog(
    t("Keys"),
    (close) => html`<table class="keys">
        <tbody>${rows.map(
          ([keys, text]) =>
            html`<tr><th scope="row">${keys.split(" ").map(
              (key) => html`<kbd>${key}
          </kbd> `,
            )}</th><td>${text}</td></tr>`,
        )}</tbody>
      </table>
      <p class="buttons"><button type="button" onClick=${() => close("")}>${t("Close")}</button></p>`,
  );
}
