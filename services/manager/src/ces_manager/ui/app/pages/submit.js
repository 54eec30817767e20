/** Writing a job file, seeing what would happen to it now, and submitting it; or a graph, and what it is divided into. */
import { useRef, useState } from "../../vendor/preact-hooks.js";
import { call, may, session } from "../client.js";
import { tell } from "../live.js";
import { confirmed } from "../parts/dialog.js";
import { Divided, isGraph } from "../parts/divided.js";
import { invalid, useDryRun } from "../parts/dry_run.js";
import { Forecast, summaryText } from "../parts/forecast.js";
import { EXAMPLES, replaceable } from "../parts/job_examples.js";
import { documentOf, keepDraft, keptDraft, namesIn, newKey } from "../parts/job_text.js";
import { Refusal } from "../parts/refusal.js";
import { Head, href, html, plain, State, t, tx } from "../show.js";

const LARGEST_FILE = 2 ** 20; // bytes; no job file is that large

/** The draft as it is written, kept at every change. Another text is another submission. */
function useDraft() {
  const owner = session.value?.identity.name ?? "";
  const [draft, setDraft] = useState(() => keptDraft(owner));
  const change = (/** @type {Partial<import("../parts/job_text.js").Draft>} */ changes) => {
    const next = { ...draft, ...changes, owner };
    keepDraft(next);
    setDraft(next);
  };
  return { draft, write: (/** @type {string} */ text) => change({ text, key: "" }), change };
}

/** Put the cursor on a line, and show it. @param {HTMLTextAreaElement} area @param {number} line from 1 */
function selectLine(area, line) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  const height = Number.parseFloat(getComputedStyle(area).lineHeight);
  area.scrollTop = Math.max(0, (line - 4) * height);
}

/** Examples and files to begin with. @param {{text: string, write: (text: string) => void}} props */
function Beginnings({ text, write }) {
  const [trouble, setTrouble] = useState("");
  const replace = async (/** @type {string} */ next) => {
    const content = html`<p>${t("What stands there now is lost.")}</p>`;
    if (replaceable(text) || (await confirmed(t("Replace the job file?"), content, t("Replace")))) write(next);
  };
  const read = async (/** @type {File | undefined} */ file) => {
    if (!file) return;
    const large = file.size > LARGEST_FILE;
    setTrouble(large ? t("{file} is too large for a job file.", { file: plain(file.name) }) : "");
    if (!large) await replace(await file.text()).catch((problem) => setTrouble(plain(problem.message)));
  };
  const chosen = (/** @type {Event} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    read(input.files?.[0]);
    input.value = ""; // so that the same file can be chosen again
  };
  return html`<div class="beginnings">
    <div role="group" aria-label=${t("Examples")}>
      ${EXAMPLES.map(
        ([name, example]) => html`<button type="button" onClick=${() => replace(example)}>${t(name)}</button> `,
      )}
    </div>
    <label>${t("or a file")} <input type="file" accept=".yaml,.yml,.json,text/plain" onChange=${chosen} /></label>
    ${trouble && html`<p role="alert" class="bad">${trouble}</p>`}
  </div>`;
}

/**
 * What the manager says of the text.
 * @param {{text: string, run: ReturnType<typeof useDryRun>, goTo: (line: number) => void}} props
 */
function Said({ text, run, goTo }) {
  const { said, busy, again } = run;
  const old = said && said.text !== text;
  const names = namesIn(said?.text ?? "");
  const refused = said && invalid(said.problem);
  const summary = !text.trim()
    ? t("Write a job file, or begin with an example: where its tasks would go is shown here.")
    : !said || old
      ? t("Checking…")
      : refused
        ? t("The job file is refused.")
        : said.problem
          ? t("It could not be checked.")
          : summaryText(said.answer, names);
  const state = !said || old ? "" : refused ? "failed" : said.problem ? "" : said.answer.feasible ? "ready" : "queued";
  return html`<section class="said-now ${old ? "old" : ""}" aria-labelledby="dry-run" aria-busy=${busy || old}>
    <h2 id="dry-run">${t("What would happen now")}</h2>
    <p id="dry-run-said" role="status" class=${state ? "verdict" : "quiet"}>
      ${state ? html`<${State} state=${state} word=${summary} />` : summary}</p>
    ${
      said?.problem &&
      html`<${Refusal} problem=${said.problem} text=${said.text} goTo=${goTo}
        again=${refused ? undefined : again} />`
    }
    ${said?.answer && html`<${Forecast} answer=${said.answer} />`}
  </section>`;
}

/** @param {{text: string, goTo: (line: number) => void, write: (text: string) => void}} props `text`: of a graph */
const Preview = (props) => html`<section class="divided" aria-labelledby="dry-run">
  <h2 id="dry-run">${t("What it would be divided into")}</h2>
  <p id="dry-run-said" class="quiet">${tx("A graph is no job yet: this shows what {command} makes of it.", { command: html`<code>ces decompose</code>` })}</p>
  <${Divided} ...${props} />
</section>`;

/** The page for those who may submit. */
function Editor() {
  const { draft, write, change } = useDraft();
  const { text } = draft;
  const graph = isGraph(text);
  const run = useDryRun(graph ? "" : text);
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const sending = useRef(false); // at once: a second click may come before anything is drawn again
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState(/** @type {{text: string, problem: any} | null} */ (null));
  const refused = Boolean(run.said && invalid(run.said.problem));
  const ready = text.trim() !== "" && !graph && !refused && !busy;
  const goTo = (/** @type {number} */ line) => area.current && selectLine(area.current, line);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (!ready || sending.current) return;
    sending.current = true;
    setBusy(true);
    setFailed(null);
    const key = draft.key || newKey();
    change({ key }); // kept: whoever loads the page again and sends the same text has one job
    try {
      const headers = { "Idempotency-Key": key };
      const job = await call("/v1/jobs", { method: "POST", document: documentOf(text), headers });
      change({ key: "" }); // the same text, submitted again, is another job
      tell(t("{job} is submitted", { job: plain(job.name) }));
      location.hash = href("jobs", job.id);
    } catch (problem) {
      setFailed({ text, problem });
      tell(t("{job} was not submitted", { job: plain(namesIn(text).name) || t("the job") }));
      sending.current = false;
      setBusy(false);
    }
  };
  const drop = async (/** @type {DragEvent} */ event) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return; // dragged text goes where it is dropped
    event.preventDefault();
    const content = html`<p>${t("What stands there now is lost.")}</p>`;
    if (file.size > LARGEST_FILE) return tell(t("{file} is too large for a job file.", { file: plain(file.name) }));
    if (replaceable(text) || (await confirmed(t("Replace the job file?"), content, t("Replace"))))
      write(await file.text());
  };
  return html`<form class="submit" onSubmit=${submit}>
    <div class="writing">
      <${Beginnings} text=${text} write=${write} />
      <label for="job-text">${t("Job file, YAML or JSON")}</label>
      <textarea id="job-text" ref=${area} value=${text} rows="24" wrap="off" spellcheck="false" autocomplete="off"
        autocapitalize="off" readonly=${busy} aria-invalid=${refused ? "true" : undefined}
        aria-describedby="job-text-note"
        onInput=${(/** @type {InputEvent} */ event) => write(/** @type {any} */ (event.target).value)}
        onDrop=${drop} />
      <p id="job-text-note" class="quiet">
        ${t("It is checked while you write, and kept in this tab only. A file can be dropped here.")}</p>
      <div class="actions">
        <button type="submit" class="main" aria-disabled=${!ready} aria-describedby="dry-run-said">
          ${busy ? t("Submitting…") : t("Submit")}</button>
        ${failed && html`<${Refusal} problem=${failed.problem} text=${failed.text} goTo=${goTo} />`}
      </div>
    </div>
    ${graph ? html`<${Preview} text=${text} goTo=${goTo} write=${write} />` : html`<${Said} text=${text} run=${run} goTo=${goTo} />`}
  </form>`;
}

export default function Submit() {
  const command = html`<code>ces submit FILE</code>`;
  return html`<${Head} title=${t("Submit a job")}><span class="quiet">${tx("as {command} does", { command })}</span><//>
    ${may("submitter") ? html`<${Editor} />` : html`<p>${t("Your role may not submit jobs.")}</p>`}`;
}
