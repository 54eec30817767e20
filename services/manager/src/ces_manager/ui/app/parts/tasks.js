/** The tasks of a job: where each is, in which state, and how far. */
import { brief, cpu, cpuQuantity, DASH, html, memory, Name, plain, State, t, To } from "../show.js";
import { withQuery } from "../main.js";
import { Rows } from "./rows.js";

const KNOWN = ["round", "rounds", "loss", "accuracy"];
const MOST_KEYS = 4; // of a worker's own that are shown
const LARGEST = 1e15;
const SIGNALLED = 128; // a process that a signal ended has this exit code plus the signal's number
/** @type {Record<number, string>} */
const SIGNALS = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  5: "SIGTRAP",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  10: "SIGUSR1",
  11: "SIGSEGV",
  12: "SIGUSR2",
  13: "SIGPIPE",
  14: "SIGALRM",
  15: "SIGTERM",
  24: "SIGXCPU",
  25: "SIGXFSZ",
  31: "SIGSYS",
};

/** A number that somebody else wrote. @param {unknown} value @returns {number | null} */
const number = (value) => (typeof value === "number" && Math.abs(value) <= LARGEST ? value : null);

/**
 * @typedef {object} Progress
 * @property {number | null} round
 * @property {number | null} rounds
 * @property {number | null} loss
 * @property {number | null} accuracy a fraction
 * @property {[string, unknown][]} more what it says beyond that
 */

/**
 * What a worker's last line of progress says: `{"progress": {...}}`, a final `{"result": {...}}`, or the fields alone.
 * @param {any} line
 * @returns {Progress}
 */
export function progressOf(line) {
  const content = line?.result || (line?.progress ?? line) || {};
  if (typeof content !== "object") return { round: null, rounds: null, loss: null, accuracy: null, more: [] };
  const done = number(content.round ?? content.rounds);
  const known = content.step === done ? [...KNOWN, "step"] : KNOWN;
  return {
    round: done,
    rounds: number(content.rounds),
    loss: number(content.loss),
    accuracy: number(content.accuracy),
    more: Object.entries(content).filter(([key]) => !known.includes(key)),
  };
}

/** @param {unknown} value @returns {string} */
const short = (value) =>
  typeof value === "number" ? brief(value) : typeof value === "object" ? JSON.stringify(value) : String(value);

/** @param {[string, unknown][]} more @returns {string} such as `step 12, throughput 3.5` */
const ownKeys = (more) =>
  more
    .slice(0, MOST_KEYS)
    .map(([key, value]) => `${key} ${short(value)}`)
    .join(", ") + (more.length > MOST_KEYS ? ", …" : "");

/** @param {any} line @returns {string} progress in a few words */
export function progressText(line) {
  const { round, rounds, loss, accuracy } = progressOf(line);
  return [
    round != null && t("round {n} of {all}", { n: round, all: rounds ?? "?" }),
    loss != null && t("loss {n}", { n: loss.toFixed(4) }),
    accuracy != null && t("accuracy {n}", { n: `${(100 * accuracy).toFixed(1)} %` }),
  ]
    .filter(Boolean)
    .join(", ");
}

/** @param {number} code @returns {string} how a process ended */
export const exitText = (code) => SIGNALS[code - SIGNALLED] ?? t("exit {code}", { code });

/** @param {{task: any}} props */
function TaskState({ task }) {
  return html`<${State} state=${task.state} />${task.exit_code ? ` (${exitText(task.exit_code)})` : ""}
    ${task.reason && html`<span class="why"><bdi lang="en">${plain(task.reason)}</bdi></span>`}`;
}

/** @param {{task: any}} props */
function ProgressBar({ task }) {
  const { round, rounds } = progressOf(task.progress);
  const done = task.state === "succeeded" ? 1 : rounds ? Math.min(1, (round ?? 0) / rounds) : 0;
  if (round == null && !done) return DASH;
  return html`<div class="amount"><span class="bars one" aria-hidden="true">
    <i class="used" style=${{ width: `${100 * done}%` }}></i></span><span class="numbers">
    ${round == null ? "" : t("round {n} of {all}", { n: round, all: rounds ?? "?" })}</span></div>`;
}

/** @param {{tasks: any[]}} props */
export function Tasks({ tasks }) {
  const progresses = new Map(tasks.map((task) => [task.name, progressOf(task.progress)]));
  const of = (/** @type {any} */ task) => /** @type {Progress} */ (progresses.get(task.name));
  const any = (/** @type {(progress: Progress) => boolean} */ which) => [...progresses.values()].some(which);
  /** @type {(import("./rows.js").Column<any> | false)[]} */
  const columns = [
    {
      id: "name",
      title: t("Task"),
      track: "minmax(8em, 1fr)",
      by: (task) => task.rank,
      cell: (task) => html`<${Name}>${task.name}<//>`,
    },
    {
      id: "node",
      title: t("Node"),
      track: "minmax(8em, 1fr)",
      by: (task) => task.node ?? "",
      cell: (task) => (task.node ? html`<${To} path=${["nodes", task.node]}>${task.node}<//>` : DASH),
    },
    {
      id: "state",
      title: t("State"),
      track: "minmax(8em, 1.4fr)",
      by: (task) => task.state ?? "",
      cell: (task) => html`<${TaskState} task=${task} />`,
    },
    {
      id: "progress",
      title: t("Progress"),
      track: "minmax(9em, 1.2fr)",
      by: (task) => of(task).round ?? -1,
      cell: (task) => html`<${ProgressBar} task=${task} />`,
    },
    any(({ loss }) => loss != null) && {
      id: "loss",
      title: t("Loss"),
      track: "minmax(5em, .5fr)",
      end: true,
      cell: (task) => of(task).loss?.toFixed(4) ?? DASH,
    },
    any(({ accuracy }) => accuracy != null) && {
      id: "accuracy",
      title: t("Accuracy"),
      track: "minmax(5em, .5fr)",
      end: true,
      cell: (task) => {
        const { accuracy } = of(task);
        return accuracy == null ? DASH : `${(100 * accuracy).toFixed(1)} %`;
      },
    },
    any(({ more }) => more.length > 0) && {
      id: "more",
      title: t("More"),
      full: true,
      track: "minmax(14em, 2.6fr)",
      wide: true,
      cell: (task) => html`<${Name}>${ownKeys(of(task).more)}<//>`,
    },
    {
      id: "asks",
      title: t("Asks for"),
      full: true,
      track: "minmax(9em, 1fr)",
      wide: true,
      cell: (task) =>
        [
          cpu(task.cpu),
          memory(task.memory),
          task.gpu && t("{n} GPU", { n: task.gpu }),
          task.gpu_share && t("{share}m of a GPU card", { share: task.gpu_share }),
          task.cpu_desired != null && t("has {cpu} now", { cpu: cpuQuantity(task.cpu_desired) }),
        ]
          .filter(Boolean)
          .join(", "),
    },
    {
      id: "log",
      title: t("Log"),
      track: "minmax(3em, .3fr)",
      cell: (task) => (task.allocation ? html`<a href=${withQuery({ task: task.name })}>${t("log")}</a>` : DASH),
    },
  ];
  return html`<${Rows} caption=${t("Tasks")} param="tasks" columns=${columns} items=${tasks}
    keyOf=${(/** @type {any} */ task) => task.name} empty=${t("The job has no tasks.")} />`;
}
