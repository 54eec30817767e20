/** A job that may run, runs or ran in another region: where, and step by step how it came there. */
import { OVER } from "../live.js";
import { RegionTo } from "../regions/text.js";
import { html, moment, Name, plain, since, State, t, tx } from "../show.js";
import { Part } from "./facts.js";

/** @typedef {any} Job a JobView of the API */

/** @param {Job} job @returns {{state: string, word: string, at: string | null}[]} the steps, in their order */
function stepsOf(job) {
  const region = plain(job.region);
  const over = OVER.includes(job.state);
  const step = (/** @type {string} */ word, /** @type {string | null} */ at) => ({
    state: at ? "succeeded" : over ? "cancelled" : "waiting",
    word,
    at,
  });
  return [
    step(t("submitted here"), job.submitted_at),
    step(t("held by region {region}, and decided to run there", { region }), job.decided_at),
    step(t("committed: region {region} has said that it may start", { region }), job.committed_at),
    step(t("started there"), job.started_at),
    { ...step(t("over"), job.finished_at), ...(over && { state: job.state, word: t(job.state) }) },
  ];
}

/** @param {{job: Job}} props */
export function Elsewhere({ job }) {
  if (!job.region)
    return html`<${Part} title=${t("Other regions")}><p>${tx("It may run in {regions} as soon as there is no room here.", {
      regions: job.regions.map((/** @type {string} */ name, /** @type {number} */ place) => [
        place > 0 && ", ",
        name === "any" ? t("any other region") : html`<${RegionTo} name=${name} />`,
      ]),
    })}</p><//>`;
  const said = job.remote_state && job.state === "elsewhere";
  return html`<${Part} title=${t("In another region")}>
    <p>${tx(job.state === "elsewhere" ? "Its place is in region {region}." : "Its place was in region {region}.", {
      region: html`<${RegionTo} name=${job.region} />`,
    })} ${said && tx("That one says: {state}", { state: html`<${State} state=${job.remote_state} />` })}</p>
    ${
      job.unknown_since &&
      html`<p class="warning">${t("Unknown since {time}, for {span}: that region does not answer. It is not placed again on silence alone.", {
        time: moment(job.unknown_since, true),
        span: since(job.unknown_since),
      })}</p>`
    }
    ${job.remark && html`<p class="warning"><${Name}>${job.remark}<//></p>`}
    <ol class="steps">${stepsOf(job).map(
      ({ state, word, at }) => html`<li><${State} state=${state} word=${word} />
      <span class="quiet">${at ? moment(at, true) : t("not yet")}</span></li>`,
    )}</ol>
  <//>`;
}
