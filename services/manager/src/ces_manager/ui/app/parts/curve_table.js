/** The numbers of a picture as a table, made when it is opened. */
import { useState } from "../../vendor/preact-hooks.js";
import { DASH, html, moment, Name, t } from "../show.js";

const MOST_ROWS = 60;
const MOST_COLUMNS = 9;

/** @param {number} length @returns {number[]} places spread evenly over all of them, the newest first */
function places(length) {
  const step = Math.max(1, Math.ceil(length / MOST_ROWS));
  return Array.from({ length: Math.ceil(length / step) }, (_, n) => length - 1 - n * step);
}

/**
 * Columns of the table: every line, or of many workers their lowest and highest.
 * @param {import("./curve_data.js").Line[]} lines
 * @returns {[string, (place: number) => number | null][]}
 */
function columnsOf(lines) {
  const each = lines.filter((line) => !line.mean);
  const own = (/** @type {import("./curve_data.js").Line} */ line) =>
    /** @type {[string, (place: number) => number | null]} */ ([line.name, (place) => line.values[place]]);
  const means = lines.filter((line) => line.mean).map(own);
  if (lines.length <= MOST_COLUMNS) return [...means, ...each.map(own)];
  const extreme = (/** @type {(...values: number[]) => number} */ choose) => (/** @type {number} */ place) => {
    const known = each.map((line) => line.values[place]).filter((value) => value !== null);
    return known.length ? choose(...known) : null;
  };
  return [...means, [t("lowest"), extreme(Math.min)], [t("highest"), extreme(Math.max)]];
}

/** @param {{label: string, at: number[], lines: import("./curve_data.js").Line[], show: (value: number) => string}} props */
export function CurveTable({ label, at, lines, show }) {
  const [open, setOpen] = useState(false);
  const told = (/** @type {number | null} */ value) => (value === null ? DASH : show(value));
  const columns = open ? columnsOf(lines) : [];
  const caption = t("{label}, as a table", { label });
  return html`<details class="curve-table" onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>${t("As a table")}<span class="unseen">: ${label}</span></summary>
    ${
      open &&
      html`<div tabindex="0" role="region" aria-label=${caption}><table class="plain-table">
      <thead><tr><th scope="col">${t("Time")}</th>${columns.map(
        ([name]) => html`<th scope="col" class="end"><${Name}>${name}<//></th>`,
      )}</tr></thead>
      <tbody>${places(at.length).map(
        (place) => html`<tr key=${at[place]}>
        <th scope="row">${moment(at[place] * 1000, true)}</th>${columns.map(
          ([, value]) => html`<td class="end">${told(value(place))}</td>`,
        )}
      </tr>`,
      )}</tbody>
    </table></div>`
    }
  </details>`;
}
