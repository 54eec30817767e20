/** The flows of a job: what each asked for, was given and carries, link by link. */
import { useState } from "../../vendor/preact-hooks.js";
import { DASH, href, html, Name, plain, rate, State, t, To } from "../show.js";
import { LinkTo, PathName } from "./network.js";
import { Rows } from "./rows.js";

const LATE_MS = 10000; // an older report does not describe the present
const RETURN = 0.025; // of a flow's rate, which its answers share
const [WIDTH, HEIGHT, BARS] = [120, 18, 30];

/** @typedef {{at: string, measured: number, waited: number, rate: number}} Sample */
/** @typedef {{src: string, dst: string, samples: Sample[]}} Hop */
/** @typedef {any} Flow a FlowRates of the API */

/** A flow's end: a task, or a node whose data is read. @param {{name: string}} props */
const End = ({ name }) =>
  name.startsWith("@")
    ? html`<span class="said">${t("data on")} <${To} path=${["nodes", name.slice(1)]}>${name.slice(1)}<//></span>`
    : html`<${Name}>${name}<//>`;

/** @param {{flow: {src: string, dst: string}}} props */
export const FlowName = ({ flow }) => html`<${End} name=${flow.src} /> → <${End} name=${flow.dst} />`;

/**
 * What was carried over the last minute, as bars; the table has the numbers.
 * @param {{samples: Sample[], top: number}} props
 */
function Spark({ samples, top }) {
  const shown = samples.slice(-BARS);
  if (!shown.length || top <= 0) return DASH;
  const width = WIDTH / BARS;
  return html`<svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" width=${WIDTH} height=${HEIGHT} aria-hidden="true">
    ${shown.map(({ measured }, index) => {
      const height = Math.max(1, Math.min(1, measured / top) * HEIGHT);
      return html`<rect x=${(BARS - shown.length + index) * width} y=${HEIGHT - height} width=${width - 1}
        height=${height} />`;
    })}
  </svg>`;
}

/** @param {Sample[]} samples @param {string} at @returns {[string, string]} now, and the mean */
function carried(samples, at) {
  if (!samples.length) return [DASH, DASH];
  const last = samples[samples.length - 1];
  const fresh = Date.parse(at) - Date.parse(last.at) <= LATE_MS;
  return [
    fresh ? rate(last.measured) : DASH,
    rate(samples.reduce((sum, { measured }) => sum + measured, 0) / samples.length),
  ];
}

/** @param {Flow} flow @param {{src: string, dst: string}} link of its path @param {string} at @returns {string} what it carries there now */
export function carriedNow(flow, { src, dst }, at) {
  const hop = flow.hops.find((/** @type {Hop} */ each) => each.src === src && each.dst === dst);
  return carried(hop?.samples ?? [], at)[0];
}

/** @param {Flow} flow @returns {number} to what bars of all its links are scaled */
const topOf = (flow) =>
  Math.max(
    flow.rate ?? 0,
    ...flow.hops.flatMap((/** @type {Hop} */ hop) => hop.samples.map(({ measured }) => measured)),
  );

/**
 * The path, and where asked for what each of its links carries.
 * @param {{flow: Flow, at: string, hops: boolean}} props
 */
function Path({ flow, at, hops }) {
  if (!flow.path.length) return DASH;
  const short = flow.shortfall;
  if (!hops || flow.hops.length < 2) return html`<${PathName} path=${flow.path} />`;
  return html`<ul class="hops">${flow.hops.map((/** @type {Hop} */ hop) => {
    const [now, mean] = carried(hop.samples, at);
    const late = short && short.src === hop.src && short.dst === hop.dst;
    return html`<li><${LinkTo} link=${hop} />${late && html`<${State} state="slow" word=${t("carries less")} />`}<span>
      ${t("now {now}, mean {mean}", { now, mean })}</span><${Spark} samples=${hop.samples} top=${topOf(flow)} /></li>`;
  })}</ul>`;
}

/** Why a flow may carry nothing though its tasks talk. @param {any} view */
function silent(view) {
  const found = view.flows.filter(
    (/** @type {Flow} */ { hops }) =>
      hops.length &&
      hops[0].samples.length &&
      hops[0].samples.every((/** @type {Sample} */ sample) => !sample.measured),
  );
  if (!found.length || view.state !== "running") return null;
  const names = found.map((/** @type {Flow} */ flow) => `${flow.src} → ${flow.dst}`).join(", ");
  return t(
    "{flows} carried nothing: only what the sender sends is counted. Answers are not, and share {share} of the flow's rate; data that goes back needs a flow of its own",
    { flows: names, share: `${100 * RETURN} %` },
  );
}

/** @param {{view: any}} props the answer of `/v1/jobs/{id}/flows` */
export function Flows({ view }) {
  const [hops, showHops] = useState(false);
  const { flows, at } = view;
  const first = (/** @type {Flow} */ flow) => flow.hops[0]?.samples ?? [];
  const now = (/** @type {Flow} */ flow) => (flow.path.length === 1 ? t("no link") : carried(first(flow), at)[0]);
  /** @type {(import("./rows.js").Column<Flow> | false)[]} */
  const columns = [
    {
      id: "flow",
      title: t("Flow"),
      track: "minmax(10em, 1fr)",
      by: (flow) => `${flow.src} ${flow.dst}`,
      cell: (flow) => html`<${FlowName} flow=${flow} />`,
    },
    { id: "mode", title: t("Mode"), track: "minmax(4.5em, .4fr)", wide: true, cell: (flow) => flow.mode },
    {
      id: "min",
      title: t("Min"),
      track: "minmax(6em, .6fr)",
      end: true,
      by: (flow) => flow.min,
      cell: (flow) => rate(flow.min),
    },
    {
      id: "max",
      title: t("Max"),
      track: "minmax(6em, .6fr)",
      end: true,
      by: (flow) => flow.max,
      cell: (flow) => rate(flow.max),
    },
    {
      id: "rate",
      title: t("Rate"),
      track: "minmax(6em, .6fr)",
      end: true,
      by: (flow) => flow.rate ?? -1,
      cell: (flow) => html`${rate(flow.rate)}${flow.rate != null && !flow.enforced && html`<b class="wait">*</b>`}`,
    },
    { id: "now", title: t("Now"), track: "minmax(6em, .6fr)", end: true, cell: now },
    {
      id: "mean",
      title: t("Mean"),
      track: "minmax(6em, .6fr)",
      end: true,
      cell: (flow) => (flow.path.length === 1 ? DASH : carried(first(flow), at)[1]),
    },
    !hops && {
      id: "minute",
      title: t("Last minute"),
      track: "130px",
      wide: true,
      cell: (flow) => html`<${Spark} samples=${first(flow)} top=${topOf(flow)} />`,
    },
    {
      id: "path",
      title: t("Path"),
      full: true,
      track: hops ? "minmax(15em, 4fr)" : "minmax(12em, 2fr)",
      cell: (flow) => html`<${Path} flow=${flow} at=${at} hops=${hops} />`,
    },
  ];
  const note = silent(view);
  return html`
    ${flows
      .filter((/** @type {Flow} */ flow) => flow.shortfall)
      .map(
        (/** @type {Flow} */ flow) => html`<p
      class="warning"><${State} state="slow" word=${t("warning")} /> <${FlowName} flow=${flow} /> <a
      href=${href("links", flow.shortfall.src, flow.shortfall.dst)}><bdi lang="en">${plain(flow.shortfall.text)}</bdi>
      </a></p>`,
      )}
    ${
      flows.some((/** @type {Flow} */ flow) => flow.hops.length > 1) &&
      html`<p><label class="check">
      <input type="checkbox" checked=${hops} onChange=${() => showHops(!hops)} />${t("Show every link of the paths")}
      </label></p>`
    }
    <${Rows} caption=${t("Flows")} param="flows" columns=${columns} items=${flows}
      keyOf=${(/** @type {Flow} */ flow) => `${flow.src}>${flow.dst}`} empty=${t("The job has no flows.")} />
    ${
      flows.some((/** @type {Flow} */ flow) => !flow.enforced && flow.rate != null) &&
      html`<p class="quiet">
      <b class="wait">*</b> ${t("planned, but not enforced: a node on the path cannot shape traffic (network none)")}
      </p>`
    }
    ${note && html`<p class="quiet">${plain(note)}</p>`}
  `;
}
