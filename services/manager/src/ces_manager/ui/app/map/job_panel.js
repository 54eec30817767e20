/** A job over the map: its nodes and the paths of its flows, hop by hop. */
import { useEffect } from "../../vendor/preact-hooks.js";
import { route } from "../client.js";
import { jobs } from "../live.js";
import { useAnswer } from "../parts/answers.js";
import { carriedNow, FlowName } from "../parts/flows.js";
import { html, Name, ProblemBox, rate, State, t, To } from "../show.js";
import { flowKey } from "./light.js";
import { flows } from "./model.js";
import { selecting, view, viewHref } from "./view.js";

const EVERY_S = 5;

/** @typedef {any} Flow a FlowRates of the API */

/** The links of a path with what each carries. @param {{flow: Flow, at: string}} props */
function Hops({ flow, at }) {
  if (flow.path.length < 2) return html`<p class="quiet">${flow.path.length ? t("within {node}", { node: flow.path[0] }) : t("not placed yet")}</p>`;
  return html`<ol class="map-hops">${flow.path.slice(1).map((/** @type {string} */ dst, /** @type {number} */ index) => {
    const src = flow.path[index];
    const short = flow.shortfall?.src === src && flow.shortfall?.dst === dst;
    return html`<li><a href=${viewHref(selecting({ kind: "link", key: `${src}>${dst}` }))}><${Name}>${src}<//> › <${Name}>${dst}<//></a> <span class="map-ways">${carriedNow(flow, { src, dst }, at)}${short && html` <${State} state="slow" word=${t("carries less")} />`}</span></li>`;
  })}</ol>`;
}

/** The job of the address, if there is one. */
export function JobPanel() {
  const { job: id, flow: chosen } = view.value;
  const live = jobs.value.get(id);
  const path = id ? route`/v1/jobs/${id}/flows` : null;
  const { data, problem } = useAnswer(path, { every: live ? EVERY_S : 0, version: `${live?.state} ${live?.attempt}` });
  useEffect(() => {
    flows.value = data?.flows ?? [];
    return () => void (flows.value = []);
  }, [data]);
  if (!id) return null;
  return html`<aside class="map-panel" aria-label=${t("The job on the map")}>
    <a class="map-close" href=${viewHref({ job: null, flow: null })} aria-label=${t("Show no job")} title=${t("Show no job")}>×</a>
    <h2><${To} path=${["jobs", id]}>${live?.name ?? data?.name ?? id}<//></h2>
    <p>${(live ?? data) && html`<${State} state=${(live ?? data).state} />`}</p>
    <${ProblemBox} problem=${problem} />
    ${data && !data.flows.length && html`<p class="quiet">${t("The job has no flows.")}</p>`}
    ${data?.flows.map((/** @type {Flow} */ flow) => {
      const key = flowKey(flow);
      return html`<section class="map-flow" key=${key}>
        <h3><${FlowName} flow=${flow} /></h3>
        <p>${rate(flow.rate)} <a href=${viewHref({ flow: chosen === key ? null : key })} aria-current=${chosen === key ? "true" : undefined}>${chosen === key ? t("show all flows") : t("show only this one")}</a></p>
        <${Hops} flow=${flow} at=${data.at} />
      </section>`;
    })}
  </aside>`;
}
