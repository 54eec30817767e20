/** Dialogs: a question that is asked before something is done. */
import { render } from "../../vendor/preact.js";
import { html, t } from "../show.js";

/**
 * Show a dialog until it is closed, by its own buttons, Escape, or a click beside it.
 * @param {string} title
 * @param {(close: (answer: string) => void) => any} content
 * @returns {Promise<string>} the answer; empty where there was none
 */
export function openDialog(title, content) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "dialog-title");
  render(html`<h2 id="dialog-title">${title}</h2>${content((answer) => dialog.close(answer))}`, dialog);
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close(""));
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => {
      render(null, dialog);
      dialog.remove();
      resolve(dialog.returnValue);
    }),
  );
}

/**
 * Ask before something is done that cannot be taken back.
 * @param {string} title the question
 * @param {any} content what follows from it
 * @param {string} action what the button says
 * @returns {Promise<boolean>}
 */
export async function confirmed(title, content, action) {
  const buttons = (/** @type {(answer: string) => void} */ close) => html`<p class="buttons">
    <button type="button" autofocus onClick=${() => close("")}>${t("Do nothing")}</button>
    <button type="button" class="danger" onClick=${() => close("yes")}>${action}</button>
  </p>`;
  return (await openDialog(title, (close) => [content, buttons(close)])) === "yes";
}
