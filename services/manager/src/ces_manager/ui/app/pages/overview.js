/** The whole cluster at a glance: every figure leads to its cause. It needs no other module, as the first page. */
import { useEffect, useState } from "../../vendor/preact-hooks.js";
import { call } from "../client.js";
import { capacityOf, counts, eventsSince, jobs, links, nodes, shortfalls, UNDER_WAY, useBusiest, waits } from "../live.js";
import {
  Bars,
  cpu,
  DASH,
  Head,
  href,
  html,
  memory,
  Name,
  percent,
  plain,
  rate,
  since,
  State,
  STATES,
  t,
  tn,
  To,
  tx,
} from "../show.js";

/** @typedef {import("../live.js").Item} Item */
/** @typedef {Record<string, any>} Audit as docs/api.md has it */

const AUDIT_S = 60; // in which another audit shows
const SHOWN = 8; // of what is busiest, and of names in a group

/** @param {string} state @returns {number} where it stands; those that are over come last */
const placeOf = (state) => (UNDER_WAY.includes(state) ? UNDER_WAY.indexOf(state) : UNDER_WAY.length);

/** Jobs by state. */
function Jobs() {
  const found = [...counts.value].filter(([, number]) => number > 0);
  found.sort(([one], [other]) => placeOf(one) - placeOf(other));
  const now = found.filter(([state]) => UNDER_WAY.includes(state));
  const total = now.reduce((sum, [, number]) => sum + number, 0);
  const list = (/** @type {[string, number][]} */ some) =>
    some.map(
      ([state, number]) =>
        html`<li><a href=${`${href("jobs")}?state=${state}`}><${State} state=${state} /> <b>${number}</b></a></li>`,
    );
  return html`<section class="panel jobs">
    <h2><a href=${href("jobs")}>${t("Jobs")}</a> <small>${tn(total, "1 is not over", "{n} are not over")}</small></h2>
    ${
      total > 0 &&
      html`<div class="stack" aria-hidden="true">${now.map(
        ([state, number]) => html`<i
      class=${STATES[state]?.[1]} style=${{ flexGrow: number }}></i>`,
      )}</div>`
    }
    <ul class="figures">${list(now)}</ul>
    ${
      found.length > now.length &&
      html`<ul class="figures quiet">
      ${list(found.slice(now.length))}</ul>`
    }
    ${
      found.length === 0 &&
      html`<p class="quiet">
      ${tx("No jobs yet. {command} submits one.", { command: html`<code>ces submit FILE</code>` })}</p>`
    }
    <${Oldest} />
  </section>`;
}

/** The job that waits longest, and why. */
function Oldest() {
  let oldest = "";
  for (const [id, job] of jobs.value) {
    if (waits(job) && (!oldest || job.submitted_at < /** @type {Item} */ (jobs.value.get(oldest)).submitted_at))
      oldest = id;
  }
  const [told, setTold] = useState({ id: "", reason: "" });
  useEffect(() => {
    if (!oldest) return;
    call(`/v1/jobs/${oldest}`)
      .then((job) => setTold({ id: oldest, reason: job.waiting?.text ?? "" }))
      .catch(() => {}); // the job's own page says why it cannot be read
  }, [oldest]);
  const job = jobs.value.get(oldest);
  if (!job) return null;
  return html`<p class="oldest">
    ${t("Waits longest:")} <${To} path=${["jobs", oldest]}>${job.name}<//> <span class="quiet">
      ${t("since {span}", { span: since(job.submitted_at) })}</span>
    ${
      told.id === oldest &&
      told.reason &&
      html`<br />${tx("waits: {reason}", {
        reason: html`<bdi lang="en">
      ${plain(told.reason)}</bdi>`,
      })}`
    }
    <br /><a href=${href("queue")}>${t("The queue")}</a>
  </p>`;
}

/** @param {Audit} audit @returns {string} which events it read */
export const spanText = (audit) =>
  audit.last == null ? t("no events") : t("events {first} to {last}", { first: audit.first, last: audit.last });

/** @param {{audit: Audit}} props whether anything was found */
export const Outcome = ({ audit: { findings_total: total, limited } }) =>
  total
    ? html`<${State} state="failed" word=${tn(total, "1 finding", "{n} findings")} />`
    : html`<${State} state="succeeded"
        word=${limited ? t("nothing was found about your jobs") : t("every promise kept")} />`;

/** The last audit on the overview, which leads to it. */
function LastAudit() {
  const [last, setLast] = useState(/** @type {Audit | null | undefined} */ (undefined));
  useEffect(() => {
    const look = () => {
      if (document.visibilityState !== "visible") return;
      call("/v1/audits?limit=1")
        .then(({ items }) => setLast(items[0] ?? null))
        .catch(() => {}); // the page of audits says why they cannot be read
    };
    look();
    const timer = setInterval(look, AUDIT_S * 1000);
    return () => clearInterval(timer);
  }, []);
  if (last === undefined) return null;
  const page = href("audit");
  const later = eventsSince(last?.last ?? null);
  return html`<p class="oldest">${t("Last audit:")} ${
    last
      ? html`<a href=${page}><${Outcome} audit=${last} /></a>, ${spanText(last)}, ${t("{span} ago", {
          span: since(last.began_at),
        })}${later != null && `, ${tn(later, "1 event since", "{n} events since")}`}`
      : html`<a href=${page}>${t("none yet")}</a>`
  }</p>`;
}

/** Things in the same trouble: some of them by name, if no group above does. @param {Set<string>} named there */
const groupWith = (named) => (/** @type {[string, string, any[][], string]} */ [state, word, found, to]) => {
  if (!found.length) return null;
  const fresh = found.filter(([key]) => !named.has(key));
  for (const [key] of fresh.slice(0, SHOWN)) named.add(key);
  const [above, more] = [found.length - fresh.length, fresh.length - SHOWN];
  return html`<li>
    <a href=${to}><${State} state=${state} word=${word} /> <b>${found.length}</b></a>
    <p>${fresh.slice(0, SHOWN).map(([, link]) => link)} ${more > 0 && t("and {n} more", { n: more })}
      ${above > 0 && html`<span class="quiet">${t("{n} named above", { n: above })}</span>`}</p>
  </li>`;
};

/** What somebody should look at. */
function Attention() {
  const some = (/** @type {(node: Item) => boolean} */ which) =>
    [...nodes.value].filter(([, node]) => which(node)).map(([name]) => [name, html`<${To} path=${["nodes", name]}>${name}<//>`]);
  const wires = (/** @type {(link: Item) => boolean} */ which) =>
    [...links.value].filter(([, link]) => which(link)).map(([key, link]) => [key, html`<${LinkName} link=${link} />`]);
  const short = [...shortfalls.value].map(([number, { job, name, src, dst }]) => {
    const place = `${href("jobs", job)}?flow=${encodeURIComponent(`${src}>${dst}`)}`;
    return [`flow ${number}`, html`<a href=${place}><${Name}>${`${name}: ${src} → ${dst}`}<//></a>`];
  });
  const [node, link] = [href("nodes"), href("links")];
  /** @type {[string, string, any[][], string][]} state, what it is called, what is in it, and where all of it is */
  const groups = [
    ["unreachable", t("Nodes unreachable"), some((each) => each.state !== "ready"), `${node}?state=unreachable`],
    ["contested", t("Nodes contested"), some((each) => Boolean(each.warning)), `${node}?state=contested`],
    ["down", t("Links down"), wires((each) => each.state !== "up"), `${link}?state=down`],
    ["slow", t("Flows carried at less than was given"), short, `${link}?state=short`],
    [
      "slow",
      t("Links slower than configured"),
      wires((each) => each.state === "up" && capacityOf(each) < each.bandwidth),
      `${link}?state=slow`,
    ],
    ["cordoned", t("Nodes cordoned"), some((each) => each.cordoned), `${node}?state=cordoned`],
    ["reclaimed", t("Nodes reclaimed by their owners"), some((each) => each.reclaimed), `${node}?state=reclaimed`],
  ];
  const well = nodes.value.size
    ? html`<${State} state="succeeded" word=${t("All nodes are ready and take work, all links are up.")} />`
    : t("No node has joined yet.");
  const quiet = groups.every(([, , names]) => !names.length);
  return html`<section class="panel attention">
    <h2>${t("Attention")}</h2>
    ${quiet ? html`<p>${well}</p>` : html`<ul class="groups">${groups.map(groupWith(new Set()))}</ul>`}
    <${LastAudit} />
  </section>`;
}

/** @param {{link: Item}} props */
const LinkName = ({ link }) =>
  html`<a href=${href("links", link.src, link.dst)}><${Name}>${link.src}<//> › <${Name}>${link.dst}<//></a>`;

/** What there is in all, what is committed of it and what is used. */
function Totals() {
  const sum = { cpu: [0, 0, 0], memory: [0, 0, 0], gpu: [0, 0, 0], bandwidth: [0, 0, 0] };
  const add = (/** @type {number[]} */ to, /** @type {number[]} */ amounts) =>
    amounts.forEach((amount, index) => (to[index] += amount ?? 0));
  for (const node of nodes.value.values()) {
    add(sum.cpu, [node.cpu, node.cpu_allocated, node.cpu_used]);
    add(sum.memory, [node.memory, node.memory_allocated, node.memory_used]);
    add(sum.gpu, [node.gpu, node.gpu_allocated]);
  }
  for (const link of links.value.values()) add(sum.bandwidth, [capacityOf(link), link.reserved, link.used]);
  const row = (
    /** @type {string} */ name,
    /** @type {string} */ place,
    /** @type {number[]} */ [whole, committed, used],
    /** @type {(n: number) => string} */ show,
    counted = true,
  ) =>
    whole > 0 &&
    html`<tr>
      <th scope="row"><a href=${place}>${name}</a> <small>${show(whole)}</small></th>
      <td class="bar"><${Bars} whole=${whole} committed=${committed} used=${counted ? used : null} /></td>
      <td class="end">${percent(committed, whole)}</td><td class="end">${counted ? percent(used, whole) : ""}</td>
    </tr>`;
  return html`<section class="panel capacity">
    <h2><a href=${href("nodes")}>${t("Capacity")}</a> <small>
      ${tn(nodes.value.size, "1 node", "{n} nodes")}, ${tn(links.value.size, "1 link", "{n} links")}</small></h2>
    <table class="totals" hidden=${!nodes.value.size && !links.value.size}>
      <thead><tr><th scope="col">${t("Resource")}</th><td></td><th scope="col" class="end">${t("Committed")}</th>
        <th scope="col" class="end">${t("Used")}</th></tr></thead>
      <tbody>
        ${row(t("CPU"), `${href("nodes")}?sort=-cpu`, sum.cpu, cpu)}
        ${row(t("Memory"), `${href("nodes")}?sort=-memory`, sum.memory, memory)}
        ${row(t("GPU"), `${href("nodes")}?sort=-gpu`, sum.gpu, String, false)}
        ${row(t("Links"), `${href("links")}?sort=-reserved`, sum.bandwidth, rate)}
      </tbody>
    </table>
    <p class="legend quiet"><i class="committed"></i>${t("allocated or reserved")} <i class="used"></i>${t("used now")}
      </p>
    ${
      [sum.cpu, sum.memory].some(([whole, , used]) => used > whole * 1.05) &&
      html`<p class="quiet">${t("Used is what whole devices use, also for what CES does not run.")}</p>`
    }
  </section>`;
}

const share = (/** @type {number | null | undefined} */ part, /** @type {number} */ whole) =>
  whole > 0 ? (part ?? 0) / whole : 0;

function BusiestLinks() {
  const keys = useBusiest(links.value, (link) =>
    Math.max(share(link.reserved, capacityOf(link)), share(link.used, capacityOf(link))),
  );
  return html`<section class="panel links">
    <h2><a href=${`${href("links")}?sort=-reserved`}>${t("Busiest links")}</a></h2>
    <table class="busiest" hidden=${!keys.length}>
      <thead><tr><th scope="col">${t("Link")}</th><td></td><th scope="col" class="end">${t("Reserved")}</th>
        <th scope="col" class="end">${t("Used")}</th></tr></thead>
      <tbody>${keys.map((key) => {
        const link = /** @type {Item} */ (links.value.get(key));
        const whole = capacityOf(link);
        return html`<tr key=${key}>
          <th scope="row"><${LinkName} link=${link} /></th><td class="bar">
            <${Bars} whole=${whole} committed=${link.reserved} used=${link.used} /></td>
          <td class="end" title=${rate(link.reserved)}>${percent(link.reserved, whole)}</td>
            <td class="end" title=${rate(link.used)}>${link.used == null ? DASH : percent(link.used, whole)}</td>
        </tr>`;
      })}</tbody>
    </table>
    ${!keys.length && html`<p class="quiet">${t("Nothing is reserved or used.")}</p>`}
  </section>`;
}

function BusiestNodes() {
  const kinds = /** @type {const} */ (["cpu", "memory", "gpu"]);
  const keys = useBusiest(
    nodes.value,
    (node) =>
      Math.max(...kinds.map((kind) => share(node[`${kind}_allocated`], node[kind]))) +
      share(node.cpu_used, node.cpu) / 1000,
  );
  return html`<section class="panel nodes">
    <h2><a href=${`${href("nodes")}?sort=-cpu`}>${t("Busiest nodes")}</a></h2>
    <table class="busiest" hidden=${!keys.length}>
      <thead><tr><th scope="col">${t("Node")}</th>${[t("CPU"), t("Memory")].map(
        (name) => html`<td></td>
        <th scope="col" class="end">${name}</th>`,
      )}<th scope="col" class="end">${t("GPU")}</th></tr></thead>
      <tbody>${keys.map((key) => {
        const node = /** @type {Item} */ (nodes.value.get(key));
        const cells = (/** @type {string} */ kind) =>
          html`<td class="bar"><${Bars} whole=${node[kind]} committed=${node[`${kind}_allocated`]}
            used=${node[`${kind}_used`]} /></td><td class="end">${percent(node[`${kind}_allocated`], node[kind])}</td>`;
        return html`<tr key=${key}><th scope="row"><${To} path=${["nodes", key]}>${key}<//></th>${cells("cpu")}
          ${cells("memory")}<td class="end">${node.gpu ? `${node.gpu_allocated}/${node.gpu}` : DASH}</td></tr>`;
      })}</tbody>
    </table>
    ${!keys.length && html`<p class="quiet">${t("Nothing is allocated.")}</p>`}
  </section>`;
}

export default function Overview() {
  return html`<${Head} title=${t("Overview")} />
    <div class="panels"><${Jobs} /><${Attention} /><${Totals} /><${BusiestLinks} /><${BusiestNodes} /></div>`;
}
