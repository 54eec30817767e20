/** Why a job file was refused: field by field, with its line where that can be told. */
import { html, plain, State, t } from "../show.js";
import { lineOf } from "./job_text.js";

/**
 * @param {{problem: any, text: string, goTo: (line: number) => void, again?: () => void}} props `text`: the refused
 *   one; `goTo`: shows a line of it
 */
export function Refusal({ problem, text, goTo, again }) {
  const button = (/** @type {number} */ line) =>
    line > 0 &&
    html`<button type="button" class="plain" onClick=${() => goTo(line)}>${t("line {n}", { n: line })}</button> `;
  const { title, detail, errors = [] } = problem;
  // The detail of a refusal for fields names the first of them once more.
  const broken = Number(/\bline (\d+)/.exec(detail ?? "")?.[1] ?? 0);
  return html`<div class="problem">
    <strong><${State} state="failed" word=${title} /></strong>
    ${
      errors.length > 0
        ? html`<ul>${errors.map(
            (/** @type {{field: string, problem: string}} */ each) => html`<li>${button(lineOf(text, each.field))}<code>
            ${plain(each.field)}</code>: <bdi lang="en">${plain(each.problem)}</bdi></li>`,
          )}</ul>`
        : html`<p>${button(broken)}<bdi lang="en">${plain(detail)}</bdi></p>`
    }
    ${again && html`<button type="button" onClick=${again}>${t("Try again")}</button>`}
  </div>`;
}
