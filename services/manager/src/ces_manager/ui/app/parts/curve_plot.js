/** A picture of curves, drawn by uPlot. That and its rules are loaded with the first picture. */
import { insist, loadRules } from "../client.js";
import { moment } from "../show.js";

/** @typedef {import("./curve_data.js").Line} Line */
/** @typedef {import("./curve_data.js").Limit} Limit */
/**
 * @typedef {object} View what is drawn; read again with every drawing
 * @property {Limit[]} limits
 * @property {number | null} top of the scale, which then begins at nothing; null: as high and low as the values
 * @property {(value: number) => string} show
 * @property {boolean} binary whether the scale goes in powers of two, as bytes do
 * @property {(place: number | null) => void} hovered
 */

const HEIGHT = 176;
const LEAST_S = 60; // that the time axis covers
/** Dashes of limits, by their look. */
export const DASHES = [[], [7, 4], [2, 3]];
const POWERS = Array.from({ length: 60 }, (_, n) => 2 ** n);

/** @type {Promise<any> | null} */
let loading = null;

/** @returns {Promise<any>} uPlot */
export function loadPlots() {
  loading ??= Promise.all([
    insist((again) => import(`../../vendor/uplot.js${again}`)),
    loadRules(new URL("../../vendor/uplot.css", import.meta.url).href),
  ]).then(([module]) => module.default);
  loading.catch(() => {
    loading = null;
  });
  return loading;
}

/** The page's colours and letters, as a canvas understands them. @param {HTMLElement} within */
function readColours(within) {
  const probe = document.createElement("i");
  probe.className = "curve-probe";
  within.append(probe);
  const style = getComputedStyle(probe);
  const read = (/** @type {string} */ name) => {
    probe.style.color = `var(--curve-${name})`;
    return style.color;
  };
  const colours = {
    each: read("each"),
    mean: read("mean"),
    limit: read("limit"),
    grid: read("grid"),
    text: read("text"),
    font: `12px ${style.fontFamily}`,
  };
  probe.remove();
  return colours;
}

/** @param {any} plot @param {string[] | null} texts @returns {number} how wide the axis beside a picture is */
function axisWidth(plot, texts) {
  if (!texts) return 40;
  plot.ctx.save();
  plot.ctx.font = plot.axes[1].font[0];
  const widest = Math.max(...texts.map((text) => plot.ctx.measureText(text).width));
  plot.ctx.restore();
  return Math.ceil(widest / devicePixelRatio) + 14;
}

/** @param {any} plot @param {Limit[]} limits @param {string} colour */
function drawLimits(plot, limits, colour) {
  const { ctx, bbox, scales } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const { value, look } of limits) {
    if (value <= 0 || value < scales.y.min || value > scales.y.max) continue;
    const height = plot.valToPos(value, "y", true);
    ctx.setLineDash(DASHES[look].map((part) => part * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(bbox.left, height);
    ctx.lineTo(bbox.left + bbox.width, height);
    ctx.stroke();
  }
  ctx.restore();
}

/**
 * @param {any} Plot uPlot
 * @param {HTMLElement} place
 * @param {{at: number[], lines: Line[]}} curves
 * @param {() => View} view
 * @returns {{update: (curves: {at: number[], lines: Line[]}) => void, fit: () => void, end: () => void}}
 */
export function drawPlot(Plot, place, curves, view) {
  const colours = readColours(place);
  const dataOf = (/** @type {{at: number[], lines: Line[]}} */ { at, lines }) => [
    at,
    ...lines.map((line) => line.values),
  ];
  const shared = { stroke: colours.text, font: colours.font, ticks: { show: false } };
  const grid = { stroke: colours.grid, width: 1 };
  const plot = new Plot(
    {
      width: Math.max(120, place.clientWidth),
      height: HEIGHT,
      padding: [10, 18, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: curves.lines.length <= 9 ? { size: 7 } : { show: false } },
      scales: {
        x: {
          range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [
            Math.min(low, high - LEAST_S),
            high,
          ],
        },
        y: {
          range: (/** @type {any} */ _, /** @type {number | null} */ low, /** @type {number | null} */ high) => {
            const { top } = view();
            if (top !== null) return [0, top];
            return low === null || high === null ? [0, 1] : Plot.rangeNum(low, high, 0.1, true);
          },
        },
      },
      series: [
        {},
        ...curves.lines.map(({ mean }) => {
          const stroke = mean ? colours.mean : colours.each;
          return { stroke, width: mean ? 2.25 : 1, points: { size: mean ? 5 : 4, fill: stroke, width: 0 } };
        }),
      ],
      axes: [
        {
          ...shared,
          grid: { show: false },
          size: 28,
          space: 84,
          values: (/** @type {any} */ _, /** @type {number[]} */ times) =>
            times.map((time) => moment(time * 1000, times.length > 1 && times[1] - times[0] < 60)),
        },
        {
          ...shared,
          grid,
          gap: 6,
          space: 34,
          size: axisWidth,
          ...(view().binary && { incrs: POWERS }),
          values: (/** @type {any} */ _, /** @type {number[]} */ values) => values.map((value) => view().show(value)),
        },
      ],
      hooks: {
        draw: [(/** @type {any} */ drawn) => drawLimits(drawn, view().limits, colours.limit)],
        setCursor: [
          (/** @type {any} */ { cursor }) => view().hovered(cursor.left < 0 ? null : cursor.idx),
        ],
      },
    },
    dataOf(curves),
    place,
  );
  return {
    update: (next) => plot.setData(dataOf(next)),
    fit: () => {
      const width = Math.max(120, place.clientWidth);
      if (place.clientWidth && width !== plot.width) plot.setSize({ width, height: HEIGHT });
    },
    end: () => plot.destroy(),
  };
}
