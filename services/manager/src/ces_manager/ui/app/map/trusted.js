/** The one Trusted Types policy of the dashboard: addresses of its own scripts, and nothing else. */

const HERE = new URL("../", import.meta.url).href;

/** @param {string} address @returns {string} */
function own(address) {
  const { href } = new URL(address); // without `..` that would lead away
  if (!href.startsWith(HERE)) throw new TypeError(`not a script of the dashboard: ${href}`);
  return href;
}

const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("ces", { createScriptURL: own });

/**
 * The address of a script as browsers with Trusted Types want it, for workers.
 * @param {string} address absolute
 * @returns {unknown}
 */
export const trustedScript = (address) => policy?.createScriptURL(address) ?? own(address);
