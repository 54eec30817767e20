/** What a node used or a link carried in the last hour, as curves. */
import { useMemo } from "../../vendor/preact-hooks.js";
import { route } from "../client.js";
import { cpu, html, memory, ProblemBox, rate, t } from "../show.js";
import { useAnswer } from "./answers.js";
import { Curve } from "./curve.js";
import { lastOf, seconds, withHoles } from "./curve_data.js";
import { Part } from "./facts.js";
import { watts } from "./learned.js";

/** @typedef {import("../live.js").Item} Item */
/** @typedef {import("./curve_data.js").Limit} Limit */
/**
 * @typedef {object} Kind of samples
 * @property {string} name
 * @property {string} title
 * @property {string} label
 * @property {(value: number) => string} show
 * @property {boolean} [binary]
 * @property {Limit[]} limits
 */

const EVERY_S = 20; // as the manager takes means

/** @param {{path: string, kinds: Kind[]}} props */
function Hour({ path, kinds }) {
  const { data, problem, again } = useAnswer(path, { every: EVERY_S });
  const samples = useMemo(() => data && withHoles({ at: seconds(data.at), values: data.values }, data.every_s), [data]);
  const used = t("used");
  const curves = useMemo(
    () =>
      Object.fromEntries(
        Object.entries(samples?.values ?? {}).map(([name, values]) => [name, [{ name: used, values, mean: true }]]),
      ),
    [samples, used],
  );
  const known = kinds.filter(({ name }) => curves[name] && lastOf(curves[name][0].values) >= 0);
  return html`<${Part} title=${t("The last hour")}>
    <${ProblemBox} problem=${problem} again=${again} />
    ${!data && !problem && html`<p class="quiet">${t("Loading…")}</p>`}
    ${
      data &&
      !known.length &&
      html`<p class="quiet">
      ${t("Nothing is known yet: the manager keeps means of twenty seconds in memory, since it started or last heard the node.")}</p>`
    }
    ${
      known.length > 0 &&
      html`<div class="curves">${known.map(
        ({ name, ...kind }) => html`<${Curve} key=${name} at=${samples.at} lines=${curves[name]} ground ...${kind} />`,
      )}</div>`
    }
  <//>`;
}

/** @param {{name: string, node: Item}} props */
export function NodeHour({ name, node }) {
  const capacity = (/** @type {number} */ value) => (value > 0 ? [{ name: t("offered"), value, look: 1 }] : []);
  return html`<${Hour} path=${route`/v1/samples?node=${name}`} kinds=${[
    { name: "cpu", title: t("CPU"), label: t("CPU in the last hour"), show: cpu, limits: capacity(node.cpu) },
    {
      name: "memory",
      title: t("Memory"),
      label: t("Memory in the last hour"),
      show: memory,
      binary: true,
      limits: capacity(node.memory),
    },
    { name: "power", title: t("Power"), label: t("Power in the last hour"), show: watts, limits: [] },
  ]} />`;
}

/** @param {{link: Item}} props */
export function LinkHour({ link }) {
  const limits = [
    { name: t("configured"), value: link.bandwidth, look: 0 },
    link.measured != null && { name: t("measured"), value: link.measured, look: 1 },
    { name: t("reserved now"), value: link.reserved ?? 0, look: 2 },
  ].filter((limit) => limit !== false);
  return html`<${Hour} path=${route`/v1/samples?link=${`${link.src}>${link.dst}`}`} kinds=${[
    { name: "used", title: t("Used"), label: t("What the link carried in the last hour"), show: rate, limits },
  ]} />`;
}
