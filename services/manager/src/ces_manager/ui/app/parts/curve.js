/** One picture of curves over time: the picture, its values where somebody points at it, and a table of the same. */
import { useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { watchColours } from "../map/palette.js";
import { DASH, html, language, moment, Name, t } from "../show.js";
import { lastOf, topOf } from "./curve_data.js";
import { DASHES, drawPlot, loadPlots } from "./curve_plot.js";
import { CurveTable } from "./curve_table.js";

/** @typedef {import("./curve_data.js").Line} Line */
/** @typedef {import("./curve_data.js").Limit} Limit */
/**
 * @typedef {object} Props
 * @property {any} title
 * @property {string} label what the picture is of, in words
 * @property {number[]} at
 * @property {Line[]} lines
 * @property {Limit[]} [limits]
 * @property {(value: number) => string} show
 * @property {boolean} [binary] whether the scale goes in powers of two
 * @property {boolean} [ground] whether the scale begins at nothing
 */

const NAMED = 8; // workers whose values are told one by one

/**
 * The picture itself: drawn again when its lines, the words or the colours change.
 * @param {Props & {hovered: (place: number | null) => void, says: string}} props
 */
function Picture({ at, lines, limits = [], show, binary = false, ground = false, hovered, says }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {ReturnType<typeof drawPlot> | null} */ (null));
  const [failed, setFailed] = useState(false);
  const [tries, tryAgain] = useState(0);
  const [colours, setColours] = useState(0);
  const values = lines.map((line) => line.values);
  const heights = limits.map((limit) => limit.value);
  const view = { limits, top: ground ? topOf(values, heights) : null, show, binary, hovered };
  const now = useRef({ curves: { at, lines }, view });
  now.current = { curves: { at, lines }, view };
  const shape = `${lines.map((line) => `${line.name}${line.mean ? "*" : ""}`).join()} ${binary} ${language.value}`;

  useEffect(() => watchColours(/** @type {HTMLElement} */ (place.current), () => setColours((n) => n + 1)), []);
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (place.current);
    const observer = new ResizeObserver(() => plot.current?.fit());
    let left = false;
    setFailed(false);
    loadPlots().then(
      (Plot) => {
        if (left) return;
        plot.current = drawPlot(Plot, element, now.current.curves, () => now.current.view);
        observer.observe(element);
      },
      () => left || setFailed(true),
    );
    return () => {
      left = true;
      observer.disconnect();
      plot.current?.end();
      plot.current = null;
    };
  }, [shape, colours, tries]);
  useLayoutEffect(() => plot.current?.update({ at, lines }), [at, lines, heights.join()]);

  return html`<div class="curve-picture" role="img" aria-label=${says} ref=${place}></div>
    ${
      failed &&
      html`<p class="quiet">${t("The picture cannot be drawn; its numbers are in the table.")}
        ${" "}<button type="button" onClick=${() => tryAgain(tries + 1)}>${t("Try again")}</button></p>`
    }`;
}

/** How a line looks, beside its name. @param {{kind: string, dashes?: number[]}} props */
const Sample = ({ kind, dashes = [] }) =>
  html`<svg class="curve-sample ${kind}" viewBox="0 0 22 8" aria-hidden="true"
    ><line x1="0" x2="22" y1="4" y2="4" stroke-dasharray=${dashes.join(" ") || undefined} /></svg>`;

/**
 * Values at one time, or the last ones. Of many workers, their lowest and highest.
 * @param {{lines: Line[], place: number | null, show: (value: number) => string}} props
 */
function Readings({ lines, place, show }) {
  const told = (/** @type {number | null | undefined} */ value) => (value == null ? DASH : show(value));
  const of = (/** @type {Line} */ { values }) => values[place ?? lastOf(values)];
  const means = lines.filter((line) => line.mean);
  const each = lines.filter((line) => !line.mean);
  const known = each.map(of).filter((value) => value != null);
  const few = each.length <= NAMED;
  return html`${means.map(
    (line) => html`<li><${Sample} kind="mean" /> <${Name}>${line.name}<//> <b>${told(of(line))}</b></li>`,
  )}${
    few
      ? each.map(
          (line) => html`<li><${Sample} kind="each" /> <${Name}>${line.name}<//> <b>${told(of(line))}</b></li>`,
        )
      : html`<li><${Sample} kind="each" /> ${t("lowest")} <b>${told(known.length ? Math.min(...known) : null)}</b></li>
        <li>${t("highest")} <b>${told(known.length ? Math.max(...known) : null)}</b></li>`
  }`;
}

/** @param {Props} props */
export function Curve(props) {
  const { title, label, at, lines, limits = [], show, ground = false } = props;
  const [pointed, hovered] = useState(/** @type {number | null} */ (null));
  const main = lines[lines.length - 1];
  const newest = Math.max(...lines.map((line) => lastOf(line.values)));
  const place = pointed !== null && pointed < at.length ? pointed : null;
  const time = at[place ?? newest];
  const values = lines.map((line) => line.values);
  const heights = limits.map((limit) => limit.value);
  const top = ground ? topOf(values, heights) : Number.POSITIVE_INFINITY;
  const [first, last] = [main.values.findIndex((value) => value !== null), lastOf(main.values)];
  const says =
    last < 0
      ? label
      : t("{label}: {name} went from {from} at {begin} to {to} at {end}", {
          label,
          name: main.name,
          from: show(/** @type {number} */ (main.values[first])),
          begin: moment(at[first] * 1000, true),
          to: show(/** @type {number} */ (main.values[last])),
          end: moment(at[last] * 1000, true),
        });
  return html`<div class="curve">
    <h3>${title}</h3>
    <${Picture} ...${props} hovered=${hovered} says=${says} />
    <ul class="curve-key">
      ${newest >= 0 && html`<li class="quiet">${moment(time * 1000, true)}</li>`}
      ${newest >= 0 && html`<${Readings} lines=${lines} place=${place} show=${show} />`}
      ${limits.map(
        ({ name, value, look }) => html`<li><${Sample} kind="limit" dashes=${DASHES[look]} /> ${name}
          ${" "}<b>${show(value)}</b>
          ${value > top && html` <span class="quiet">${t("(above the picture)")}</span>`}</li>`,
      )}
    </ul>
    <${CurveTable} label=${label} at=${at} lines=${lines} show=${show} />
  </div>`;
}
