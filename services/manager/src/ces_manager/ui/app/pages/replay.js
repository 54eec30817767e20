/** Replay: the cluster as it was after an event of the last days. What is shown stands in the address. */
import { useEffect, useRef } from "../../vendor/preact-hooks.js";
import { holdLive, leavePast, links, nodes, past, showPast } from "../live.js";
import { address, withQuery } from "../main.js";
import { Legend } from "../map/legend.js";
import { Panel } from "../map/panel.js";
import { askPlaces, beginPlaces } from "../map/places.js";
import { styled } from "../map/styles.js";
import { Surface } from "../map/surface.js";
import { MapTable } from "../map/table.js";
import { Narrowed } from "../map/tools.js";
import { view, viewHref } from "../map/view.js";
import { useAnswer } from "../parts/answers.js";
import { Controls, onlyChanges, Span } from "../parts/past_controls.js";
import { PastEvents } from "../parts/past_events.js";
import { PastJob, PastJobs, PastQueue } from "../parts/past_jobs.js";
import { Head, html, ProblemBox, t, tx } from "../show.js";

/** @typedef {any} Past a PastState of the API */

askPlaces(); // while the rules come
await styled;

const SHOWN = ["map", "queue", "jobs"];
const FAILURE = "?failure=true"; // where no instant is named; where nothing has failed, that is now
/** @returns {Record<string, string>} */
const titles = () => ({ map: t("Map"), queue: t("Queue"), jobs: t("Jobs") });

/** The network then. @param {{state: Past}} props */
function PastMap({ state }) {
  const picture = useRef(/** @type {import("../map/picture.js").Picture | null} */ (null));
  useEffect(() => beginPlaces(false), []);
  const { table, selection, job } = view.value;
  const known = nodes.value.size || links.value.size;
  return html`<div class="map">
    <p><a href=${viewHref({ as: table ? null : "table" })}>${table ? t("Show as a map") : t("Show as a table")}</a></p>
    <${Narrowed} />
    ${
      table
        ? html`<${MapTable} />`
        : html`<div class="map-body">
          <div><div class="map-frame"><${Surface} arranging=${false} picture=${picture} />
            ${!known && html`<p class="map-empty">${t("There was no node and no link.")}</p>`}</div><${Legend} /></div>
          ${
            (selection || job) &&
            html`<div class="map-side"><${PastJob} state=${state} /><${Panel} /></div>`
          }
        </div>`
    }
  </div>`;
}

/** @param {{state: Past, shown: string}} props */
function Then({ state, shown }) {
  if (shown === "queue") return html`<${PastQueue} />`;
  if (shown === "jobs") return html`<${PastJobs} />`;
  return html`<${PastMap} state=${state} />`;
}

export default function Replay() {
  const { query } = address.value;
  const [event, at] = [query.get("event"), query.get("at")];
  const asked = event ? `?event=${encodeURIComponent(event)}` : at ? `?at=${encodeURIComponent(at)}` : FAILURE;
  const { data, problem, again } = useAnswer(`/v1/state${asked}`);
  const held = useRef(/** @type {Past | null} */ (null)); // the last one stays while another is asked for
  held.current = data ?? held.current;
  useEffect(() => {
    const release = holdLive();
    return () => {
      leavePast();
      release();
    };
  }, []);
  useEffect(() => {
    if (data) showPast(data);
  }, [data]);
  const state = held.current;
  const shown = SHOWN.find((each) => each === query.get("show")) ?? "map";
  return html`<${Head} title=${t("Replay")}><${Span} state=${state} /><//>
    <${Controls} state=${state} busy=${!data && !problem} failed=${Boolean(problem)} />
    ${
      asked === FAILURE &&
      data &&
      data.event < data.newest.event &&
      html`<p>${tx("This is the last failure. {last}", {
        last: html`<a href=${withQuery({ event: String(data.newest.event) })}>${t("To the last event")}</a>`,
      })}</p>`
    }
    <${ProblemBox} problem=${problem} again=${again} />
    ${!state && !problem && html`<p class="quiet">${t("Loading…")}</p>`}
    ${
      state &&
      past.value &&
      html`<div class="past-page">
        <div>
          <nav class="chips" aria-label=${t("What is shown")}>
            ${SHOWN.map(
              (each) => html`<a href=${withQuery({ show: each === "map" ? null : each })}
                aria-current=${each === shown ? "true" : undefined}>${titles()[each]}</a>`,
            )}
          </nav>
          <${Then} state=${state} shown=${shown} />
        </div>
        <${PastEvents} state=${state} changes=${onlyChanges()} />
      </div>`
    }`;
}
