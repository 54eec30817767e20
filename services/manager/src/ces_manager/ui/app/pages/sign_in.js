/** The sign-in form: an access token is exchanged for a session, and not kept. */
import { useState } from "../../vendor/preact-hooks.js";
import { farewell, signIn } from "../client.js";
import { refusal } from "../main.js";
import { Head, html, language, plain, ProblemBox, setLanguage, t, tx } from "../show.js";

const LASTS = "The session ends when you sign out or close this tab, and after twelve hours at the latest.";

export default function SignIn() {
  const [busy, setBusy] = useState(false);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const token = String(new FormData(form).get("token")).trim();
    if (!token || busy) return;
    setBusy(true);
    refusal.value = null;
    try {
      await signIn(token);
    } catch (problem) {
      refusal.value = problem;
      setBusy(false);
    }
  };
  const command = html`<code>ces dashboard</code>`;
  const other = language.value === "zh" ? "en" : "zh";
  return html`<div class="sign-in">
    <p class="brand" aria-hidden="true">CES</p>
    <${Head} title=${t("Sign in")} />
    ${farewell.value && html`<p role="status">${plain(farewell.value)}</p>`}
    <p>${tx("Run {command} on your own machine: it opens this page and signs you in.", { command })}</p>
    <form onSubmit=${submit}>
      <label for="token">${t("Or paste an access token")}</label>
      <input id="token" name="token" type="password" required autocomplete="off" spellcheck="false"
        aria-describedby="token-note" />
      <p id="token-note" class="quiet">${t("The token itself is not kept.")} ${t(LASTS)}</p>
      <button type="submit" class="main" aria-disabled=${busy}>${busy ? t("Signing in…") : t("Sign in")}</button>
    </form>
    <${ProblemBox} problem=${refusal.value} />
    <p class="quiet">
      <button type="button" class="plain" lang=${other === "zh" ? "zh-Hans" : "en"}
        onClick=${() => setLanguage(other, true)}>${other === "zh" ? "中文" : "English"}</button>
    </p>
  </div>`;
}
