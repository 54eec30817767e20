/** Beside the picture of a job: its flows, of which one at a time is lit, with what each hop of its path was asked for, given and carries. */
import { whyNotText } from "../parts/amounts.js";
import { carriedNow } from "../parts/flows.js";
import { LinkTo } from "../parts/network.js";
import { html, Name, plain, rate, rateRange, State, t, To } from "../show.js";
import { flowKey } from "./light.js";

/** @typedef {any} Flow a FlowRates of the API, or a PlannedFlow of a dry run */

/** @param {string} name a task's, or `@node` where data is read */
const endText = (name) => (name.startsWith("@") ? `${t("data on")} ${plain(name.slice(1))}` : plain(name));

/** @param {Flow} flow @returns {string} */
export const flowText = ({ src, dst }) => `${endText(src)} → ${endText(dst)}`;

/** The links of its path. @param {{flow: Flow, at: string}} props `at`: when it was measured; empty where it is planned only */
function Hops({ flow, at }) {
  const { path, shortfall } = flow;
  if (path.length < 2) return html`<p class="quiet">${path.length ? t("within {node}", { node: plain(path[0]) }) : t("not placed yet")}</p>`;
  return html`<table class="job-hops">
    <thead><tr><th scope="col">${t("Link")}</th>${at && html`<th scope="col" class="end">${t("Asked")}</th>`}<th scope="col" class="end">${t("Given")}</th>${at && html`<th scope="col" class="end">${t("Carries")}</th>`}</tr></thead>
    <tbody>${path.slice(1).map((/** @type {string} */ dst, /** @type {number} */ index) => {
      const link = { src: path[index], dst };
      const short = shortfall?.src === link.src && shortfall?.dst === dst;
      return html`<tr>
        <th scope="row"><${LinkTo} link=${link} /></th>
        ${at && html`<td class="end">${rateRange(flow.min, flow.max)}</td>`}
        <td class="end">${rate(flow.rate)}</td>
        ${at && html`<td class="end">${carriedNow(flow, link, at)}${short && html` <${State} state="slow" word=${t("carries less")} />`}</td>`}
      </tr>`;
    })}</tbody>
  </table>
  ${shortfall && html`<p class="job-short"><bdi lang="en">${plain(shortfall.text)}</bdi></p>`}`;
}

/** @param {{flows: Flow[], at: string, chosen: string, choose: (key: string) => void}} props */
export function FlowList({ flows, at, chosen, choose }) {
  if (!flows.length) return html`<p class="quiet">${t("The job has no flows.")}</p>`;
  return html`<p class="quiet" id="job-flows-note">${t("Choose a flow to light its path.")}</p>
    <ul class="job-flows" aria-describedby="job-flows-note">${flows.map((flow) => {
      const key = flowKey(flow);
      const open = key === chosen;
      return html`<li key=${key}>
        <button type="button" aria-pressed=${open} onClick=${() => choose(key)}>
          <span>${flowText(flow)}</span>
          <span class="job-rate">${flow.shortfall && html`<${State} state="slow" word=${t("carries less")} /> `}${flow.path.length === 1 ? t("no link") : rate(flow.rate)}</span>
        </button>
        ${open && html`<${Hops} flow=${flow} at=${at} />`}
      </li>`;
    })}</ul>`;
}

/** Why a node was refused, task by task. @param {{node: string, reasons: import("./job_graph.js").Refusal[]}} props */
export const Refusals = ({ node, reasons }) => html`<section class="job-refusals" aria-live="polite">
  <h3><${To} path=${["nodes", node]}>${node}<//></h3>
  <ul>${reasons.map(({ task, why, lacks }) => html`<li><${Name}>${task}<//>: <bdi lang=${lacks.length ? undefined : "en"}>${whyNotText(why, lacks)}</bdi></li>`)}</ul>
</section>`;
