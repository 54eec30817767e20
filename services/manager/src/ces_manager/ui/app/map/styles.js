/** The map's own rules, loaded with its page. */

/** Settles once they hold. @type {Promise<void>} */
export const styled = new Promise((done, fail) => {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("map.css", import.meta.url).href;
  link.onload = () => done();
  link.onerror = () => fail(new Error("the map's rules cannot be loaded"));
  document.head.append(link);
});
