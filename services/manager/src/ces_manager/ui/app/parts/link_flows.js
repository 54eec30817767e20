/** The flows that reserve a link, of all jobs; of one that is down, those that did until then. */
import { route } from "../client.js";
import { DASH, href, html, plain, ProblemBox, rate, rateRange, State, t, To } from "../show.js";
import { useAnswer } from "./answers.js";
import { FlowName } from "./flows.js";
import { PathName } from "./network.js";
import { Rows } from "./rows.js";

const EVERY_S = 5;

/** @typedef {any} Flow a HeldFlow of the API */

/** @returns {import("./rows.js").Column<Flow>[]} */
const columns = () => [
  {
    id: "flow",
    title: t("Flow"),
    track: "minmax(10em, 1fr)",
    by: (flow) => `${flow.src} ${flow.dst}`,
    cell: (flow) => html`<${FlowName} flow=${flow} />`,
  },
  {
    id: "job",
    title: t("Job"),
    track: "minmax(9em, 1fr)",
    by: (flow) => flow.name,
    cell: (flow) => html`<${To} path=${["jobs", flow.job]}>${flow.name}<//>`,
  },
  {
    id: "asked",
    title: t("Asked"),
    track: "minmax(8em, .7fr)",
    end: true,
    by: (flow) => flow.min,
    cell: (flow) => rateRange(flow.min, flow.max),
  },
  {
    id: "rate",
    title: t("Rate"),
    track: "minmax(6.5em, .6fr)",
    end: true,
    by: (flow) => flow.rate,
    cell: (flow) => rate(flow.rate),
  },
  {
    id: "measured",
    title: t("Measured"),
    track: "minmax(6.5em, .6fr)",
    end: true,
    by: (flow) => flow.measured ?? -1,
    moves: true,
    cell: (flow) => rate(flow.measured),
  },
  {
    id: "path",
    title: t("Path"),
    track: "minmax(12em, 2fr)",
    full: true,
    cell: (flow) =>
      html`${flow.path.length ? html`<${PathName} path=${flow.path} />` : DASH}
        ${
          flow.shortfall &&
          html`<span class="why"><${State} state="slow" word=${t("warning")} /> <bdi lang="en">
        ${plain(flow.shortfall.text)}</bdi></span>`
        }`,
  },
];

/**
 * What a link that is down was reserved for, and the way to the moment before.
 * @param {{src: string, dst: string, event: number}} props `event`: the last one before it went down
 */
export function FlowsBefore({ src, dst, event }) {
  const { data: state, problem, again } = useAnswer(`/v1/state?event=${event}`);
  const over = (/** @type {string[]} */ path) => path.some((node, index) => node === src && path[index + 1] === dst);
  const items = (state?.flows ?? [])
    .filter((/** @type {Flow} */ flow) => flow.rate > 0 && over(flow.path))
    .map((/** @type {Flow} */ flow) => ({ ...flow, name: state.jobs[flow.job].name }));
  const then = `${href("replay")}?event=${event}&link=${route`${`${src}>${dst}`}`}`;
  return html`<p><a href=${then}>${t("The cluster at the moment before")}</a></p>
    <${ProblemBox} problem=${problem} again=${again} />
    ${
      state
        ? html`<${Rows} caption=${t("Flows that reserved it until it went down")} param="before" usual="flow"
            columns=${columns().filter(({ id }) => id !== "measured")} items=${items}
            keyOf=${(/** @type {Flow} */ flow) => `${flow.job} ${flow.number}`} empty=${t("No flow reserved it.")} />`
        : !problem && html`<p class="quiet">${t("Loading…")}</p>`
    }`;
}

/** @param {{src: string, dst: string}} props */
export function LinkFlows({ src, dst }) {
  const { data, problem, again } = useAnswer(`/v1/flows?limit=500&link=${route`${`${src}>${dst}`}`}`, {
    every: EVERY_S,
  });
  if (problem && !data) return html`<${ProblemBox} problem=${problem} again=${again} />`;
  if (!data) return html`<p class="quiet">${t("Loading…")}</p>`;
  return html`${data.next && html`<p class="quiet">${t("The first {n} are shown.", { n: data.items.length })}</p>`}
    <${Rows} caption=${t("Flows that reserve it")} param="flows" usual="flow" columns=${columns()} items=${data.items}
      keyOf=${(/** @type {Flow} */ flow) => String(flow.number)} empty=${t("No flow reserves it.")} />`;
}
