/**
 * How things are shown everywhere: words in the chosen language, quantities as the `ces` command writes them, and the
 * smallest elements. One module, because every page needs all of it on the first visit.
 */
import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";
import { useEffect } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";

/** Markup as a tagged template; foreign text in it becomes text nodes only. */
export const html = htm.bind(h);
export const DASH = "–";

/** @typedef {import("../vendor/preact.js").ComponentChildren} Children */
/** @typedef {Record<string, string | number>} Values */

// Words -----------------------------------------------------------------------------------------------------------

const LANGUAGE = "ces.language";
/** @type {import("../vendor/signals.js").Signal<Record<string, string>>} English sentence -> the chosen language's */
const dictionary = signal({});
/** The chosen language: `en` or `zh`. */
export const language = signal("en");

/** @returns {"en" | "zh"} what was chosen here before, else what the browser prefers */
export function preferredLanguage() {
  const chosen = localStorage.getItem(LANGUAGE);
  if (chosen === "en" || chosen === "zh") return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/**
 * Switch the language; components that show words follow by themselves.
 * @param {string} chosen `en` or `zh`
 * @param {boolean} [keep] whether to remember it in this browser
 * @param {string} [again] is added to the address of its words
 */
export async function setLanguage(chosen, keep = false, again = "") {
  dictionary.value = chosen === "zh" ? (await import(`./words/zh.js${again}`)).default : {};
  language.value = chosen;
  document.documentElement.lang = chosen === "zh" ? "zh-Hans" : "en";
  if (keep) localStorage.setItem(LANGUAGE, chosen);
}

/**
 * A sentence of ours in the chosen language. The English one is the key, so that code can be read.
 * @param {string} text with `{name}` where values go
 * @param {Values} [values]
 * @returns {string}
 */
export function t(text, values = {}) {
  const found = dictionary.value[text] ?? text;
  return found.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}

/**
 * The same with elements as values, such as links within a sentence.
 * @param {string} text
 * @param {Record<string, Children>} values
 * @returns {Children[]}
 */
export function tx(text, values) {
  const found = dictionary.value[text] ?? text;
  return found.split(/\{(\w+)\}/).map((part, index) => (index % 2 ? values[part] : part));
}

/**
 * A sentence about a number of things.
 * @param {number} n
 * @param {string} one for one
 * @param {string} many with `{n}`
 * @param {Values} [values]
 * @returns {string}
 */
export function tn(n, one, many, values = {}) {
  const single = n === 1 && language.value === "en";
  return t(single ? one : many, { ...values, n: n.toLocaleString(language.value) });
}

// Quantities and times --------------------------------------------------------------------------------------------

/** The manager's time in ms, renewed every second; ages are counted by it and not by this device's clock. */
export const clock = signal(Date.now());

/**
 * @param {number} value
 * @param {number} [digits] that count
 * @returns {string} without needless zeros
 */
export const brief = (value, digits = 4) => String(Number(value.toPrecision(digits)));

/** @param {number} size @param {[string, number][]} units @param {string} least @returns {string} */
function scaled(size, units, least) {
  const [unit, factor] = units.find(([, each]) => Math.abs(size) >= each) ?? [least, 1];
  return `${factor === 1 ? Math.round(size) : brief(size / factor)} ${unit}`;
}

/** @param {number | null | undefined} size in bytes @returns {string} such as `1.5 GiB` */
export const memory = (size) =>
  size == null
    ? DASH
    : scaled(
        size,
        [
          ["TiB", 2 ** 40],
          ["GiB", 2 ** 30],
          ["MiB", 2 ** 20],
          ["KiB", 2 ** 10],
        ],
        "B",
      );

/** @param {number | null | undefined} value in bit/s @returns {string} such as `47.6 Mbit/s` */
export const rate = (value) =>
  value == null
    ? DASH
    : scaled(
        value,
        [
          ["Gbit/s", 1e9],
          ["Mbit/s", 1e6],
          ["kbit/s", 1e3],
        ],
        "bit/s",
      );

/** @param {number} low @param {number} high both in bit/s @returns {string} such as `10–50 Mbit/s` */
export function rateRange(low, high) {
  const [small, large] = [rate(low), rate(high)];
  if (small === large) return large;
  const [number, unit] = small.split(" ");
  return large.endsWith(` ${unit}`) ? `${number}–${large}` : `${small} – ${large}`;
}

/** @param {number | null | undefined} millicores @returns {string} such as `1.5 cores` */
export const cpu = (millicores) =>
  millicores == null ? DASH : millicores === 1000 ? t("1 core") : t("{n} cores", { n: brief(millicores / 1000) });

/** @param {number} millicores @returns {string} as a job file writes it: `500m`, `2` */
export const cpuQuantity = (millicores) => (millicores % 1000 ? `${millicores}m` : String(millicores / 1000));

/** @param {number} part @param {number} whole @returns {string} such as `73 %` */
export const percent = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : DASH);

/** @param {number | null | undefined} seconds @returns {string} in milliseconds */
export const milliseconds = (seconds) => (seconds == null ? DASH : `${brief(seconds * 1000, 3)} ms`);

/** @param {number} seconds @returns {string} the two largest units: `42s`, `3m07s`, `2h05m`, `4d03h` */
export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [second, minute, hour, day] = [
    whole % 60,
    Math.floor(whole / 60) % 60,
    Math.floor(whole / 3600) % 24,
    Math.floor(whole / 86400),
  ];
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  if (day) return `${day}d${two(hour)}h`;
  if (hour) return `${hour}h${two(minute)}m`;
  return minute ? `${minute}m${two(second)}s` : `${second}s`;
}

/** @param {string | null | undefined} at @returns {string} how long ago that was */
export const since = (at) => (at ? span((clock.value - Date.parse(at)) / 1000) : DASH);

/**
 * @param {string | number} at
 * @param {boolean} [exact] with seconds
 * @returns {string} a time of day on this device's clock, with the day where that is another: `14:02`, `Tue 09:30`
 */
export function moment(at, exact = false) {
  const then = new Date(at);
  const today = new Date();
  const days = Math.round((new Date(then).setHours(0, 0, 0, 0) - new Date(today).setHours(0, 0, 0, 0)) / 86400000);
  const locale = language.value === "zh" ? "zh-CN" : "en-GB";
  /** @type {Intl.DateTimeFormatOptions} */
  const day = days === 0 ? {} : Math.abs(days) < 7 ? { weekday: "short" } : { day: "numeric", month: "short" };
  if (then.getFullYear() !== today.getFullYear() && Math.abs(days) >= 7) day.year = "numeric";
  const time = then.toLocaleTimeString("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(exact && { second: "2-digit" }),
  });
  return days === 0 ? time : `${then.toLocaleDateString(locale, day)} ${time}`;
}

// C0 but tab and newline, DEL, C1, and what reorders a line: shown as escapes, as on a terminal.
const STEERS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** @param {unknown} text somebody else's @returns {string} with what would steer the display shown instead of obeyed */
export const plain = (text) =>
  String(text ?? "").replace(STEERS, (each) => {
    const code = each.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });

// Elements --------------------------------------------------------------------------------------------------------

/** @param {...(string | undefined)} path @returns {string} the address of a page */
export const href = (...path) => `#/${path.map((part) => encodeURIComponent(part ?? "")).join("/")}`;

/** Somebody else's name or text: isolated, so that its direction reorders nothing beside it. */
export const Name = (/** @type {{children: unknown}} */ { children }) =>
  html`<bdi class="name">${plain(children)}</bdi>`;

/** A link to a page by its name. */
export const To = (/** @type {{path: string[], class?: string, children: unknown}} */ props) =>
  html`<a href=${href(...props.path)} class=${props.class}><${Name}>${props.children}<//></a>`;

const SHAPES = {
  disc: "M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 1 0 0-9z",
  ring: "M6 1a5 5 0 1 0 0 10A5 5 0 1 0 6 1zm0 1.9a3.1 3.1 0 1 1 0 6.2 3.1 3.1 0 1 1 0-6.2z",
  half: "M6 1a5 5 0 1 0 0 10A5 5 0 1 0 6 1zm0 1.7v6.6a3.3 3.3 0 1 1 0-6.6z",
  bars: "M2.5 1.5h2.6v9H2.5zM6.9 1.5h2.6v9H6.9z",
  check: "M1 6.6 2.5 5l2.2 2.3L9.6 2 11 3.5 4.7 10.3z",
  cross: "M2.6 1 6 4.4 9.4 1 11 2.6 7.6 6 11 9.4 9.4 11 6 7.6 2.6 11 1 9.4 4.4 6 1 2.6z",
  triangle: "M6 .8 11.6 11H.4z",
  square: "M1.5 1.5h9v9h-9zm1.8 1.8v5.4h5.4V3.3z",
  barred: "M6 1a5 5 0 1 0 0 10A5 5 0 1 0 6 1zM3 5.1h6v1.8H3z",
  diamond: "M6 .6 11.4 6 6 11.4.6 6z",
  arrows: "M1 3.2h6.2V1L11 4.1 7.2 7.2V5H1zM11 8.8H4.8V11L1 7.9l3.8-3.1v2.2H11z",
};
/** @type {Record<string, string>} shape and tone -> the states that look like that */
const LOOKS = {
  "ring wait": "queued past waiting silent",
  "half busy": "planned preparing starting pending connecting held",
  "half wait": "resuming applied",
  "disc good": "running elsewhere ready up live here committed",
  "arrows wait": "resizing rescheduling stopping",
  "bars still": "paused suspended",
  "check good": "succeeded",
  "cross bad": "failed lost refused",
  "triangle bad": "down unreachable contested stale",
  "triangle wait": "slow old",
  "square over": "cancelled stopped released",
  "barred wait": "cordoned",
  "diamond wait": "reclaimed",
};
/** State -> its shape and its tone. */
export const STATES = /** @type {Record<string, [keyof typeof SHAPES, string]>} */ (
  Object.fromEntries(
    Object.entries(LOOKS).flatMap(([look, states]) => states.split(" ").map((state) => [state, look.split(" ")])),
  )
);

/** A state by shape, colour and word. `word`: another one than the state's name. */
export function State(/** @type {{state: string | null | undefined, word?: string}} */ { state, word }) {
  if (!state) return DASH;
  const [shape, tone] = STATES[state] ?? ["ring", "over"];
  return html`<span class="state ${tone}"
    ><svg viewBox="0 0 12 12" aria-hidden="true"><path fill-rule="evenodd" d=${SHAPES[shape]} /></svg>
      ${word ?? t(state)}</span
  >`;
}

/**
 * What is committed above what is used, of a whole. The numbers stand beside it as text, so readers skip it. A device
 * may use more than the whole, of which it offers a part only: that is no alarm.
 */
export function Bars(
  /** @type {{whole: number, committed: number, used?: number | null}} */ { whole, committed, used },
) {
  const width = (/** @type {number} */ part) => `${whole > 0 ? Math.min(100, (100 * part) / whole) : 0}%`;
  const share = whole > 0 ? (used ?? 0) / whole : 0;
  const tone = share > 0.95 && share < 1.05 ? "full" : "";
  return html`<span class="bars" aria-hidden="true"
    ><i class="committed" style=${{ width: width(committed) }}></i
    >${used != null && html`<i class="used ${tone}" style=${{ width: width(used) }}></i>`}</span
  >`;
}

/** The heading of a page; it also names the window, and takes the focus when the page is opened. */
export function Head(/** @type {{title: string, children?: Children}} */ { title, children }) {
  useEffect(() => {
    document.title = `${title} · CES`;
  }, [title]);
  return html`<div class="head"><h1 tabindex="-1">${plain(title)}</h1>${children}</div>`;
}

/** What was refused or failed, field by field. */
export function ProblemBox(/** @type {{problem: any, again?: () => void}} */ { problem, again }) {
  if (!problem) return null;
  const { title = t("Something went wrong"), detail = problem.message ?? "", errors = [] } = problem;
  return html`<div class="problem" role="alert">
    <strong><${State} state="failed" word=${title} /></strong>
    ${detail && html`<p>${plain(detail)}</p>`}
    ${
      errors.length > 0 &&
      html`<ul>${errors.map(
        (/** @type {any} */ each) => html`<li><code>${plain(each.field)}
      </code>: ${plain(each.problem)}</li>`,
      )}</ul>`
    }
    ${again && html`<button type="button" onClick=${again}>${t("Try again")}</button>`}
  </div>`;
}
