/** What an event says, as a sentence with links to what it names. */
import { cpu, html, memory, moment, Name, plain, rate, State, t, tn, To, tx } from "../show.js";
import { LinkTo } from "./network.js";
import { reasonText, waitingText } from "./reasons.js";
import { exitText } from "./tasks.js";

/** @typedef {{id: number, type: string, time: string, subject: string, actor: string | null, data: any}} Happened */

/** @param {{id: string, data: string}} heard @returns {Happened | null} null for what is no numbered event */
export const happenedIn = (heard) =>
  heard.id && heard.data ? happened(Number(heard.id), JSON.parse(heard.data)) : null;

/** @param {number} id @param {any} event a CloudEvent @returns {Happened} */
export const happened = (id, { type, time, subject, actor = null, data }) => ({
  id,
  type: type.replace(/^ces\.v1\./, ""),
  time,
  subject,
  actor,
  data,
});

/** @param {Happened} event @returns {string | null} the id of the job that it is about */
export const jobOf = ({ type, subject, data }) => (type.startsWith("job.") ? subject : (data.job ?? null));

const because = (/** @type {string | null | undefined} */ reason) =>
  reason && html`: <bdi lang="en">${plain(reason)}</bdi>`;
const node = (/** @type {string} */ name) => html`<${To} path=${["nodes", name]}>${name}<//>`;

/** @param {any} data of a change of a job's state */
const jobChanged = ({ state, previous, reason }) =>
  html`${previous && previous !== state && html`<span class="quiet">${t(previous)} → </span>`}
    <${State} state=${state} />${because(reason)}`;

/** @param {any} data of a change of an allocation's state */
const allocationChanged = ({ task, node: on, state, exit_code: code, reason }) =>
  html`${tx("{task} on {node}", { task: html`<${Name}>${task}<//>`, node: node(on) })} <${State} state=${state} />
    ${code ? ` (${exitText(code)})` : ""}${because(reason)}`;

/** @param {any[]} allocations */
function placed(allocations = []) {
  const nodes = [...new Set(allocations.map((each) => each.node))];
  return nodes.map((each, index) => [index > 0 && ", ", node(each)]);
}

/** @type {Record<string, string>} */
const MOVES = {
  stopping: "{task} is stopped, to start on the other node",
  starting: "{task} is surely gone, and starts on the other node",
  done: "{task} runs on the other node",
  clearing: "{task} does not start there, and is ended",
  returning: "{task} starts again where it was",
  kept: "{task} stays where it was",
  failed: "the move of {task} has failed",
};

const LISTED = 3; // flows in a sentence
/** @param {any} flow as it is now @param {number} index */
const flowNow = ({ src, dst, rate: given, path }, index) =>
  `${index ? ", " : ""}${plain(src)} → ${plain(dst)} ${rate(given)} ${plain(path.join(" › "))}`;

/** @type {Record<string, (data: any) => any>} */
const SAY = {
  "job.waiting": ({ reason, queue_status: status }) => waitingText(reason, status),
  "job.deadline": ({ deadline_at: due, kept, end_at: end, refusal }) => [
    kept
      ? t("its deadline, {time}, can be kept", { time: moment(due) })
      : t("its deadline, {time}, cannot be kept", { time: moment(due) }),
    end && t("; it ends about {time}", { time: moment(end) }),
    refusal && [": ", reasonText(refusal)],
  ],
  "plan.committed": ({ solver, allocations }) =>
    tx("placed by {solver} on {nodes}", { solver: plain(solver), nodes: placed(allocations) }),
  "plan.rejected": ({ reason }) => html`${t("the plan did not fit any more")}${because(reason)}`,
  "plan.revised": ({ cause, flows = [], short = [] }) => [
    t(CAUSES[cause] ?? plain(cause)),
    ` (${tn(flows.length, "1 flow", "{n} flows")}): `,
    flows.slice(0, LISTED).map(flowNow),
    flows.length > LISTED && t(" and {n} more", { n: flows.length - LISTED }),
    short.length > 0 &&
      html`; <strong class="wait">${tn(short.length, "1 has less than its minimum", "{n} have less than their minimum")}
        </strong>: ${short.map(
          (/** @type {any} */ each, /** @type {number} */ index) => `${index ? ", " : ""}
        ${plain(each.src)} → ${plain(each.dst)} ${rate(each.rate)}`,
        )}`,
  ],
  "resize.committed": ({ before, size, allocations }) =>
    tx("goes from size {before} to {size}, on {nodes}", { before, size, nodes: placed(allocations) }),
  "resize.ended": ({ done }) => (done ? t("the new size is in use") : t("the new size was given up")),
  "resize.rejected": ({ reason }) => html`${t("another size did not fit")}${because(reason)}`,
  "move.committed": ({ task, source, destination, why }) =>
    html`${tx("{task} is to move from {source} to {destination}", {
      task: html`<${Name}>${task}<//>`,
      source: node(source),
      destination: node(destination),
    })}${because(why)}`,
  "user.moved": ({ user, node: on }) =>
    tx("user {user} is at {node} now", { user: html`<${Name}>${user}<//>`, node: node(on) }),
  "move.changed": ({ task, state, reason }) =>
    html`${tx(MOVES[state] ?? "{task} goes on moving", { task: html`<${Name}>${task}<//>` })}${because(reason)}`,
  "cpu.committed": ({ cpu: amount }) => t("each worker is to have {cpu}", { cpu: cpu(amount) }),
  "cpu.released": ({ task, node: on, cpu: amount }) =>
    tx("{task} on {node} holds {cpu} now", { task: html`<${Name}>${task}<//>`, node: node(on), cpu: cpu(amount) }),
  "cpu.rejected": ({ reason }) => html`${t("another amount of CPU did not fit")}${because(reason)}`,
  "checkpoint.packed": ({ name, size, node: on }) =>
    tx("checkpoint {name} ({size}) packed on {node}", { name: plain(name), size: memory(size), node: node(on) }),
  "checkpoint.copied": ({ name, size, node: on }) =>
    tx("checkpoint {name} ({size}) copied to {node}", { name: plain(name), size: memory(size), node: node(on) }),
  "checkpoint.restored": ({ name, node: on, source, reason }) => html`${begun(name, on, source)}${because(reason)}`,
  "revision.rejected": ({ reason }) => html`${t("other paths or rates did not fit")}${because(reason)}`,
  "preemption.committed": ({ job, victims }) =>
    tx("makes room for job {job}: {victims}", {
      job: jobLink(job),
      victims: victims.map((/** @type {any} */ each, /** @type {number} */ index) => [
        index > 0 && ", ",
        jobLink(each.job),
        ` (${t(each.how)})`,
      ]),
    }),
  "preemption.rejected": ({ reason }) => html`${t("no room was made")}${because(reason)}`,
  "node.changed": ({ node: name, change }) =>
    html`${node(name)} ${html`<${State} state=${change} word=${t(change)} />`}`,
  "link.changed": ({ src, dst, state, reason, measured, bandwidth }) =>
    html`<${LinkTo} link=${{ src, dst }} /> <${State} state=${state} />${state === "down" && because(reason)}
      ${measured != null && measured < bandwidth && `, ${t("measured {rate}", { rate: rate(measured) })}`}`,
  "topology.changed": ({ links, media }) => t("the topology has {links} links and {media} media now", { links, media }),
  "secret.stored": ({ tenant, name }) =>
    t("secret {name} of tenant {tenant}", { name: plain(name), tenant: plain(tenant) }),
  "secret.removed": ({ tenant, name }) =>
    t("secret {name} of tenant {tenant}", { name: plain(name), tenant: plain(tenant) }),
  "session.begun": ({ holder, role }) => t("session of {name}, {role}", { name: plain(holder), role: t(role) }),
  "session.ended": ({ holder, role }) => t("session of {name}, {role}", { name: plain(holder), role: t(role) }),
  "token.created": ({ name, role }) => t("token {name}, {role}", { name: plain(name), role: t(role) }),
  "token.revoked": ({ name, role }) => t("token {name}, {role}", { name: plain(name), role: t(role) }),
};

/** @param {string | null} name of a checkpoint @param {string} on @param {string} source both are nodes */
const begun = (name, on, source) =>
  name
    ? tx("begins on {node} from checkpoint {name} of {source}", {
        name: plain(name),
        node: node(on),
        source: plain(source),
      })
    : tx("begins on {node} without a checkpoint", { node: node(on) });

/** Why flows were revised. @type {Record<string, string>} */
const CAUSES = {
  link: "flows rerouted, since a link changed",
  room: "flows given more, since there is room",
  goals: "flows set for the application's deadlines",
  suspended: "flows given up, since the job is suspended",
  resumed: "flows given back, since the job goes on",
};

const jobLink = (/** @type {string} */ id) =>
  html`<a href=${`#/jobs/${encodeURIComponent(id)}`}><code>${plain(id)}</code></a>`;

/** Names and values, for a type that is not known here. @param {any} data */
const facts = (data) =>
  Object.entries(data ?? {})
    .filter(([, value]) => ["string", "number", "boolean"].includes(typeof value) && value !== "")
    .map(([key, value]) => `${key}=${plain(value)}`)
    .join(" ");

/** @param {Happened} event */
export function eventText({ type, data }) {
  try {
    if (SAY[type]) return SAY[type](data);
    if (type.startsWith("job.")) return jobChanged(data);
    if (type.startsWith("allocation.")) return allocationChanged(data);
  } catch {
    // of another version of the manager
  }
  return facts(data);
}

/** @param {Happened} event @returns {string} all that the filter looks at */
export const eventWords = ({ id, type, subject, actor, data }) =>
  `${id} ${type} ${subject} ${actor ?? ""} ${JSON.stringify(data)}`;
