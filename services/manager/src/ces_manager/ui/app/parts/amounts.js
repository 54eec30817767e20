/** Amounts in reasons: what is asked of nodes, and what they have. */
import { cpu, memory, plain, rate, t, tn } from "../show.js";

/** @typedef {{resource: string, needed: number, available: number}} Lack units as in a reason */
/**
 * @typedef {object} TooFewNodes tasks for which too few nodes have enough
 * @property {Record<string, number>} each what each of them needs at least, by resource
 * @property {number} needed how many tasks these are
 * @property {number} available how many fit on the nodes that they may use
 * @property {number} nodes on how many that is
 * @property {boolean} apart no such node could ever hold two of them
 */
/** @typedef {Record<string, Record<string, Lack[]>>} Lacking task -> node -> what it has too little of */

/** @param {string} resource @param {number} value @returns {string} */
export function amount(resource, value) {
  if (resource === "cpu") return cpu(value);
  if (resource === "memory") return memory(value);
  if (resource === "bandwidth") return rate(value);
  return `${value} ${plain(resource.toUpperCase())}${value === 1 ? "" : "s"}`;
}

/** @param {TooFewNodes} nodes @returns {string} */
const amounts = ({ each }) =>
  Object.entries(each)
    .map(([resource, value]) => amount(resource, value))
    .join(t(" and "));

/** @param {TooFewNodes} nodes @returns {string} what is needed, and how much of it there is, for a job that waits for it */
export function wantedNodes(nodes) {
  const values = { amounts: amounts(nodes) };
  if (!nodes.apart) {
    const wanted = t("{n} times {amounts}, each on one node", { ...values, n: nodes.needed });
    if (nodes.available === 0) return t("{wanted} (free nowhere)", { wanted });
    return nodes.available === 1
      ? t("{wanted} (free once)", { wanted })
      : t("{wanted} (free {n} times)", { wanted, n: nodes.available });
  }
  const wanted = tn(nodes.needed, "1 node with {amounts} free", "{n} nodes with {amounts} free", values);
  return nodes.nodes === 0
    ? t("{wanted} (none has that)", { wanted })
    : tn(nodes.nodes, "{wanted} (1 has that)", "{wanted} ({n} have that)", { wanted });
}

/** @param {TooFewNodes} nodes @param {boolean} ever even if nothing else ran @returns {string} the same in a whole sentence, as `ces` says it */
export function tooFewText(nodes, ever) {
  const values = { amounts: amounts(nodes) };
  if (!nodes.apart) {
    const wanted = t("{n} tasks need at least {amounts} each on one node", { ...values, n: nodes.needed });
    if (nodes.available === 0)
      return ever ? t("{wanted}, and none has that", { wanted }) : t("{wanted}, and none has that free", { wanted });
    const times = { wanted, n: nodes.available };
    if (nodes.available === 1)
      return ever
        ? t("{wanted}, and nodes that they may use have that once", times)
        : t("{wanted}, and nodes that they may use have that free once", times);
    return ever
      ? t("{wanted}, and nodes that they may use have that {n} times", times)
      : t("{wanted}, and nodes that they may use have that free {n} times", times);
  }
  const wanted = ever
    ? tn(nodes.needed, "1 node with {amounts} is needed", "{n} nodes with {amounts} are needed", values)
    : tn(nodes.needed, "1 node with {amounts} free is needed", "{n} nodes with {amounts} free are needed", values);
  if (nodes.nodes === 0) return t("{wanted}, and none that it may use has that", { wanted });
  return tn(nodes.nodes, "{wanted}, and 1 that it may use has that", "{wanted}, and {n} that it may use have that", {
    wanted,
  });
}

/** Why a node was refused: how much it has too little, where that is known, or the scheduler's own words. @param {string} why @param {Lack[]} [lacks] @returns {string} */
export const whyNotText = (why, lacks = []) =>
  lacks.length
    ? lacks
        .map(({ resource, needed, available }) =>
          t("{needed} asked, {available} free", {
            needed: amount(resource, needed),
            available: amount(resource, available),
          }),
        )
        .join(t("; "))
    : plain(why);
