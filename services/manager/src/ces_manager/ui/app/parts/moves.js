/** The latest moves of a job's tasks: where to, why, what they cost, and whether they paid. */
import { brief, clock, html, Name, plain, since, State, t } from "../show.js";

/** @typedef {{id: string, task: string, source: string, destination: string, state: string, began_at: string,
 *   why?: string | null, requests?: number | null, pays_at?: string | null, in_vain: boolean,
 *   reason?: string | null}} Move a MoveView of the API */

/** @param {Move} move @returns {string} whether its gain has made up for its requests; of one that CES made by itself */
export function worth({ pays_at: at, in_vain: inVain }) {
  if (!at) return "";
  if (inVain) return t("did not pay");
  return Date.parse(at) <= clock.value ? t("has paid") : t("pays in {span}", { span: span(at) });
}

/** @param {string} at @returns {string} how long until then */
const span = (at) => since(new Date(2 * clock.value - Date.parse(at)).toISOString());

/** @param {{moves: Move[]}} props */
export const MoveList = ({ moves }) => html`<table class="plain-table moves">
  <caption>${t("The latest moves of its tasks")}</caption>
  <thead><tr><th scope="col">${t("Task")}</th><th scope="col">${t("From")}</th><th scope="col">${t("To")}</th>
    <th scope="col">${t("State")}</th><th scope="col">${t("Age")}</th>
    <th scope="col" class="end">${t("Requests")}</th><th scope="col">${t("Worth it")}</th>
    <th scope="col">${t("Why")}</th></tr></thead>
  <tbody>${moves.map(
    (move) => html`<tr key=${move.id}><th scope="row"><${Name}>${move.task}<//></th><td><${Name}>${move.source}<//></td>
      <td><${Name}>${move.destination}<//></td><td><${State} state=${move.state} word=${t(move.state)} /></td>
      <td>${since(move.began_at)}</td><td class="end">${move.requests == null ? "" : brief(move.requests)}</td>
      <td>${worth(move)}</td><td><bdi lang="en">${plain(move.reason ?? move.why ?? "")}</bdi></td></tr>`,
  )}</tbody></table>`;
