/** What the scheduler would change of a running application, once somebody asks: moves, what they gain, what is proven. */
import { useState } from "../../vendor/preact-hooks.js";
import { call, may, route } from "../client.js";
import { brief, html, Name, plain, ProblemBox, since, t, tn } from "../show.js";

/** @typedef {{task: string, src: string, dst: string, seconds: number, requests: number}} Move */
/** @typedef {{step: string, moves: Move[], objective: number, cost: number}} Change */
/** @typedef {{broken: {code: string, message: string}[], objective?: number | null, gain?: number | null,
 *   certificate: {text: string}, adjustment?: Change | null, remark?: string | null}} Proposal an AdjustmentProposal of the API */

/** @param {{moves: Move[]}} props */
const Moves = ({ moves }) => html`<table class="plain-table">
  <caption>${t("Tasks that would move")}</caption>
  <thead><tr><th scope="col">${t("Task")}</th><th scope="col">${t("From")}</th><th scope="col">${t("To")}</th>
    <th scope="col" class="end">${t("Stands still, s")}</th><th scope="col" class="end">${t("Requests meanwhile")}</th></tr></thead>
  <tbody>${moves.map(
    ({ task, src, dst, seconds, requests }) => html`<tr><th scope="row"><${Name}>${task}<//></th><td><${Name}>${src}<//></td>
    <td><${Name}>${dst}<//></td><td class="end">${brief(seconds)}</td><td class="end">${brief(requests)}</td></tr>`,
  )}</tbody></table>`;

/** @param {Proposal} proposal @returns {string} what would change, and what it is worth */
export function changeText({ adjustment, gain }) {
  if (!adjustment) return t("Nothing would change.");
  const { moves, objective, cost } = adjustment;
  const what = moves.length
    ? tn(moves.length, "1 move", "{n} moves")
    : t("other rates and paths, which the service sets by itself where the job says adjust, and never when asked");
  const values = { what, objective: objective.toFixed(4), cost: cost.toFixed(4), gain: gain?.toFixed(4) ?? "" };
  return gain == null
    ? t("Worth it: {what}; objective {objective}, of which moves take {cost}", values)
    : t("Worth it: {what}; objective {objective}, of which moves take {cost}: {gain} more than now", values);
}

/** @param {{proposal: Proposal}} props */
export const Proposed = ({ proposal }) => html`
  <p>${proposal.broken.length ? t("A limit is broken:") : t("It keeps its limits.")}</p>
  ${
    proposal.broken.length > 0 &&
    html`<ul>${proposal.broken.map(({ message }) => html`<li><bdi lang="en">${plain(message)}</bdi></li>`)}</ul>`
  }
  ${proposal.adjustment && proposal.adjustment.moves.length > 0 && html`<${Moves} moves=${proposal.adjustment.moves} />`}
  <p>${changeText(proposal)}</p>
  ${proposal.remark && html`<p><bdi lang="en">${plain(proposal.remark)}</bdi></p>`}
  <p class="quiet"><bdi lang="en">${plain(proposal.certificate.text)}</bdi></p>`;

/** @typedef {{looked_at: string, why: string, outcome: string, left?: number | null}} Look a LastLook of the API */

/** @param {{look: Look}} props when CES last looked by itself, and what came of it */
export const LastLook = ({ look }) => html`<p>
  ${t("Looked at by itself {span} ago: {why}", { span: since(look.looked_at), why: plain(look.why) })}<br />
  <bdi lang="en">${plain(look.outcome)}</bdi>
  ${
    look.left != null &&
    html`<br /><span class="quiet">${t("{n} requests may fall into further moves this hour", { n: brief(look.left) })}</span>`
  }</p>`;

/** @param {{id: string, last?: Look | null}} props of a running job with requests */
export function Adjustment({ id, last }) {
  const [seen, show] = useState(/** @type {{busy: boolean, data?: any, problem?: any}} */ ({ busy: false }));
  const look = async () => {
    show({ busy: true });
    try {
      show({ busy: false, data: await call(route`/v1/jobs/${id}/adjustment`) });
    } catch (problem) {
      show({ busy: false, problem });
    }
  };
  const { busy, data, problem } = seen;
  if (!may("submitter")) return null;
  return html`<h3>${t("What would be changed now")}</h3>
    ${last && html`<${LastLook} look=${last} />`}
    <div class="actions"><button type="button" disabled=${busy} onClick=${look}>${t("Look")}</button>
      ${busy && html`<span class="quiet">${t("Loading…")}</span>`}</div>
    <${ProblemBox} problem=${problem} />
    <div role="status">${data && html`<${Proposed} proposal=${data} />`}</div>`;
}
