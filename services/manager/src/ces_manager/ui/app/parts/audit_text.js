/** Kinds of findings in words. */
import { t } from "../show.js";

/** What each kind of finding means. @type {Record<string, () => string>} */
const KINDS = {
  log: () => t("the log has a gap or a repetition, or says two things"),
  step: () => t("a step that there is not"),
  plan: () => t("a plan that is not what was asked for, or uses what it must not"),
  twice: () => t("a task was in two places at once"),
  overbooked: () => t("more was held than plans may reserve"),
  held: () => t("something was not released"),
  deadline: () => t("a job that was refused for its deadline had a plan"),
  reservation: () => t("a job started later than its reservation said"),
};

/** @param {string} kind @returns {string} empty where it is of another version */
export const kindText = (kind) => KINDS[kind]?.() ?? "";
