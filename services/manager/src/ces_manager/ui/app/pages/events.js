/** Everything that happens, as it happens. */
import { useRef, useState } from "../../vendor/preact-hooks.js";
import { address, withQuery } from "../main.js";
import { eventText, eventWords, jobOf } from "../parts/event_text.js";
import { Chips, Filter, matches, typedWords } from "../parts/filter.js";
import { LinkTo } from "../parts/network.js";
import { Rows } from "../parts/rows.js";
import { useTail } from "../parts/tail.js";
import { Head, html, moment, Name, plain, ProblemBox, State, t, tn, To } from "../show.js";

/** @typedef {import("../parts/event_text.js").Happened} Happened */
/** @typedef {import("../parts/tail.js").Gap} Gap */

const KINDS = ["job", "allocation", "plan", "node", "link", "topology", "checkpoint", "resize", "cpu", "preemption", "token", "secret"];
const DEPTHS = [20, 200, 0]; // jobs back; 0 for all

/** @param {Happened | Gap} item @returns {item is Gap} */
const isGap = (item) => "gap" in item;

/** What it is about, as a link. @param {{event: Happened}} props */
function Subject({ event }) {
  const job = jobOf(event);
  if (job) return html`<span class="about"><${To} path=${["jobs", job]}>${event.data.name ?? job}<//> <a class="quiet" href=${withQuery({ job })} title=${t("Only this job")}>${t("only")}</a></span>`;
  if (event.type === "node.changed") return html`<${To} path=${["nodes", event.subject]}>${event.subject}<//>`;
  if (event.type === "link.changed") return html`<${LinkTo} link=${event.data} />`;
  return html`<${Name}>${event.subject}<//>`;
}

const columns = () => [
  { id: "number", title: t("Number"), track: "minmax(5em, .3fr)", end: true, cell: (/** @type {Happened | Gap} */ item) => (isGap(item) ? "…" : item.id) },
  { id: "time", title: t("Time"), track: "minmax(6.5em, .4fr)", cell: (/** @type {Happened | Gap} */ item) => (isGap(item) ? "" : moment(item.time, true)) },
  { id: "type", title: t("Type"), track: "minmax(9em, .6fr)", cell: (/** @type {Happened | Gap} */ item) => (isGap(item) ? html`<${State} state="slow" word=${t("gap")} />` : html`<code>${plain(item.type)}</code>`) },
  { id: "about", title: t("About"), full: true, track: "minmax(9em, .9fr)", cell: (/** @type {Happened | Gap} */ item) => (isGap(item) ? "" : html`<${Subject} event=${item} />`) },
  {
    id: "what", title: t("What happened"), full: true, track: "minmax(14em, 2.4fr)",
    cell: (/** @type {Happened | Gap} */ item) =>
      isGap(item) ? (item.gap[0] === item.gap[1] ? t("event {n} did not come", { n: item.gap[0] }) : t("events {first} to {last} did not come", { first: item.gap[0], last: item.gap[1] })) : eventText(item),
  },
  { id: "actor", title: t("Asked by"), track: "minmax(6em, .5fr)", cell: (/** @type {Happened | Gap} */ item) => (isGap(item) || !item.actor ? "" : html`<${Name}>${item.actor}<//>`) },
];

export default function Events() {
  const { query } = address.value;
  const job = query.get("job");
  const after = /^\d{1,18}$/.test(query.get("after") ?? "") ? Number(query.get("after")) : null;
  const [depth, setDepth] = useState(0);
  const { events, problem, loading } = useTail(job, after, DEPTHS[depth]);
  const frozen = useRef(/** @type {(Happened | Gap)[] | null} */ (null));
  const [, redraw] = useState(0);
  const all = frozen.current ?? events;
  const kind = query.get("kind");
  const words = typedWords();
  const fits = (/** @type {Happened | Gap} */ item) => isGap(item) || ((!kind || item.type.startsWith(`${kind}.`)) && matches(words, item, eventWords));
  const found = all.filter(fits);
  const newest = (/** @type {(Happened | Gap)[]} */ list) => list.find((item) => !isGap(item));
  const missed = frozen.current ? events.indexOf(/** @type {Happened} */ (newest(frozen.current))) : 0;
  const hold = () => {
    frozen.current = frozen.current ? null : [...events];
    redraw((n) => n + 1);
  };
  const kinds = KINDS.map((value) => ({ value, text: value, count: all.filter((item) => !isGap(item) && item.type.startsWith(`${value}.`)).length }));
  const more = !job && after === null && depth < DEPTHS.length - 1;
  return html`<${Head} title=${t("Events")} />
    <div class="tools">
      <${Filter} label=${t("Filter by number, type, name or text")} shown=${found.length} total=${all.length} />
      <button type="button" aria-pressed=${Boolean(frozen.current)} onClick=${hold}>${frozen.current ? (missed > 0 ? tn(missed, "Go on: 1 new event", "Go on: {n} new events") : t("Go on")) : t("Hold still")}</button>
      <${Chips} name="kind" label=${t("Type")} choices=${kinds.filter(({ count, value }) => count || value === kind)} />
      ${job && html`<p>${t("Only job")} <${To} path=${["jobs", job]}>${job}<//> <a href=${withQuery({ job: null })}>${t("show all")}</a></p>`}
    </div>
    <${ProblemBox} problem=${problem} />
    <${Rows} caption=${t("Events")} columns=${columns()} items=${found} keyOf=${(/** @type {Happened | Gap} */ item) => String(isGap(item) ? `gap ${item.gap[0]}` : item.id)} empty=${loading ? t("Loading…") : all.length ? t("No event fits the filter.") : t("Nothing has happened yet.")} />
    ${more && !loading && html`<p><button type="button" onClick=${() => setDepth(depth + 1)}>${t("Show earlier events")}</button></p>`}`;
}
