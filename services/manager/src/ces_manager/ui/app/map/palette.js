/** The colours of the page as a canvas understands them: read from its custom properties, whatever sets those. */

/**
 * @typedef {object} Palette
 * @property {string} ground
 * @property {string} text
 * @property {string} muted
 * @property {string} line faint lines
 * @property {string} edge clear lines
 * @property {string} track what a link or node could take
 * @property {string} committed what of it is promised
 * @property {string} used what of it is used
 * @property {string} accent what is selected
 * @property {string} flow of a job
 * @property {string} medium
 * @property {string} mediumFill
 * @property {string} area
 * @property {Record<string, string>} state state -> colour
 * @property {string[]} loads from nothing promised to everything
 * @property {string} bad
 * @property {string} font family
 */

/** @type {Record<string, string>} */
const COLOURS = {
  ground: "var(--map-ground)", text: "var(--text)", muted: "var(--muted)", line: "var(--line)", edge: "var(--edge)", track: "var(--map-track)",
  committed: "var(--map-committed)", used: "var(--map-used)", accent: "var(--accent)", flow: "var(--map-flow)", medium: "var(--map-medium)",
  mediumFill: "color-mix(in srgb, var(--map-medium) 12%, var(--map-ground))", area: "var(--map-area)", bad: "var(--bad)",
};
/** @type {Record<string, string>} */
const STATES = { ready: "--good", unreachable: "--bad", contested: "--bad", cordoned: "--wait", reclaimed: "--wait", absent: "--muted" };
const STEPS = 5;

/** @param {HTMLElement} within an element whose custom properties count @returns {Palette} */
export function readPalette(within) {
  const probe = document.createElement("i");
  probe.className = "map-probe";
  within.append(probe);
  const style = getComputedStyle(probe);
  const read = (/** @type {string} */ value) => {
    probe.style.color = value;
    return style.color;
  };
  const palette = {
    ...Object.fromEntries(Object.entries(COLOURS).map(([name, value]) => [name, read(value)])),
    state: Object.fromEntries(Object.entries(STATES).map(([name, property]) => [name, read(`var(${property})`)])),
    loads: Array.from({ length: STEPS }, (_, step) => read(`color-mix(in srgb, var(--map-committed) ${Math.round((100 * step) / (STEPS - 1))}%, var(--map-idle))`)),
    font: style.fontFamily,
  };
  probe.remove();
  return /** @type {any} */ (palette);
}

/** @param {Palette} palette @param {number} share 0 to 1 @returns {number} its index in `loads`: 0 only where nothing is promised */
export const loadStep = ({ loads }, share) => (share > 0 ? Math.min(loads.length - 1, Math.ceil(share * (loads.length - 1))) : 0);

/** Tell when colours may have changed: theme, contrast, forced colours, or values grown stale. @param {HTMLElement} element @param {() => void} changed @returns {() => void} ends it */
export function watchColours(element, changed) {
  const queries = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"].map((query) => matchMedia(query));
  for (const query of queries) query.addEventListener("change", changed);
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const main = element.closest("main");
  if (main) observer.observe(main, { attributeFilter: ["class"] });
  return () => {
    for (const query of queries) query.removeEventListener("change", changed);
    observer.disconnect();
  };
}
