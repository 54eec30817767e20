/** One job: what becomes of it and why, its tasks and flows, its plan, its history and what its workers print. */
import { call, may, route } from "../client.js";
import { jobs, OVER, waits } from "../live.js";
import { useAnswer } from "../parts/answers.js";
import { confirmed } from "../parts/dialog.js";
import { Elsewhere } from "../parts/elsewhere.js";
import { Actions, Facts, Part } from "../parts/facts.js";
import { Flows } from "../parts/flows.js";
import { jobFacts } from "../parts/job_facts.js";
import { JobMap } from "../parts/job_map.js";
import { Logs } from "../parts/logs.js";
import { MoveList } from "../parts/moves.js";
import { Plan } from "../parts/plan.js";
import { waitingText } from "../parts/reasons.js";
import { Tasks } from "../parts/tasks.js";
import { Timeline } from "../parts/timeline.js";
import { Trace } from "../parts/trace.js";
import { Training } from "../parts/training.js";
import { clock, Head, href, html, plain, ProblemBox, span, State, t, tn } from "../show.js";

const EVERY_S = 5;

/** @param {any} job @returns {any[]} */
function actionsOf(job) {
  if (!may("submitter") || OVER.includes(job.state)) return [];
  const post = (/** @type {string} */ word) => () => call(`${route`/v1/jobs/${job.id}`}/${word}`, { method: "POST" });
  const cancel = async () => {
    const content = html`<p>
      ${t("Its workers are stopped, and all that it holds is released. This cannot be taken back.")}</p>`;
    const sure = await confirmed(t("Cancel {job}?", { job: plain(job.name) }), content, t("Cancel the job"));
    return sure ? call(route`/v1/jobs/${job.id}`, { method: "DELETE" }) : undefined;
  };
  return [
    job.state === "running" && { text: t("Pause"), act: post("pause") },
    job.state === "paused" && { text: t("Resume"), act: post("resume") },
    { text: t("Cancel…"), act: cancel, danger: true },
  ];
}

/** Why it waits, or what happened to it. @param {{job: any}} props */
function Why({ job }) {
  const waiting = waits(job) && (job.waiting || job.queue_status);
  const reason = job.reason && job.state !== "succeeded" && job.state !== "elsewhere" && !(waiting && job.state === "queued");
  if (!waiting && !reason) return null;
  return html`<div class="why-box" role="status">
    ${reason && html`<p><bdi lang="en">${plain(job.reason)}</bdi></p>`}
    ${waiting && html`<p>${job.name} ${waitingText(job.waiting, job.queue_status)}</p>`}
  </div>`;
}

/** @param {any} job @returns {string} how long it has been going on, and how often it began again */
function ageText(job) {
  const end = OVER.includes(job.state) && job.finished_at ? Date.parse(job.finished_at) : clock.value;
  return [
    span((end - Date.parse(job.started_at ?? job.submitted_at)) / 1000),
    job.attempt > 1 && t("attempt {n}", { n: job.attempt }),
    job.restarts > 0 && tn(job.restarts, "1 restart", "{n} restarts"),
  ]
    .filter(Boolean)
    .join(", ");
}

/** @param {{path: string[]}} props */
export default function Job({ path: [, id] }) {
  const live = jobs.value.get(id);
  const version = `${live?.state} ${live?.attempt} ${live?.restarts} ${live?.reason} ${live?.size}`;
  const { data: job, problem, again } = useAnswer(route`/v1/jobs/${id}`, { every: live ? EVERY_S : 0, version });
  const placed = Boolean(job?.placement.some((/** @type {any} */ task) => task.node));
  const { data: flows, problem: flowsProblem } = useAnswer(job ? route`/v1/jobs/${id}/flows` : null, {
    every: job?.state === "running" ? EVERY_S : 0,
    version,
  });
  if (!job)
    return html`<${Head} title=${live?.name ?? id} />${
      problem
        ? html`<${ProblemBox} problem=${problem}
      again=${again} />`
        : html`<p class="quiet">${t("Loading…")}</p>`
    }`;
  const over = OVER.includes(job.state);
  const states = `${version} ${job.placement.map((/** @type {any} */ task) => task.state).join()}`;
  return html`
    <${Head} title=${job.name}><${State} state=${job.state} /> <span class="quiet">${ageText(job)}
      </span> <code class="quiet">${plain(job.id)}</code>
      ${placed && !over && html`<a href=${`${href("map")}?job=${job.id}`}>${t("on the map")}</a>`}<//>
    <${ProblemBox} problem=${problem} again=${again} />
    <${Why} job=${job} />
    <${Actions} actions=${actionsOf(job)} done=${again} />
    <${Facts} items=${jobFacts(job)} />
    ${(job.region || (job.regions.length > 0 && waits(job))) && html`<${Elsewhere} job=${job} />`}
    ${
      !over &&
      flows &&
      html`<${Part} title=${placed ? t("Tasks and flows on the map") : t("Tasks and flows")}>
        <${JobMap} tasks=${job.placement} flows=${flows.flows} at=${flows.at} /><//>`
    }
    <${Part} title=${t("Tasks")} note=${job.tasks}>
      ${!placed && !job.region && html`<p class="quiet">${t("not placed yet")}</p>`}
      <${Tasks} tasks=${job.placement} />
    <//>
    ${(placed || job.attempt > 1 || job.started_at) && html`<${Training} id=${id} state=${job.state} over=${over} />`}
    <${Part} title=${t("Flows")} note=${job.flows.length}>
      <${ProblemBox} problem=${flowsProblem} />
      ${flows && html`<${Flows} view=${flows} />`}
    <//>
    <${Part} title=${t("Plan")}>${
      placed || job.attempt > 1
        ? html`<${Plan} id=${id}
      attempt=${`${job.attempt} ${placed}`} tasks=${job.placement} look=${job.last_look} runs=${job.state === "running"} />`
        : html`<p class="quiet">${job.region ? t("Its plan is that region's own.") : t("There is no plan yet.")}</p>`
    }<//>
    ${job.moves?.length > 0 && html`<${Part} title=${t("Moves")} note=${job.moves.length}><${MoveList} moves=${job.moves} /><//>`}
    <${Part} title=${t("Where its time went")}><${Trace} id=${id} version=${version} /><//>
    <${Part} title=${t("History")}><${Timeline} id=${id} version=${states} /><//>
    <${Part} title=${t("Log")}><${Logs} id=${id} tasks=${job.placement} away=${Boolean(job.committed_at)} over=${over} /><//>
  `;
}
