/** What the menu at the top holds: who is signed in, language, colours, keys, signing out. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { session, signOut } from "../client.js";
import { changeLanguage, keysOn, setTheme, showKeys } from "../main.js";
import { html, language, plain, t } from "../show.js";

const THEMES = { "": "As the system", light: "Light", dark: "Dark" };

/** @param {Event} event @returns {string} */
const valueOf = (event) => /** @type {HTMLSelectElement} */ (event.target).value;

/** Close the menu around it by Escape, or by a click elsewhere. @param {{current: HTMLElement | null}} inside */
function useClosing(inside) {
  useEffect(() => {
    const menu = /** @type {HTMLDetailsElement} */ (/** @type {HTMLElement} */ (inside.current).closest("details"));
    const escape = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary")?.focus();
    };
    const elsewhere = (/** @type {Event} */ event) => {
      if (!menu.contains(/** @type {Node} */ (event.target))) menu.open = false;
    };
    document.addEventListener("keydown", escape);
    document.addEventListener("pointerdown", elsewhere);
    return () => {
      document.removeEventListener("keydown", escape);
      document.removeEventListener("pointerdown", elsewhere);
    };
  }, []);
}

export function MenuContent() {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [theme, choose] = useState(document.documentElement.dataset.theme ?? "");
  useClosing(box);
  const { identity } = session.value ?? {};
  if (!identity) return null;
  const paint = (/** @type {Event} */ event) => {
    choose(valueOf(event));
    setTheme(valueOf(event), true);
  };
  const switchKeys = () => {
    keysOn.value = !keysOn.value;
    localStorage.setItem("ces.keys", keysOn.value ? "on" : "off");
  };
  return html`<div ref=${box}>
    <p>${t("Signed in as {role}", { role: t(identity.role) })}</p>
    ${identity.tenants && html`<p>${t("Tenants: {names}", { names: plain(identity.tenants.join(", ")) })}</p>`}
    <label>${t("Language")}<select
      value=${language.value} onChange=${(/** @type {Event} */ event) => changeLanguage(valueOf(event), true)}>
      <option value="en" lang="en">English</option><option value="zh" lang="zh-Hans">中文</option>
    </select></label>
    <label>${t("Colours")}<select value=${theme} onChange=${paint}>
      ${Object.entries(THEMES).map(([key, name]) => html`<option value=${key}>${t(name)}</option>`)}
    </select></label>
    <label class="check"><input type="checkbox" checked=${keysOn.value} onChange=${switchKeys} />
      ${t("Keys for pages and filters")}</label>
    <button type="button" onClick=${showKeys}>${t("Show the keys")}</button>
    <button type="button" onClick=${signOut}>${t("Sign out")}</button>
  </div>`;
}
