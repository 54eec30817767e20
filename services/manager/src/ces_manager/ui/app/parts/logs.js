/** What a worker printed. */
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { request, route } from "../client.js";
import { address, setQuery } from "../main.js";
import { html, plain, ProblemBox, t, tx } from "../show.js";

const TAILS = ["100", "1000", "10000"]; // lines
const AGAIN_MS = 3000;

/** @param {{id: string, tasks: any[], away: boolean, over: boolean}} props `away`: it runs or ran in another region */
export function Logs({ id, tasks, away, over }) {
  const started = tasks.filter((task) => task.allocation || away);
  const asked = address.value.query.get("task") ?? "";
  const chosen =
    started.find(({ name }) => name === asked) ?? started.find(({ state }) => state === "failed") ?? started[0];
  const [tail, setTail] = useState(TAILS[0]);
  const [follows, setFollows] = useState(false);
  const [shown, setShown] = useState({ text: "", problem: /** @type {any} */ (null), of: "" });
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const section = useRef(/** @type {HTMLElement | null} */ (null));
  const name = chosen?.name ?? "";
  useEffect(() => {
    if (!name) return undefined;
    const aborter = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const look = async () => {
      try {
        const answer = await request(`${route`/v1/jobs/${id}/logs?task=${name}`}&tail=${tail}`, {
          signal: aborter.signal,
        });
        setShown({ text: await answer.text(), problem: null, of: name });
      } catch (problem) {
        if (!aborter.signal.aborted) setShown((before) => ({ ...before, problem, of: name }));
      }
      // Asked again instead of followed: a tab keeps no second stream open.
      if (follows && !over && !aborter.signal.aborted) timer = setTimeout(look, AGAIN_MS);
    };
    look();
    return () => {
      aborter.abort();
      clearTimeout(timer);
    };
  }, [id, name, tail, follows, over]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown.text]);
  useEffect(() => {
    if (asked) section.current?.scrollIntoView({ block: "start" });
  }, [asked]);
  if (!chosen) return html`<p class="quiet">${t("No worker has started yet.")}</p>`;
  const value = (/** @type {Event} */ event) => /** @type {HTMLSelectElement} */ (event.target).value;
  const text = shown.of === name ? shown.text : "";
  return html`<div class="logs" ref=${section}>
    <p class="tools">
      <label>${t("Worker")}<select value=${name}
        onChange=${(/** @type {Event} */ event) => setQuery({ task: value(event) })}>
        ${started.map((task) => html`<option value=${task.name}>${plain(task.name)}</option>`)}</select></label>
      <label>${t("Last lines")}<select value=${tail} onChange=${(/** @type {Event} */ event) => setTail(value(event))}>
        ${TAILS.map((lines) => html`<option value=${lines}>${lines}</option>`)}</select></label>
      ${
        !over &&
        html`<label class="check"><input type="checkbox" checked=${follows}
        onChange=${() => setFollows(!follows)} />${t("Follow")}</label>`
      }
    </p>
    <${ProblemBox} problem=${shown.problem} />
    <pre ref=${box} tabindex="0" aria-label=${t("Log of {task}", { task: name })}>
      ${text ? plain(text) : t("Nothing was printed yet.")}</pre>
    <p class="quiet">${tx("The whole log: {command}", { command: html`<code>ces logs ${id} ${plain(name)}</code>` })}
      </p>
  </div>`;
}
