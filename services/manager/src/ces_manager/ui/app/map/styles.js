/** The map's own rules, loaded with its page. */
import { loadRules } from "../client.js";

/** Settles once they hold. @type {Promise<void>} */
export const styled = loadRules(new URL("map.css", import.meta.url).href);
