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

const KINDS = [
  "job",
  "allocation",
  "plan",
  "node",
  "link",
  "topology",
  "checkpoint",
  "resize",
  "cpu",
  "preemption",
  "token",
  "session",
  "secret",
];

/** @param {Happened | Gap} item @returns {item is Gap} */
const isGap = (item) => "gap" in item;

/** @param {(Happened | Gap)[]} items @returns {Map<string, string>} ids of jobs -> their names, where an event tells */
function namesIn(items) {
  const names = new Map();
  for (const item of items) {
    const job = isGap(item) ? null : jobOf(item);
    if (job && !names.has(job) && /** @type {Happened} */ (item).data.name)
      names.set(job, /** @type {Happened} */ (item).data.name);
  }
  return names;
}

/** What it is about, as a link. @param {{event: Happened, names: Map<string, string>}} props */
function Subject({ event, names }) {
  const job = jobOf(event);
  if (job)
    return html`<span class="about"><${To} path=${["jobs", job]}>${names.get(job) ?? job}
      <//> <a class="quiet" href=${withQuery({ job })} title=${t("Only this job")}>${t("only")}</a></span>`;
  if (event.type === "node.changed") return html`<${To} path=${["nodes", event.subject]}>${event.subject}<//>`;
  if (event.type === "link.changed") return html`<${LinkTo} link=${event.data} />`;
  return html`<${Name}>${event.subject}<//>`;
}

/** @param {Map<string, string>} names @returns {import("../parts/rows.js").Column<Happened | Gap>[]} */
const columnsOf = (names) => [
  {
    id: "number",
    title: t("Number"),
    track: "minmax(5em, .3fr)",
    end: true,
    cell: (item) =>
      isGap(item)
        ? "…"
        : html`<a data-number=${item.id} href=${`#/replay?event=${item.id}`}
        title=${t("The cluster after this event")}>${item.id}</a>`,
  },
  {
    id: "time",
    title: t("Time"),
    track: "minmax(6.5em, .4fr)",
    cell: (item) => (isGap(item) ? "" : moment(item.time, true)),
  },
  {
    id: "type",
    title: t("Type"),
    track: "minmax(13.5em, .6fr)",
    cell: (item) =>
      isGap(item) ? html`<${State} state="slow" word=${t("gap")} />` : html`<code>${plain(item.type)}</code>`,
  },
  {
    id: "about",
    title: t("About"),
    full: true,
    track: "minmax(9em, .9fr)",
    cell: (item) => (isGap(item) ? "" : html`<${Subject} event=${item} names=${names} />`),
  },
  {
    id: "what",
    title: t("What happened"),
    full: true,
    track: "minmax(14em, 2.4fr)",
    cell: (item) =>
      isGap(item)
        ? item.gap[0] === item.gap[1]
          ? t("event {n} did not come", { n: item.gap[0] })
          : t("events {first} to {last} did not come", { first: item.gap[0], last: item.gap[1] })
        : html`<span class="said">${eventText(item)}</span>`,
  },
  {
    id: "actor",
    title: t("Asked by"),
    track: "minmax(6em, .5fr)",
    cell: (item) => (isGap(item) || !item.actor ? "" : html`<${Name}>${item.actor}<//>`),
  },
];

export default function Events() {
  const { query } = address.value;
  const job = query.get("job");
  const kind = query.get("kind");
  const from = /^\d{1,15}$/.test(query.get("from") ?? "") ? Number(query.get("from")) : null;
  const { events, problem, loading, more } = useTail({ job, kind, from });
  const frozen = useRef(/** @type {(Happened | Gap)[] | null} */ (null));
  const [, redraw] = useState(0);
  const all = frozen.current ?? events;
  const words = typedWords();
  const found = all.filter((item) => isGap(item) || matches(words, item, eventWords));
  const missed = frozen.current ? events.indexOf(frozen.current[0]) : 0;
  const hold = () => {
    frozen.current = frozen.current ? null : [...events];
    redraw((n) => n + 1);
  };
  const nothing = all.length ? t("No event fits the filter.") : t("Nothing has happened yet.");
  const empty = loading ? t("Loading…") : nothing;
  const going = missed > 0 ? tn(missed, "Go on: 1 new event", "Go on: {n} new events") : t("Go on");
  return html`<${Head} title=${t("Events")} />
    <div class="tools">
      <${Filter} label=${t("Filter by number, type, name or text")} shown=${found.length} total=${all.length} />
      ${
        from === null &&
        html`<button type="button" aria-pressed=${Boolean(frozen.current)} onClick=${hold}>
        ${frozen.current ? going : t("Hold still")}</button>`
      }
      <${Chips} name="kind" label=${t("Type")} choices=${KINDS.map((value) => ({ value, text: value }))} />
      ${
        job &&
        html`<p>${t("Only job")} <${To} path=${["jobs", job]}>${job}<//> <a href=${withQuery({ job: null })}>
        ${t("show all")}</a></p>`
      }
      ${
        from !== null &&
        html`<p>${t("Up to number {n}.", { n: from })} <a href=${withQuery({ from: null })}>
        ${t("Show the newest")}</a></p>`
      }
    </div>
    <${ProblemBox} problem=${problem} />
    <${Rows} caption=${t("Events")} columns=${columnsOf(namesIn(all))} items=${found}
      keyOf=${(/** @type {Happened | Gap} */ item) => (isGap(item) ? `gap ${item.gap[0]}` : String(item.id))}
      empty=${empty} />
    ${
      all.length > 0 &&
      (more || loading) &&
      !frozen.current &&
      html`<p>
      <button type="button" aria-disabled=${loading} onClick=${() => more?.()}>
      ${loading ? t("Loading…") : t("Show earlier events")}</button></p>`
    }`;
}
