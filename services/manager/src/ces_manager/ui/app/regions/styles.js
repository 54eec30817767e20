/** The rules of regions, loaded with what shows them. */
import { loadRules } from "../client.js";

/** Settles once they hold. @type {Promise<void>} */
export const styled = loadRules(new URL("regions.css", import.meta.url).href);
