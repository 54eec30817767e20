/** What happened around an instant; each event leads to the cluster after it. */
import { withQuery } from "../main.js";
import { html, moment, Name, ProblemBox, t } from "../show.js";
import { useAnswer } from "./answers.js";
import { eventText, happened, jobOf } from "./event_text.js";

const BEFORE = 12;
const AFTER = 8;

/** @param {{state: any, changes: boolean}} props `state`: a PastState; `changes`: what changes nothing is left out */
export function PastEvents({ state, changes }) {
  const { event, before, change_after: next } = state;
  const last = Math.max(event + AFTER, (changes && next) || 0); // the next change may be far away
  const only = changes ? "&changes=true" : "";
  const { data, problem } = useAnswer(`/v1/events/page?limit=${BEFORE + AFTER}&cursor=${last + 1}${only}`);
  const items = (data?.items ?? []).map((/** @type {any} */ each) => happened(each.number, each.event));
  return html`<aside class="past-events" aria-label=${t("Events around it")}>
    <h2>${t("Events around it")}</h2>
    <${ProblemBox} problem=${problem} />
    <ol>${items.map(
      (/** @type {import("./event_text.js").Happened} */ each) => html`<li key=${each.id}
        class=${each.id > event ? "later" : ""} aria-current=${each.id <= event && each.id > (before ?? event - 1) ? "true" : undefined}>
        <a href=${withQuery({ event: String(each.id), at: null })}>${each.id}</a> <time>${moment(each.time, true)}</time>
        <code>${each.type}</code> ${jobOf(each) && each.data.name && html`<${Name}>${each.data.name}<//>`} <span>${eventText(each)}</span></li>`,
    )}</ol>
  </aside>`;
}
