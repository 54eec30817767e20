/** Devices that have applied to be made nodes, for those who may accept them: by the command line, where ssh is. */
import { may } from "../client.js";
import { DASH, html, Name, plain, since, State, t, tx } from "../show.js";
import { useAnswer } from "./answers.js";
import { Part } from "./facts.js";

const AGAIN_S = 15;

/** @param {any} applicant */
const Row = ({ name, state, address, user, port, arch, host_keys: keys, applied_at: at }) => html`<tr>
  <th scope="row"><${Name}>${name}<//></th>
  <td><${State} state=${state} /></td>
  <td><bdi>${plain(address)}</bdi></td>
  <td><bdi>${plain(user)}</bdi>, <bdi>${String(port)}</bdi></td>
  <td>${arch ? plain(arch) : DASH}</td>
  <td>${keys.map((/** @type {string} */ key) => html`<div><code>${plain(key)}</code></div>`)}</td>
  <td>${t("{span} ago", { span: since(at) })}</td>
</tr>`;

/** Nothing where none has applied. */
export function Applicants() {
  const { data } = useAnswer(may("admin") ? "/v1/applicants?limit=500" : null, { every: AGAIN_S });
  if (!data?.items.length) return null;
  const titles = [t("Node"), t("State"), t("Applied from"), t("User, port"), t("Architecture"), t("Host keys"), t("Applied")];
  return html`<${Part} title=${t("Devices that have applied")}>
    <p class="quiet">${tx("All but the address is what they claim. {command} goes there by ssh.", {
      command: html`<code>ces node accept</code>`,
    })}</p>
    <table class="plain-table" tabindex="0" aria-label=${t("Devices that have applied")}>
      <thead><tr>${titles.map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
      <tbody>${data.items.map((/** @type {any} */ each) => html`<${Row} key=${`${each.name} ${each.address}`} ...${each} />`)}</tbody>
    </table>
  <//>`;
}
