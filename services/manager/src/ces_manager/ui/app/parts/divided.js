/** An application's graph, divided into the tasks of a job: several ways beside each other, the parts, and a picture. */
import { useState } from "../../vendor/preact-hooks.js";
import { brief, cpu, DASH, html, memory, Name, percent, plain, ProblemBox, rate, State, t, tn, tx } from "../show.js";
import { confirmed } from "./dialog.js";
import { invalid, useDryRun } from "./dry_run.js";
import { Forecast, summaryText } from "./forecast.js";
import { JobMap } from "./job_map.js";
import { Refusal } from "./refusal.js";

/** @typedef {{name: string, parts: number, chosen: boolean, cut?: number, spread: number, share?: number, gap?: number,
 *   cpu?: number, memory?: number, note?: string}} Level a DividedLevel of the API */
/** @typedef {{task: string, cpu: number, memory: number, gpu: number, arch?: string, vertices: string[]}} PartOf */

const SHOWN = 40; // vertices of a part; the others are counted

/** @param {string} text @returns {boolean} whether it is a graph, and no job file */
export function isGraph(text) {
  const first = text.split("\n").find((line) => line.trim() && !line.trim().startsWith("#") && line.trim() !== "---");
  return /^graph\s*:/.test(first ?? "") || /^\s*\{\s*"graph"\s*:/.test(text);
}

/** @param {string} name @returns {string} */
function wayName(name) {
  const names = /** @type {Record<string, () => string>} */ ({
    clusters: () => t("by clusters"),
    optimal: () => t("least traffic"),
    compute: () => t("one kind of work each"),
    mobile: () => t("near the user, and elsewhere"),
    unsplit: () => t("not divided"),
    random: () => t("at random"),
  });
  return names[name]?.() ?? name;
}

/** @param {{level: Level}} props */
const Cut = ({ level: { cut, spread, share } }) =>
  cut == null
    ? DASH
    : html`${rate(cut)}${spread > 0 && html` <span class="quiet">± ${rate(spread)}</span>`}${
        share != null && html` <span class="quiet">(${percent(share, 1)})</span>`
      }`;

/** @param {Level} level @returns {string} */
const gapText = ({ gap }) => (gap == null ? DASH : gap < 1e-6 ? t("proven to be the least") : t("{n} % at most", { n: brief(gap * 100, 2) }));

/** @param {{levels: Level[], others: Level[]}} props */
function Levels({ levels, others }) {
  const caption = t("Ways to divide it");
  return html`<div tabindex="0" role="region" aria-label=${caption}><table class="plain-table">
    <caption>${caption}</caption>
    <thead><tr><th scope="col">${t("Way")}</th><th scope="col" class="end">${t("Parts")}</th>
      <th scope="col" class="end">${t("Traffic between parts")}</th><th scope="col">${t("Largest part")}</th>
      <th scope="col">${t("From the least")}</th></tr></thead>
    <tbody>${[...levels, ...others].map(
      (level) => html`<tr><th scope="row">${wayName(level.name)}${level.chosen && html` <${State} state="ready" word=${t("shown below")} />`}
        ${level.note && html`<div class="quiet"><bdi lang="en">${plain(level.note)}</bdi></div>`}</th>
      <td class="end">${level.parts}</td><td class="end"><${Cut} level=${level} /></td>
      <td>${level.cpu == null ? DASH : `${cpu(level.cpu)}, ${memory(level.memory ?? 0)}`}</td><td>${gapText(level)}</td></tr>`,
    )}</tbody></table></div>`;
}

/** @param {{parts: PartOf[]}} props */
function PartList({ parts }) {
  const caption = t("Parts");
  return html`<div tabindex="0" role="region" aria-label=${caption}><table class="plain-table">
    <caption>${caption}</caption>
    <thead><tr><th scope="col">${t("Task")}</th><th scope="col">${t("Asks for")}</th><th scope="col">${t("Stands for")}</th></tr></thead>
    <tbody>${parts.map(({ task, cpu: cores, memory: size, gpu, arch, vertices }) => {
      const more = vertices.length - SHOWN;
      return html`<tr><th scope="row"><${Name}>${task}<//></th>
      <td>${[cpu(cores), memory(size), gpu > 0 && t("{n} GPU", { n: gpu }), arch].filter(Boolean).join(", ")}</td>
      <td><bdi>${vertices.slice(0, SHOWN).map(plain).join(", ")}</bdi>${more > 0 && ` ${tn(more, "and 1 more", "and {n} more")}`}</td></tr>`;
    })}</tbody></table></div>`;
}

/** What the job of the parts would meet now. @param {{text: string}} props */
function JobForecast({ text }) {
  const { said } = useDryRun(text);
  if (!said) return html`<p class="quiet">${t("Checking…")}</p>`;
  if (said.problem) return html`<${ProblemBox} problem=${said.problem} />`;
  const word = summaryText(said.answer, { name: JSON.parse(text).name, group: "" });
  return html`<p><${State} state=${said.answer.feasible ? "ready" : "queued"} word=${word} /></p>
    <${Forecast} answer=${said.answer} />`;
}

/** @param {{answer: any, old: boolean, write: (text: string) => void}} props `old`: another text or way is written by now */
function Answer({ answer, old, write }) {
  const { refusal, note, levels, others, parts, traffic, job, remark } = answer;
  if (refusal) return html`<p><${State} state="failed" word=${t("It is not divided.")} /> <bdi lang="en">${plain(refusal)}</bdi></p>`;
  const text = job && JSON.stringify(job, null, 2);
  const use = async () => {
    if (old) return;
    const content = html`<p>${t("What stands there now is lost.")}</p>`;
    if (await confirmed(t("Replace the graph by the job?"), content, t("Replace"))) write(`${text}\n`);
  };
  const flows = traffic.map((/** @type {any} */ each) => ({ ...each, rate: each.max, path: [] }));
  return html`${note && html`<p><bdi lang="en">${plain(note)}</bdi></p>`}
    <${Levels} levels=${levels} others=${others} />
    <${JobMap} tasks=${parts.map((/** @type {PartOf} */ { task }) => ({ name: task, node: null }))} flows=${flows} />
    <${PartList} parts=${parts} />
    ${remark && html`<p class="bad"><bdi lang="en">${plain(remark)}</bdi></p>`}
    ${!job && !remark && html`<p>${tx("There is no job yet: {field} says what each part runs.", { field: html`<code>graph.run</code>` })}</p>`}
    ${text && html`<h3>${t("As a job, now")}</h3>
      <div class="actions"><button type="button" aria-disabled=${old} onClick=${use}>${t("Write this job file…")}</button></div>
      <${JobForecast} key=${text} text=${text} />`}`;
}

/**
 * @param {{text: string, goTo: (line: number) => void, write: (text: string) => void}} props `text`: a graph file
 */
export function Divided({ text, goTo, write }) {
  const [by, setBy] = useState("clusters");
  const [parts, setParts] = useState("");
  const [granularity, setGranularity] = useState("medium");
  const query = new URLSearchParams({ by, granularity, ...(parts && { parts }) });
  const path = `/v1/decompositions?${query}`;
  const { said, busy, again } = useDryRun(text, { path, repeats: false });
  const old = !said || said.text !== text || said.path !== path;
  const value = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.target).value;
  const refused = said && invalid(said.problem);
  return html`
    <div class="actions">
      <label>${t("Divide")} <select value=${by} onChange=${(/** @type {Event} */ event) => setBy(value(event))}>
        ${["clusters", "optimal", "compute", "mobile"].map((way) => html`<option value=${way}>${wayName(way)}</option>`)}</select></label>
      <label>${t("into parts")} <input type="number" min="1" max="64" value=${parts} placeholder=${t("as it suits")}
        onInput=${(/** @type {Event} */ event) => setParts(value(event))} /></label>
      ${!parts && html`<label>${t("how finely")} <select value=${granularity} onChange=${(/** @type {Event} */ event) => setGranularity(value(event))}>
        <option value="coarse">${t("coarsely")}</option><option value="medium">${t("medium")}</option>
        <option value="fine">${t("finely")}</option></select></label>`}
    </div>
    <p role="status" class="quiet">${busy || old ? t("Dividing…") : refused ? t("The graph is refused.") : ""}</p>
    ${said?.problem && html`<${Refusal} problem=${said.problem} text=${said.text} goTo=${goTo} again=${refused ? undefined : again} />`}
    ${said?.answer && html`<div class=${old ? "old" : ""} aria-busy=${old}><${Answer} answer=${said.answer} old=${old} write=${write} /></div>`}`;
}
