/** Which promises an audit checked, how often, and where each was broken; and what it did not check. */
import { href, html, plain, State, t, tn } from "../show.js";
import { notChecked, promiseOf } from "./audit_text.js";
import { Part } from "./facts.js";
import { Rows } from "./rows.js";

/** @typedef {import("../pages/overview.js").Audit} Audit */
/** @typedef {{kind: string, checked: number | null, found: number, events: number[]}} Checked */

const SHOWN = 3; // events of one promise; the table of findings has them all

/** @param {{number: number}} props */
export const EventLink = ({ number }) => html`<a href=${`${href("events")}?from=${number}`}>${number}</a>`;

/** What a finding's kind promises, in words. @param {{kind: string}} props */
export const PromiseText = ({ kind }) => {
  const words = promiseOf(kind);
  return words ? words.text : html`<code>${plain(kind)}</code>`;
};

/** `limited`: whether only findings about one's own tenants' jobs are told. @param {{promise: Checked, limited: boolean}} props */
function Found({ promise: { checked, found, events }, limited }) {
  if (!found && checked === 0) return t("nothing to check");
  if (!found)
    return html`<${State} state="succeeded" word=${limited ? t("nothing was found about your jobs") : t("kept")} />`;
  const shown = events.slice(0, SHOWN);
  return html`<${State} state="failed" word=${tn(found, "1 finding", "{n} findings")} />${
    shown.length > 0 &&
    html`<small class="how about">${shown.length > 1 ? t("Events") : t("Event")} ${shown.map((number, place) => [place > 0 && ", ", html`<${EventLink} number=${number} />`])}${
      found > shown.length && " …"
    }</small>`
  }`;
}

/** @returns {import("./rows.js").Column<Checked>[]} */
const columns = (/** @type {boolean} */ limited) => [
  {
    id: "promise",
    title: t("Promise"),
    track: "minmax(18em, 3fr)",
    cell: ({ kind }) => html`<${PromiseText} kind=${kind} />${promiseOf(kind) && html`<small class="how">${promiseOf(kind)?.checked}</small>`}`,
  },
  {
    id: "checked",
    title: t("Checked"),
    track: "minmax(6em, .6fr)",
    end: true,
    // Somebody who sees some tenants' jobs alone is told whether, and not how often.
    cell: ({ checked }) => (checked === null ? t("yes") : checked ? tn(checked, "once", "{n} times") : t("never")),
  },
  {
    id: "found",
    title: t("Outcome"),
    track: "minmax(9em, 1fr)",
    cell: (promise) => html`<${Found} promise=${promise} limited=${limited} />`,
  },
];

/** @param {{audit: Audit}} props */
export function Promises({ audit: { checked, kinds, findings, limited } }) {
  const items = Object.entries(checked).map(([kind, number]) => ({
    kind,
    checked: /** @type {number | null} */ (number),
    found: kinds[kind] ?? 0,
    events: findings
      .filter((/** @type {any} */ finding) => finding.kind === kind)
      .map((/** @type {any} */ finding) => finding.event),
  }));
  return html`<${Part} title=${t("Promises")} note=${items.length || null}>
    <${Rows} caption=${t("Promises")} columns=${columns(limited)} items=${items} keyOf=${(/** @type {Checked} */ item) => item.kind}
      param="promises" empty=${t("This audit does not tell what it checked: its auditor is of a former version.")} />
  <//>`;
}

/** @param {{audit: Audit}} props */
export const NotChecked = ({ audit: { unjudged } }) => html`<${Part} title=${t("Not checked")}>
  <ul class="bullets">
    ${unjudged.map((/** @type {string} */ text) => html`<li><bdi lang="en">${plain(text)}</bdi></li>`)}
    ${notChecked().map((text) => html`<li>${text}</li>`)}
  </ul>
<//>`;
