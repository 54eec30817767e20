/** Why a job waits, in the sentences of `ces describe job` and `ces get queue`, with links to what they name. */
import { clock, DASH, html, moment, plain, State, t, To, tx } from "../show.js";
import { amount, tooFewText, wantedNodes } from "./amounts.js";

/**
 * @typedef {object} Reason
 * @property {string} code
 * @property {string} text
 * @property {string | null} [resource] tells the unit of `needed`
 * @property {number | null} [needed]
 * @property {number | null} [available]
 * @property {string | null} [where]
 * @property {boolean} [forever]
 * @property {import("./amounts.js").TooFewNodes | null} [nodes]
 */
/** @typedef {{id: string, name: string}} Holder */
/**
 * @typedef {object} QueueStatus
 * @property {number} position
 * @property {Record<string, any>} score fit, priority, waiting, share, total, scarce
 * @property {Reason | null} [reason]
 * @property {boolean} [overdue]
 * @property {boolean} [reserved]
 * @property {string | null} [start_at]
 * @property {Holder[]} [holders]
 */

const NAMED = 3; // holders in a sentence; the others are counted
/** What adds up to a score, in its order. */
export const PARTS = ["fit", "priority", "waiting", "share"];

/** The manager's own sentence: it has no other language. */
const said = (/** @type {string} */ text) => html`<bdi lang="en">${plain(text)}</bdi>`;

/** The reason's own sentence, which holds the numbers, or by nodes where it comes to those. @param {Reason} reason */
function sentence({ text, nodes, code, resource, available, where, forever }) {
  if (!nodes) return said(text);
  const words = tooFewText(nodes, Boolean(forever));
  if (!code.endsWith("-per-node") || resource == null || available == null || !where) return words;
  const values = { words, where: plain(where), amount: amount(resource, available) };
  return forever
    ? t("{words}; the largest node ({where}) has {amount}", values)
    : t("{words}; the largest free node ({where}) has {amount}", values);
}

/** Why a job has no place. @param {Reason} reason */
export function reasonText(reason) {
  if (!reason.forever) return sentence(reason);
  const share = reason.code.startsWith("bandwidth-") ? ` ${t("(plans may reserve 95 % of a link)")}` : "";
  return html`${sentence(reason)}${share}<strong class="wait">
    ${t("; no job's end can change that, only other nodes or links, or another job")}</strong>`;
}

/** What is missing, where the reason is about nodes with so much, or about one amount of one resource. @param {Reason} reason */
function wanted({ resource, needed, code, where, nodes }) {
  if (nodes) return wantedNodes(nodes);
  if (resource == null || needed == null) return null;
  const missing = amount(resource, needed);
  if (code === "bandwidth-per-flow")
    return where ? t("{amount} on {where}", { amount: missing, where: plain(where) }) : missing;
  if (code.endsWith("-per-node")) return t("{amount} on one node", { amount: missing });
  if (code.endsWith("-total")) return missing;
  return code === "quota"
    ? t("{amount} within the quota of tenant {where}", { amount: missing, where: plain(where) })
    : null;
}

/** @param {Holder[]} holders @returns {any} their names as links; all of them, for nobody else names them */
export function holderLinks(holders, most = Infinity) {
  const named = holders.slice(0, most);
  const rest = holders.length - named.length;
  return [
    ...named.map(({ id, name }, index) => [index > 0 && ", ", html`<${To} path=${["jobs", id]}>${name}<//>`]),
    rest > 0 && t(" and {n} more", { n: rest }),
  ];
}

/**
 * What a job waits for, who holds it, and until when about.
 * @param {Reason | null | undefined} reason
 * @param {QueueStatus | null | undefined} status
 */
export function waitingText(reason, status) {
  if (reason && (!status || reason.forever)) return tx("waits: {reason}", { reason: reasonText(reason) });
  const missing = reason && wanted(reason);
  const what = !reason
    ? t("waits for its turn: others come first")
    : missing
      ? t("waits for {amount}", { amount: missing })
      : tx("waits: {reason}", { reason: said(reason.text) });
  if (!status) return what;
  const { holders = [], reserved, overdue, start_at: start } = status;
  return [
    what,
    holders.length > 0 &&
      tx(holders.length === 1 ? ", held by job {jobs}" : ", held by jobs {jobs}", {
        jobs: holderLinks(holders, NAMED),
      }),
    !reserved && start && Date.parse(start) > clock.value && t(" until about {time}", { time: moment(start) }),
    reserved &&
      (start
        ? t(". It has a reservation: it starts no later than {time}", { time: moment(start) })
        : t(". It has a reservation")),
    !reserved && overdue && t(". It is overdue: the oldest overdue job goes first"),
  ];
}

/** When it is expected to start. @param {QueueStatus | null | undefined} status @returns {string} */
export function startText(status) {
  if (!status) return DASH;
  if (!status.start_at) return t("cannot be predicted");
  if (status.reserved) return t("no later than {time}", { time: moment(status.start_at) });
  return Date.parse(status.start_at) > clock.value ? t("about {time}", { time: moment(status.start_at) }) : DASH;
}

/** @param {number} value @returns {string} */
export const figure = (value) => value.toFixed(2).replace("-", "−");

/** @param {number} value @returns {string} with its sign */
export const signed = (value) => (value < 0 ? figure(value) : `+${figure(value)}`);

/** What stands in the way of an entry of the queue, or else what counts most in its score. @param {any} entry */
export function whyText({ state, reason, queue_status: status }) {
  if (state === "suspended") return [html`<${State} state=${state} />`, reason && ": ", reason && reasonText(reason)];
  if (reason) return reasonText(reason);
  if (!status) return html`<span class="quiet">${t("not tried yet")}</span>`;
  const part = PARTS.reduce((most, each) =>
    Math.abs(status.score[each]) > Math.abs(status.score[most]) ? each : most,
  );
  return html`<span class="quiet">
    ${t("not its turn yet: {part} {value}", { part: t(part), value: signed(status.score[part]) })}</span>`;
}

/** A job's deadline, and whether it is kept. @param {any} job @returns {string} */
export function deadlineText({ deadline_at: due, state, finished_at: finished, expected_end_at: end }) {
  if (!due) return DASH;
  const time = moment(due);
  if (state === "succeeded" && finished)
    return finished <= due ? t("{time}, kept", { time }) : t("{time}, missed", { time });
  if (finished || !end) return time;
  const values = { time, end: moment(end) };
  return Date.parse(end) > Date.parse(due)
    ? t("{time}, late: ends about {end}", values)
    : t("{time}, ends about {end}", values);
}
