/** What is to be said of a job beside its tables, in the words of `ces describe job`. */
import { brief, cpuQuantity, html, language, moment, Name, plain, since, span, t } from "../show.js";
import { confinementText } from "./confinement.js";
import { energyText } from "./learned.js";
import { deadlineText, figure, PARTS, signed, waitingText } from "./reasons.js";

/** @typedef {any} Job a JobView of the API */

const LONG_COMMAND = 100; // characters
const MOST_SIZES = 8; // of those measured that are shown: the ones measured last

/** @param {any} elastic @returns {string} which sizes it may have */
const sizesText = ({ workers, sizes }) =>
  workers ? t("{min} to {max}", { min: workers.min, max: workers.max }) : sizes.join(", ");

/**
 * @param {Record<string, number>} rates by size
 * @param {string} unit
 * @returns {string} such as `3.6 steps/s with 1, 5.7 with 2`
 */
const ratesText = (rates, unit) =>
  Object.entries(rates)
    .map(([size, rate], index) =>
      t(index ? "{rate} with {size}" : "{rate} {unit}/s with {size}", { rate: brief(rate, 3), size, unit }),
    )
    .join(", ");

/** @param {Job} job @returns {[string, string][]} how far a malleable job is, and how fast at which size */
function speedFacts({ speeds, predicted, elastic }) {
  const { unit = "steps", total } = elastic.speed ?? {};
  /** @type {[string, string][]} */
  const facts = [];
  if (speeds) {
    const amount = (/** @type {number} */ n) => n.toLocaleString(language.value);
    const done =
      total == null ? amount(speeds.step) : t("{n} of {all}", { n: amount(speeds.step), all: amount(total) });
    facts.push([t("Done"), `${done} ${plain(unit)}`]);
    const newest = Object.entries(speeds.sizes ?? {})
      .sort(([, one], [, other]) => (one.at < other.at ? -1 : 1))
      .slice(-MOST_SIZES);
    if (newest.length)
      facts.push([t("Measured"), ratesText(Object.fromEntries(newest.map(([size, { rate }]) => [size, rate])), unit)]);
  }
  if (Object.keys(predicted ?? {}).length) facts.push([t("Expected"), ratesText(predicted, unit)]);
  return facts;
}

/** @param {Job} job @returns {string} what CPU each worker of its elastic group has */
function cpuText({ elastic, placement }) {
  const group = placement.filter((/** @type {any} */ { name }) => new RegExp(`^${elastic.group}-\\d+$`).test(name));
  const now = [...new Set(group.map((/** @type {any} */ task) => task.cpu_desired ?? task.cpu))].sort(
    (one, other) => one - other,
  );
  const quantity = (/** @type {any} */ value) => (typeof value === "number" ? cpuQuantity(value) : plain(value));
  return t("{now} for each {group}, of {min} to {max}", {
    now: now.map(quantity).join(", "),
    group: elastic.group,
    min: quantity(elastic.cpu.min),
    max: quantity(elastic.cpu.max),
  });
}

/** @param {any} score @returns {string} */
const scoreText = (score) =>
  t("{total} ({parts}; scarce: {scarce})", {
    total: figure(score.total),
    parts: PARTS.map((part) => `${t(part)} ${signed(score[part])}`).join(", "),
    scarce: t(score.scarce),
  });

/** What keeps workers apart, in words; tasks of which the same holds share a line. @param {any[]} placement */
function confined(placement) {
  const alike = new Map();
  for (const { runtime, network, confinement } of placement) {
    if (!runtime) continue;
    const text = confinementText(runtime, network, confinement);
    alike.set(text, (alike.get(text) ?? 0) + 1);
  }
  return [...alike].map(([text, n]) => html`<p>${text}${alike.size > 1 && ` (${n})`}</p>`);
}

/** A command; one with a whole program in it is folded. @param {{text: string}} props */
const Command = ({ text }) =>
  text.length <= LONG_COMMAND
    ? html`<p><code>${plain(text)}</code></p>`
    : html`<details class="command"><summary><code>${plain(text.slice(0, LONG_COMMAND))}…</code></summary>
      <code>${plain(text)}</code></details>`;

/** @param {Job} job @returns {([string, any] | false)[]} */
export function jobFacts(job) {
  const commands = [...new Set(job.placement.map((/** @type {any} */ task) => task.command?.join(" ") ?? ""))]
    .filter(Boolean)
    .sort();
  const images = [...new Set(job.placement.map((/** @type {any} */ task) => task.image ?? ""))].filter(Boolean).sort();
  const { elastic, queue_status: status, waiting } = job;
  const ago = (/** @type {string} */ at) =>
    html`${t("{span} ago", { span: since(at) })} <span class="quiet">(${moment(at, true)})</span>`;
  const said = status && JSON.stringify(waitingText(waiting, status)).includes(waiting?.text ?? "");
  const policy = job.deadline?.policy === "refuse" ? t("or it is refused") : t("or it runs late");
  return [
    [t("Tenant"), html`<${Name}>${job.tenant}<//>`],
    [t("Priority"), job.priority],
    elastic && [
      t("Size"),
      t("{size} {group}, of {sizes}", { size: job.size ?? "–", group: elastic.group, sizes: sizesText(elastic) }),
    ],
    elastic?.cpu && [t("CPU"), cpuText(job)],
    ...(elastic ? speedFacts(job) : []),
    job.deadline_at && [t("Deadline"), `${deadlineText(job)} (${policy})`],
    job.expected_s != null && [t("Says it runs"), span(job.expected_s)],
    status && [
      t("In the queue"),
      html`<a href="#/queue">${t("number {n}", { n: status.position })}
        </a>, ${t("score {score}", { score: scoreText(status.score) })}`,
    ],
    waiting && status && !said && [t("Has no place"), html`<bdi lang="en">${plain(waiting.text)}</bdi>`],
    [t("Submitted"), ago(job.submitted_at)],
    job.started_at && [t("Started"), ago(job.started_at)],
    job.finished_at && [t("Finished"), ago(job.finished_at)],
    job.started_at && [t("Energy"), energyText(job.energy)],
    [t("When cut off"), job.disconnect],
    [t("When preempted"), t(job.preemption)],
    job.placement.some((/** @type {any} */ task) => task.runtime) && [t("Confined"), confined(job.placement)],
    images.length > 0 && [t("Image"), images.map((image) => html`<p><code>${plain(image)}</code></p>`)],
    commands.length > 0 && [t("Command"), commands.map((command) => html`<${Command} text=${command} />`)],
  ];
}
