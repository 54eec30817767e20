/** The promises that an audit checks, and what it does not check, in the words of the auditor. */
import { t } from "../show.js";

/** What is promised, and what one check of it is about. @typedef {{text: string, checked: string}} Words */

/** By the kind of the findings that tell where it is broken. @type {Record<string, () => Words>} */
const PROMISES = {
  "node-capacity": () => ({
    text: t("No node gives out more CPU, memory or GPUs than it has."),
    checked: t("each time that more of a node is given out"),
  }),
  "gpu-card": () => ({
    text: t("Each task gets GPU cards as it asked for; no card is given out twice, nor more of a shared one than it has."),
    checked: t("each card that a task is given"),
  }),
  "link-capacity": () => ({
    text: t("No link or shared medium has more bandwidth given out than it can surely carry: 95 %, of tunnels less."),
    checked: t("each time that more of a link or medium is given out"),
  }),
  "flow-rate": () => ({
    text: t("Each flow is given the bandwidth that its job was promised, or the log says that it falls short."),
    checked: t("each flow, each time that it is given a rate"),
  }),
  "flow-path": () => ({
    text: t("Each flow goes from where its data is to where it is wanted, over links that exist."),
    checked: t("each flow, each time that it is given a path; that links exist, where its job starts or is resized"),
  }),
  request: () => ({
    text: t("Each job gets what its file asks for: its tasks, number of workers and CPU, and no pause that it forbids."),
    checked: t("each start, resize, change of CPU and suspension"),
  }),
  twice: () => ({
    text: t("Each task runs in one place at a time."),
    checked: t("each task that begins to run or moves, each start and each return to the queue"),
  }),
  "node-ready": () => ({
    text: t("Work goes only to nodes that are there and take work."),
    checked: t("each node of each start, resize and move"),
  }),
  address: () => ({
    text: t("No two workers have the same address, and no two flows the same number."),
    checked: t("each worker and each flow that is given one"),
  }),
  step: () => ({
    text: t("Jobs and tasks change their state only in the ways that there are."),
    checked: t("each change of a job, a task or a plan"),
  }),
  reservation: () => ({
    text: t("A waiting job starts by the time that it was told, unless others ran longer than said or the cluster changed."),
    checked: t("each start time that a job was told before it started"),
  }),
  deadline: () => ({
    text: t("A job that was refused for its deadline is never started."),
    checked: t("each refusal, and each start of a job with a deadline"),
  }),
  held: () => ({
    text: t("Whatever is over gives everything back."),
    checked: t("each suspension; and where the auditor is told that the cluster is idle, each job and task"),
  }),
  log: () => ({
    text: t("The event log is whole and does not contradict itself."),
    checked: t("each event"),
  }),
};

/** @param {string} kind @returns {Words | null} null where it is of another version */
export const promiseOf = (kind) => PROMISES[kind]?.() ?? null;

/** @returns {string[]} what no audit checks */
export const notChecked = () => [
  t("Whether links carried what flows were given: the log tells what was given, not what was measured."),
  t("What really ran on the nodes: the log tells what their agents reported."),
  t("Quotas and shares of tenants, and the order in which jobs start."),
  t("Whether places were good ones, and whether jobs computed what they should."),
];
