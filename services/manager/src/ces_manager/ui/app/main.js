/**
 * The frame around every page: addresses, navigation, the mark that says how fresh everything is, keys, and the start.
 */
import { render } from "../vendor/preact.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { computed, effect, signal } from "../vendor/signals.js";
import { exchange, insist, may, session } from "./client.js";
import { beginLive, freshness, links, news, nodes, pictureAt, reconnect, region, trouble } from "./live.js";
import { DASH, href, html, moment, Name, preferredLanguage, ProblemBox, setLanguage, State, t, tn } from "./show.js";

// Addresses -------------------------------------------------------------------------------------------------------

/** @typedef {{path: string[], query: URLSearchParams}} Address after `#/`: the page, what it shows, and filters */

/** @returns {Address} */
function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const part = (/** @type {string} */ text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  return { path: path.split("/").map(part), query: new URLSearchParams(query) };
}

/** Where we are. */
export const address = signal(read());

/**
 * This page's address with other parameters.
 * @param {Record<string, string | null>} changes null leaves a parameter out
 * @returns {string}
 */
export function withQuery(changes) {
  const query = new URLSearchParams(address.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return href(...address.value.path) + (text && `?${text}`);
}

/** Change parameters without a step in the history, as typing does. @param {Record<string, string | null>} changes */
export function setQuery(changes) {
  history.replaceState(null, "", withQuery(changes));
  address.value = read();
}

// Pages -----------------------------------------------------------------------------------------------------------

/** In the navigation's order: first part of the address, name, the key after `g`, and the role that has it. */
const PLACES = [
  ["", "Overview", "o"],
  ["map", "Map", "m"],
  ["nodes", "Nodes", "n"],
  ["links", "Links", "l"],
  ["queue", "Queue", "q"],
  ["jobs", "Jobs", "j"],
  ["regions", "Regions", "i"],
  ["submit", "Submit", "s", "submitter"],
  ["events", "Events", "e"],
  ["replay", "Replay", "r"],
  ["policy", "Policy", "p"],
  ["audit", "Audit", "a"],
];
/** @returns {string[][]} those that the one who is signed in has, where the cluster has them */
export const places = () =>
  PLACES.filter(([place, , , role = "viewer"]) => may(role) && (place !== "regions" || region.value));
/** First part of the address -> the module of the page, and of one thing on it. @type {Record<string, string[]>} */
const MODULES = {
  "": ["overview"],
  map: ["map"],
  nodes: ["nodes", "node"],
  links: ["links", "link"],
  regions: ["regions", "region"],
  queue: ["queue"],
  jobs: ["jobs", "job"],
  submit: ["submit"],
  events: ["events"],
  replay: ["replay"],
  policy: ["policy"],
  audit: ["audit", "audit"],
};

/** @typedef {(props: Address) => any} Page */
/** @type {import("../vendor/signals.js").Signal<{Page: Page | null, problem?: any, name: string}>} */
const opened = signal({ Page: null, name: "" });
const signingIn = signal(false);
/** Why a one-time code was refused. */
export const refusal = signal(/** @type {any} */ (null));

const moduleName = computed(() => {
  if (!session.value) return "sign_in";
  const { path } = address.value;
  const known = Object.hasOwn(MODULES, path[0]) ? MODULES[path[0]] : [];
  return known[path.length > 1 && path[1] ? 1 : 0] ?? "missing";
});

/** @param {string} name */
async function open(name) {
  try {
    const { default: Page } = await insist((again) => import(`./pages/${name}.js${again}`));
    if (name === moduleName.value) opened.value = { Page, name };
  } catch (problem) {
    if (name === moduleName.value) opened.value = { Page: null, problem, name };
  }
}

/** Loads again what could not be loaded. */
const missing = signal(/** @type {(() => void) | null} */ (null));

/**
 * Load a part of the frame; where it cannot be had, the page says so and offers to try again.
 * @template T @param {(again: string) => Promise<T>} load @param {(part: T) => void} [take]
 */
async function loadPart(load, take = () => {}) {
  missing.value = null;
  try {
    take(await insist(load));
  } catch {
    missing.value = () => loadPart(load, take);
  }
}

function Body() {
  const { Page, problem, name } = opened.value;
  const here = address.value;
  const place = here.path.join("/");
  const first = useRef(true);
  useEffect(() => {
    if (!name) return;
    if (!first.current) {
      scrollTo(0, 0);
      /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [name, place]);
  if (problem)
    return html`<${ProblemBox} problem=${{ title: t("This page cannot be loaded.") }}
      again=${() => location.reload()} />`;
  return Page && name === moduleName.value
    ? html`<${Page} key=${place} ...${here} />`
    : html`<p class="quiet">${t("Loading…")}</p>`;
}

// The frame -------------------------------------------------------------------------------------------------------

const ill = {
  nodes: computed(() => [...nodes.value.values()].filter((node) => node.state !== "ready" || node.warning).length),
  links: computed(() => [...links.value.values()].filter((link) => link.state !== "up").length),
};

function Navigation() {
  const here = address.value.path[0];
  return html`<nav aria-label=${t("Pages")}>
    ${places().map(([place, name]) => {
      const troubled = place === "nodes" || place === "links" ? ill[place].value : 0;
      return html`<a href=${href(place)} aria-current=${place === here ? "page" : undefined}
        >${t(name)}${
          troubled > 0 &&
          html` <span class="badge"
          title=${tn(troubled, "1 is not well", "{n} are not well")}>${troubled}<span class="unseen"> ${t("not well")}
          </span></span>`
        }</a
      >`;
    })}
  </nav>`;
}

function LiveMark() {
  const { state, seconds } = freshness.value;
  const word = state === "stale" ? t("stale {span}", { span: `${seconds} s` }) : t(state);
  const title = pictureAt.value ? t("Values as of {time}", { time: moment(pictureAt.value, true) }) : "";
  return html`<span class="live" title=${title}><${State} state=${state} word=${word} /></span>`;
}

function Banners() {
  const { state, seconds } = freshness.value;
  const [stale, problem, again] = [state === "stale", trouble.value, missing.value];
  const time = pictureAt.value ? moment(pictureAt.value, true) : DASH;
  const banner = (/** @type {any} */ text, /** @type {string} */ name, /** @type {() => void} */ act) =>
    html`<div class="banner"><span>${text}</span> <button type="button" onClick=${act}>${name}</button></div>`;
  const silent = stale && t("No word from the manager for {n} s: values are as of {time}.", { n: seconds, time });
  return [
    (stale || problem) && banner([silent, problem && ` ${problem.title}. ${problem.detail}`], t("Try now"), reconnect),
    again && banner(t("A part of this page could not be loaded."), t("Try again"), again),
  ];
}

/** @param {string} theme empty: as the system @param {boolean} [keep] whether to remember it in this browser */
export function setTheme(theme, keep = false) {
  document.documentElement.dataset.theme = theme;
  if (keep) localStorage.setItem("ces.theme", theme);
}

/** Whether single letters are keys: whoever speaks to a computer must be able to switch them off. */
export const keysOn = signal(localStorage.getItem("ces.keys") !== "off");

function Menu() {
  const [Content, setContent] = useState(/** @type {any} */ (null));
  const take = (/** @type {any} */ { MenuContent: Found }) => setContent(() => Found);
  const load = () => loadPart((again) => import(`./parts/menu.js${again}`), take);
  const { identity } = /** @type {import("./client.js").Session} */ (session.value);
  return html`<details class="menu" onToggle=${() => Content ?? load()}>
    <summary><${Name}>${identity.name}<//></summary>
    ${Content && html`<${Content} />`}
  </details>`;
}

function App() {
  if (signingIn.value) return html`<main id="main" class="alone"><p role="status">${t("Signing in…")}</p></main>`;
  if (!session.value) return html`<main id="main" class="alone"><${Body} /></main>`;
  const skip = (/** @type {Event} */ event) => {
    event.preventDefault(); // the fragment is the page's address
    document.getElementById("main")?.focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>${t("Skip to the content")}</a>
    <header>
      <a class="brand" href="#/" aria-label=${t("CES, overview")}>CES</a>
      <${Navigation} />
      <div class="right"><${LiveMark} /><${Menu} /></div>
    </header>
    <${Banners} />
    <main id="main" tabindex="-1" class=${freshness.value.state === "stale" ? "stale" : ""}><${Body} /></main>
    <p class="unseen" role="status" key="news">${news.value.text}</p>
  `;
}

// Keys ------------------------------------------------------------------------------------------------------------

/** Open the list of keys. */
export const showKeys = () => loadPart((again) => import(`./parts/keys.js${again}`), (keys) => void keys.showKeys());

/** @param {string} chosen @param {boolean} [keep] whether to remember it in this browser */
export const changeLanguage = (chosen, keep) => loadPart((again) => setLanguage(chosen, keep, again));

let going = 0; // when `g` was pressed
function onKey(/** @type {KeyboardEvent} */ event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (
    !keysOn.value ||
    !session.value ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    target.closest("input, select, textarea, dialog")
  )
    return;
  const place = event.timeStamp - going < 1500 && places().find(([, , key]) => key === event.key);
  going = event.key === "g" ? event.timeStamp : -1e9;
  const filter = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-filter]"));
  if (place) location.hash = href(place[0]);
  else if (event.key === "?") showKeys();
  else if (event.key === "/" && filter) {
    event.preventDefault();
    filter.focus();
    filter.select();
  }
}

// The start -------------------------------------------------------------------------------------------------------

async function start() {
  const given = /^#code=(.+)$/.exec(location.hash)?.[1];
  const code = session.value ? undefined : given; // nobody is made somebody else by a link
  if (given) {
    history.replaceState(null, "", `${location.pathname}#/`); // a code in an address could be copied with it
    address.value = read();
  }
  signingIn.value = Boolean(code);
  setTheme(localStorage.getItem("ces.theme") ?? "");
  await changeLanguage(preferredLanguage()); // without its words, English
  addEventListener("hashchange", () => (address.value = read()));
  document.addEventListener("keydown", onKey);
  render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
  if (code) {
    // The page is asked for meanwhile: it will be needed whatever the answer.
    import("./pages/overview.js").catch(() => {});
    await exchange(code).catch((problem) => (refusal.value = problem));
    signingIn.value = false;
  }
  effect(() => void open(moduleName.value));
  let lost = false;
  effect(() => {
    const { state } = freshness.value;
    // A browser may remember that a module could not be had: only loading the whole page asks for it again.
    if (state === "live" && lost && opened.peek().problem) location.reload();
    lost = state === "resuming" || state === "stale";
  });
  beginLive();
}

start();
