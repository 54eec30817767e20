/** The policy that decides, where it evolves: its versions, what was found of them, and what has happened. */
import { useAnswer } from "../parts/answers.js";
import { Facts, Part } from "../parts/facts.js";
import { Costs, GainBar } from "../parts/policy_gain.js";
import { Rows } from "../parts/rows.js";
import { DASH, Head, html, moment, Name, plain, ProblemBox, State, t, tx } from "../show.js";

const EVERY_S = 15; // in which a change shows

/** @typedef {Record<string, any>} Version a PolicyVersion of the API */
/** @typedef {{at: string, what: string, version: string, why: string}} Change */

/** @param {{role: string}} props */
function Role({ role }) {
  const looks = /** @type {Record<string, [string, string]>} */ ({
    live: ["ready", t("is live")],
    shadow: ["queued", t("shadow")],
    candidate: ["pending", t("candidate")],
    "passed over": ["stopped", t("passed over")],
    "taken back": ["stopped", t("taken back")],
  });
  const [state, word] = looks[role] ?? ["", role];
  return html`<${State} state=${state} word=${word} />`;
}

/** @param {{of: Version}} props */
function Found({ of: { role, gain, against } }) {
  const over = role === "live" ? t("over the shadow") : t("over the live one");
  return html`<${GainBar} gain=${gain} />${gain && html` <small>${over}</small>`}
    ${against.length > 0 && html`<span class="why"><bdi lang="en">${plain(against.join("; "))}</bdi></span>`}`;
}

/** @returns {import("../parts/rows.js").Column<Version>[]} */
const columns = () => [
  { id: "version", title: t("Version"), track: "minmax(5em, .4fr)", by: ({ name }) => name, cell: ({ name }) => html`<${Name}>${name}<//>` },
  { id: "role", title: t("State"), track: "minmax(7em, .6fr)", by: ({ role }) => role, cell: ({ role }) => html`<${Role} role=${role} />` },
  {
    id: "gain",
    title: t("Gain"),
    track: "minmax(16em, 2fr)",
    full: true,
    by: ({ gain }) => gain?.mean ?? -1,
    cell: (version) => html`<${Found} of=${version} />`,
  },
  { id: "slower", title: t("Its slowest in a hundred"), track: "minmax(9em, .8fr)", cell: ({ gain }) => html`<${Costs} gain=${gain} />` },
  {
    id: "made",
    title: t("Made"),
    track: "minmax(8em, .7fr)",
    by: ({ made_at: at }) => at,
    cell: ({ made_at: at }) => moment(at, true),
  },
  {
    id: "learned",
    title: t("Learned from"),
    track: "minmax(10em, 1fr)",
    wide: true,
    cell: ({ decisions, synthetic, learned_until: until }) =>
      t("{decisions} logged, {synthetic} drawn; until {time}", { decisions, synthetic, time: moment(until, true) }),
  },
  { id: "policy", title: t("Policy"), track: "minmax(8em, 1fr)", wide: "wider", cell: ({ policy }) => html`<${Name}>${policy}<//>` },
];

/** @returns {import("../parts/rows.js").Column<Change & {place: number}>[]} */
const changeColumns = () => [
  { id: "time", title: t("Time"), track: "minmax(8em, .6fr)", cell: ({ at }) => moment(at, true) },
  { id: "version", title: t("Version"), track: "minmax(5em, .4fr)", cell: ({ version }) => html`<${Name}>${version}<//>` },
  { id: "what", title: t("Change"), track: "minmax(7em, .6fr)", cell: ({ what }) => t(what) },
  { id: "why", title: t("Why"), track: "minmax(14em, 2fr)", full: true, cell: ({ why }) => html`<bdi lang="en">${plain(why)}</bdi>` },
];

/** @param {{name: string}} props */
const VersionName = ({ name }) => (name === "base" ? t("the one it was set up with") : html`<${Name}>${name}<//>`);

/** @param {{data: Record<string, any>}} props */
function Known({ data }) {
  const { live, former, frozen, promoted_at: promoted, solver, versions, changes } = data;
  return html`
    <${Facts} items=${[
      [t("Decides"), html`<${VersionName} name=${live} />`],
      former && [t("Former one"), html`<${VersionName} name=${former} />`],
      promoted && [t("Last promotion"), moment(promoted, true)],
      [t("Solver"), solver ? html`<${Name}>${solver}<//>` : DASH],
      frozen && [t("Frozen"), t("nothing is promoted, and nothing taken back by itself")],
    ]} />
    <${Part} title=${t("Versions")} note=${versions.length}>
      <p class="quiet">${t("Gains in the objective on the same decisions, cut off at 0.1 either way; the interval of 95 % holds at all times at once. A candidate may be promoted once all of it lies above zero and nothing else speaks against it.")}</p>
      <${Rows} caption=${t("Versions")} columns=${columns()} items=${versions} param="versions"
        keyOf=${(/** @type {Version} */ { name }) => name} empty=${tx("There is none yet: {command} makes one.", { command: html`<code>ces evolve train</code>` })} />
    <//>
    ${changes.length > 0 && html`<${Part} title=${t("What has happened")}>
      <${Rows} caption=${t("What has happened")} columns=${changeColumns()} param="changes" empty=""
        items=${changes.map((/** @type {Change} */ change, /** @type {number} */ place) => ({ ...change, place }))}
        keyOf=${(/** @type {{place: number}} */ { place }) => String(place)} /><//>`}`;
}

export default function Policy() {
  const { data, problem, again } = useAnswer("/v1/policy", { every: EVERY_S });
  const none = data && !data.evolves && !data.remark;
  return html`<${Head} title=${t("Policy")} />
    <${ProblemBox} problem=${problem} again=${again} />
    ${!data && !problem && html`<p class="quiet">${t("Loading…")}</p>`}
    ${data?.remark && html`<${ProblemBox} problem=${{ title: plain(data.remark) }} />`}
    ${none && html`<div class="empty">${tx("No policy evolves here: {setting} names a folder in which the scheduler logs what it decides, for a better one to learn from.", { setting: html`<code>CES_EVOLUTION</code>` })}</div>`}
    ${data?.evolves && !data.remark && html`<${Known} data=${data} />`}`;
}
