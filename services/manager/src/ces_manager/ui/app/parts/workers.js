/** What runs on a node, job by job. */
import { useState } from "../../vendor/preact-hooks.js";
import { route } from "../client.js";
import { jobs } from "../live.js";
import { href, html, Name, ProblemBox, State, t, tn, To } from "../show.js";
import { useAnswer } from "./answers.js";
import { progressText } from "./tasks.js";

const SHOWN = 10; // jobs whose workers are asked for at once

/** @param {{id: string, node: string}} props */
function JobWorkers({ id, node }) {
  const job = /** @type {import("../live.js").Item} */ (jobs.value.get(id));
  const { data, problem, again } = useAnswer(route`/v1/jobs/${id}`, {
    every: 10,
    version: `${job?.state} ${job?.attempt}`,
  });
  if (!job) return null;
  const here = (data?.placement ?? []).filter((/** @type {any} */ task) => task.node === node);
  return html`<li>
    <p><${To} path=${["jobs", id]}>${job.name}<//> <${State} state=${job.state} /></p>
    <${ProblemBox} problem=${problem} again=${again} />
    ${
      here.length > 0 &&
      html`<ul>${here.map(
        (/** @type {any} */ task) => html`<li>
        <${Name}>${task.name}<//> <${State} state=${task.state} /> <span class="quiet">${progressText(task.progress)}
          </span>
        <a href=${`${href("jobs", id)}?task=${encodeURIComponent(task.name)}`}>${t("log")}</a>
      </li>`,
      )}</ul>`
    }
  </li>`;
}

/** @param {{name: string}} props */
export function NodeWorkers({ name }) {
  const [all, showAll] = useState(false);
  const ids = [...jobs.value].filter(([, job]) => job.nodes.includes(name)).map(([id]) => id);
  if (!ids.length) return html`<p class="quiet">${t("Nothing runs there.")}</p>`;
  const shown = all ? ids : ids.slice(0, SHOWN);
  return html`<ul class="workers">${shown.map((id) => html`<${JobWorkers} key=${id} id=${id} node=${name} />`)}</ul>
    ${
      ids.length > shown.length &&
      html`<button type="button" onClick=${() => showAll(true)}>
      ${tn(ids.length - shown.length, "Show 1 more job", "Show {n} more jobs")}</button>`
    }`;
}
