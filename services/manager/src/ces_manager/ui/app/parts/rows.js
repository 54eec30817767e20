/**
 * A table of any length: only the rows that are seen are drawn, whatever their heights. Rows keep their order while
 * values change, until somebody sorts again.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { address, setQuery } from "../main.js";
import { clock, html, moment, t } from "../show.js";

const WHOLE = 60; // rows that are all drawn: leaving some out would save nothing
const STEP = 10; // rows by which the drawn range moves
const GUESS_PX = 34;

/**
 * @template T
 * @typedef {object} Column
 * @property {string} id names it in the address
 * @property {string} title
 * @property {(item: T) => any} cell
 * @property {string} track its width, as a grid's track
 * @property {(item: T) => string | number} [by] what it is sorted by
 * @property {boolean} [moves] whether that changes by itself
 * @property {boolean} [full] whether it takes a line of its own where rows are blocks
 * @property {boolean} [end] whether it is aligned at its end, as numbers are
 * @property {boolean | "wider"} [wide] shown on wide windows and where rows are blocks; `wider`: on very wide ones only
 */

/** @param {string | number} one @param {string | number} other */
const compare = (one, other) =>
  typeof one === "number" && typeof other === "number"
    ? one - other
    : String(one).localeCompare(String(other), "en", { numeric: true });

/**
 * The items in the address's order. Their order is made again only where the order asked for, or which items there
 * are, has changed.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => string} keyOf
 * @param {Column<T>[]} columns
 * @param {string} usual
 * @param {string} param
 */
function useOrder(items, keyOf, columns, usual, param) {
  const order = address.value.query.get(param) ?? usual;
  const descending = order.startsWith("-");
  const column = columns.find(({ id, by }) => by && id === order.replace(/^-/, ""));
  const kept = useRef({ order: "", places: new Map(), at: 0 });
  const [, redraw] = useState(0);
  const known = kept.current;
  if (!column) return { items, order: "", at: 0, again: () => {} };
  const same =
    known.order === order && known.places.size === items.length && items.every((item) => known.places.has(keyOf(item)));
  if (!same) {
    const by = /** @type {(item: T) => string | number} */ (column.by);
    const sign = descending ? -1 : 1;
    const sorted = items.map((item) => /** @type {const} */ ([by(item), keyOf(item)]));
    sorted.sort((one, other) => sign * compare(one[0], other[0]) || compare(one[1], other[1]));
    kept.current = { order, places: new Map(sorted.map(([, key], place) => [key, place])), at: clock.value };
  }
  const { places, at } = kept.current;
  const found = Array(items.length);
  for (const item of items) found[places.get(keyOf(item))] = item;
  const again = () => {
    kept.current = { order: "", places: new Map(), at: 0 };
    redraw((n) => n + 1);
  };
  return { items: found, order, at: column.moves ? at : 0, again };
}

/**
 * Which rows are drawn, and how much is left out above and below. Heights are measured once a row is drawn.
 * @param {string[]} keys
 * @param {{current: HTMLElement | null}} body
 */
function useSeen(keys, body) {
  const heights = useRef(/** @type {Map<string, number>} */ (new Map()));
  const [range, setRange] = useState([0, WHOLE]);
  const [, redraw] = useState(0);
  const offsets = new Float64Array(keys.length + 1);
  keys.forEach((key, index) => (offsets[index + 1] = offsets[index] + (heights.current.get(key) ?? GUESS_PX)));
  const count = keys.length;
  const look = useRef(() => {});
  look.current = () => {
    if (!body.current || count <= WHOLE) return;
    const above = -body.current.getBoundingClientRect().top;
    const at = (/** @type {number} */ px) => {
      let [low, high] = [0, count];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (offsets[middle + 1] <= px) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    const start = Math.max(0, Math.floor(at(above) / STEP - 1) * STEP);
    const end = Math.min(count, Math.ceil(at(above + innerHeight) / STEP + 1) * STEP);
    setRange((before) => (before[0] === start && before[1] === end ? before : [start, end]));
  };
  useEffect(() => {
    let asked = 0;
    const ask = () => {
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(() => look.current());
    };
    const narrowed = () => {
      heights.current.clear();
      ask();
    };
    addEventListener("scroll", ask, { passive: true });
    addEventListener("resize", narrowed);
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener("scroll", ask);
      removeEventListener("resize", narrowed);
    };
  }, []);
  useLayoutEffect(() => {
    if (count <= WHOLE || !body.current) return;
    let changed = false;
    for (const row of /** @type {HTMLElement[]} */ ([...body.current.children])) {
      const key = row.dataset.key ?? "";
      if (heights.current.get(key) === row.offsetHeight) continue;
      heights.current.set(key, row.offsetHeight);
      changed = true;
    }
    if (changed) redraw((n) => n + 1);
    look.current();
  });
  const [start, end] = count <= WHOLE ? [0, count] : [Math.min(range[0], count), Math.min(range[1], count)];
  return { start, end, above: offsets[start], below: offsets[count] - offsets[end] };
}

/** Up and down go to the same place of the next row. @param {KeyboardEvent} event */
function move(event) {
  const down = event.key === "ArrowDown";
  const row = /** @type {HTMLElement} */ (event.target).closest("tr");
  if ((!down && event.key !== "ArrowUp") || !row) return;
  const next = down ? row.nextElementSibling : row.previousElementSibling;
  const link = /** @type {HTMLElement | null | undefined} */ (next?.querySelector("a, button"));
  if (!link) return;
  event.preventDefault();
  link.focus();
}

/**
 * @template T
 * @param {object} props
 * @param {string} props.caption
 * @param {(Column<T> | false)[]} props.columns those that are false are left out
 * @param {T[]} props.items
 * @param {(item: T) => string} props.keyOf
 * @param {string} [props.usual] the order where the address names none
 * @param {any} props.empty what is said where there are no items
 * @param {string} [props.param] which parameter of the address names the order
 */
export function Rows({ caption, columns: offered, items: given, keyOf, usual = "", empty, param = "sort" }) {
  const columns = /** @type {Column<T>[]} */ (offered.filter(Boolean));
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  const { items, order, at, again } = useOrder(given, keyOf, columns, usual, param);
  const { start, end, above, below } = useSeen(items.map(keyOf), body);
  const tracks = (/** @type {Column<T>[]} */ shown) => shown.map(({ track }) => track).join(" ");
  const style = {
    "--tracks": tracks(columns.filter(({ wide }) => !wide)),
    "--tracks-wide": tracks(columns.filter(({ wide }) => wide !== "wider")),
    "--tracks-wider": tracks(columns),
  };
  const look = (/** @type {Column<T>} */ { end: right, wide, full }) =>
    [right && "end", wide === true ? "wide" : wide, full && "full"].filter(Boolean).join(" ");
  if (!items.length) return html`<div class="empty">${empty}</div>`;
  return html`
    ${
      at > 0 &&
      clock.value - at > 10000 &&
      html`<p class="quiet order">
      ${t("Order as of {time}", { time: moment(at, true) })} <button type="button" class="plain" onClick=${again}>
      ${t("Sort again")}</button></p>`
    }
    <table class="rows" role="table" aria-label=${caption} aria-rowcount=${items.length + 1} style=${style}>
      <thead role="rowgroup">
        <tr role="row" aria-rowindex="1">
          ${columns.map((column) => {
            const { id, title, by, end: right } = column;
            const way = order === id ? "ascending" : order === `-${id}` ? "descending" : undefined;
            // Numbers are mostly wanted largest first.
            const next = way === (right ? "descending" : "ascending") ? (right ? id : `-${id}`) : right ? `-${id}` : id;
            return html`<th role="columnheader" scope="col" class=${look(column)} aria-sort=${way}>
              ${
                by
                  ? html`<button type="button" onClick=${() => setQuery({ [param]: next })}>${title}
                ${way && html`<i aria-hidden="true">${way === "ascending" ? "↑" : "↓"}</i>`}</button>`
                  : title
              }
            </th>`;
          })}
        </tr>
      </thead>
      <tbody role="rowgroup" ref=${body} onKeyDown=${move}
        style=${{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
        ${items.slice(start, end).map((item, index) => {
          const key = keyOf(item);
          return html`<tr key=${key} data-key=${key} role="row" aria-rowindex=${start + index + 2}>
            ${columns.map((column, place) =>
              place === 0
                ? html`<th role="rowheader" scope="row" class=${look(column)}>${column.cell(item)}</th>`
                : html`<td role="cell" class=${look(column)} data-title=${column.title}>${column.cell(item)}</td>`,
            )}
          </tr>`;
        })}
      </tbody>
    </table>
  `;
}
