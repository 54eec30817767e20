/** What an audit came to, in words. */
import { useEffect, useState } from "../../vendor/preact-hooks.js";
import { call } from "../client.js";
import { html, href, since, State, t, tn } from "../show.js";

/** @typedef {Record<string, any>} Audit as docs/api.md has it */

const EVERY_S = 60; // in which another audit shows

/** What each kind of finding means. @type {Record<string, () => string>} */
const KINDS = {
  log: () => t("the log has a gap or a repetition, or says two things"),
  step: () => t("a step that there is not"),
  plan: () => t("a plan that is not what was asked for, or uses what it must not"),
  twice: () => t("a task was in two places at once"),
  overbooked: () => t("more was held than plans may reserve"),
  held: () => t("something was not released"),
  deadline: () => t("a job that was refused for its deadline had a plan"),
  reservation: () => t("a job started later than its reservation said"),
};

/** @param {string} kind @returns {string} empty where it is of another version */
export const kindText = (kind) => KINDS[kind]?.() ?? "";

/** @param {Audit} audit @returns {string} which events it read */
export const spanText = (audit) =>
  audit.last == null ? t("no events") : t("events {first} to {last}", { first: audit.first, last: audit.last });

/** @param {{audit: Audit}} props whether anything was found */
export const Outcome = ({ audit: { findings_total: total, limited } }) =>
  total
    ? html`<${State} state="failed" word=${tn(total, "1 finding", "{n} findings")} />`
    : html`<${State} state="succeeded"
        word=${limited ? t("nothing was found about your jobs") : t("every promise kept")} />`;

/** The last audit on the overview, which leads to it. */
export function AuditTile() {
  const [last, setLast] = useState(/** @type {Audit | null | undefined} */ (undefined));
  useEffect(() => {
    const look = () => {
      if (document.visibilityState !== "visible") return;
      call("/v1/audits?limit=1")
        .then(({ items }) => setLast(items[0] ?? null))
        .catch(() => {}); // the page of audits says why they cannot be read
    };
    look();
    const timer = setInterval(look, EVERY_S * 1000);
    return () => clearInterval(timer);
  }, []);
  if (last === undefined) return null;
  const page = href("audit");
  return html`<p class="oldest">${t("Last audit:")} ${
    last
      ? html`<a href=${page}><${Outcome} audit=${last} /></a>, ${spanText(last)}, ${t("{span} ago", {
          span: since(last.began_at),
        })}`
      : html`<a href=${page}>${t("none yet")}</a>`
  }</p>`;
}
