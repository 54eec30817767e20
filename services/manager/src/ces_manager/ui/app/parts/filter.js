/** Filters of a list. They stand in the address, so that a filtered list can be sent to somebody. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { address, setQuery, withQuery } from "../main.js";
import { html, t, tn } from "../show.js";

/** @returns {string[]} the words typed, in small letters */
export const typedWords = () => (address.value.query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);

/**
 * Whether all words are in what is said of an item.
 * @template T
 * @param {string[]} words
 * @param {T} item
 * @param {(item: T) => string} textOf
 */
export function matches(words, item, textOf) {
  if (!words.length) return true;
  const text = textOf(item).toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The field to type in; `shown` of `total` says what is left of the list. */
export function Filter(/** @type {{label: string, shown: number, total: number}} */ { label, shown, total }) {
  const timer = useRef(0);
  const [typing, setTyping] = useState(/** @type {string | null} */ (null));
  const take = (/** @type {string} */ q) => {
    clearTimeout(timer.current);
    setTyping(null);
    setQuery({ q });
  };
  const type = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    clearTimeout(timer.current);
    setTyping(value); // what comes in live may draw the field again meanwhile
    timer.current = setTimeout(() => take(value), 120);
  };
  // Whoever has left the field may be leaving the page: nothing may come later and bring its address back.
  const leave = () => typing == null || take(typing);
  useEffect(() => () => clearTimeout(timer.current), []);
  return html`<div class="filter">
    <input type="search" data-filter aria-label=${label} placeholder=${label} spellcheck="false" autocomplete="off"
      value=${typing ?? address.value.query.get("q") ?? ""} onInput=${type} onBlur=${leave} />
    <span class="quiet" role="status">
      ${shown === total ? tn(total, "1 in all", "{n} in all") : t("{shown} of {total}", { shown, total })}</span>
  </div>`;
}

/**
 * Choices of one kind, as links; the one that is chosen leads back to all.
 * @param {{name: string, label: string, choices: {value: string, text: any, count?: number}[]}} props
 * `name`: in the address
 */
export function Chips({ name, label, choices }) {
  const chosen = address.value.query.get(name) ?? "";
  return html`<div class="chips" role="group" aria-label=${label}>
    ${choices.map(({ value, text, count }) => {
      const on = value === chosen;
      return html`<a href=${withQuery({ [name]: on ? null : value })} aria-current=${on ? "true" : undefined}>${text}
        ${count != null && html` <b>${count}</b>`}</a>`;
    })}
  </div>`;
}
