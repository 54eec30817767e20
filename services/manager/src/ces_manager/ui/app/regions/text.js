/** What one region tells of itself, in words and small pictures, alike wherever it is shown. */
import { Amount } from "../parts/network.js";
import { Names } from "../parts/names.js";
import { cpu, DASH, href, html, memory, Name, plain, rate, span, State, t, tn } from "../show.js";

/** @typedef {Record<string, any>} Region a RegionView of the API */
/** @typedef {{model: string, rooms: number[]}} CardRoom how many cards have how much free */

const [WIDTH, HEIGHT] = [10, 36]; // of a bar's own scale
/** Cores free, and thousandths of a card, in order of the buckets. */
const CORES = ["< 1", "1–2", "2–4", "4–8", "8–16", "16–32", "≥ 32"];
const SHARES = ["", "< 250m", "≥ 250m", "≥ 500m", "≥ 750m", ""];
const PARTS = ["", "< ¼", "≥ ¼", "≥ ½", "≥ ¾", ""]; // the same where there is little room

/** The state, since when nothing was heard, and why nothing is placed there. @param {{region: Region}} props */
export function RegionState({ region: { state, age_s: age, remark } }) {
  return html`<${State} state=${state} word=${state === "here" ? t("this region") : undefined} />${
    age != null && state !== "here" && html` <small>${t("{span} ago", { span: span(age) })}</small>`
  }${remark && html` <span class="why"><bdi lang="en">${plain(remark)}</bdi></span>`}`;
}

/** @param {{name: string}} props */
export const RegionTo = ({ name }) => html`<a href=${href("regions", name)}><${Name}>${name}<//></a>`;

/** @param {Region} sums a summary @returns {[string, any][]} what is taken of what there is */
export const takenOf = ({ free, total }) => [
  [t("CPU"), html`<${Amount} whole=${total.cpu} committed=${total.cpu - free.cpu} show=${cpu} />`],
  [t("Memory"), html`<${Amount} whole=${total.memory} committed=${total.memory - free.memory} show=${memory} />`],
  [t("GPU"), html`<${Amount} whole=${total.gpu} committed=${total.gpu - free.gpu} show=${String} />`],
];

/** @param {Region} sums @returns {string} what one node has free at most */
export const largestText = ({ largest }) =>
  [cpu(largest.cpu), memory(largest.memory), largest.gpu > 0 && t("{n} GPU", { n: largest.gpu })].filter(Boolean).join(", ");

/** @param {Region} sums @returns {string} how many wait, and how long the last of them is expected to */
export function queueText({ queued, wait_s: wait }) {
  if (!queued) return t("nobody waits");
  const jobs = tn(queued, "1 job waits", "{n} jobs wait");
  return wait == null
    ? t("{jobs}; nobody knows until when", { jobs })
    : t("{jobs}; the last starts in about {span}", { jobs, span: span(wait) });
}

/** @param {{region: Region}} props whose jobs of this region may run there */
export function Accepts({ region: { state, accepts } }) {
  if (state === "here") return DASH;
  return accepts.length ? html`<${Names} names=${accepts} />` : t("nobody");
}

/** The block of its workers' addresses, and whose blocks meet it. @param {{region: Region}} props */
export function Block({ region: { block, overlaps } }) {
  if (!block) return DASH;
  return html`<code>${plain(block)}</code>${
    overlaps.length > 0 &&
    html` <${State} state="failed" word=${t("overlaps that of {regions}", { regions: overlaps.map(plain).join(", ") })} />`
  }`;
}

/** @param {string[]} words @returns {(place: number) => string} of a card's bucket */
const shareLabel = (words) => (place) => (place === 0 ? t("full") : place === words.length - 1 ? t("whole") : words[place]);

/** @param {CardRoom} room @returns {string} such as `T4: 2 whole, 1 ≥ 500m` */
export const roomText = ({ model, rooms }) =>
  `${plain(model) || t("model unknown")}: ${rooms
    .map((count, place) => count > 0 && `${count} ${shareLabel(SHARES)(place)}`)
    .filter(Boolean)
    .reverse()
    .join(", ")}`;

/** A border link. @param {{total: number, free: number, up: boolean}} border @returns {string} what flows may still reserve on it */
export const borderText = ({ total, free, up }) =>
  up ? t("{free} of {total} free", { free: rate(free), total: rate(total) }) : t("down");

/** @param {Region | undefined} from @param {string} to @returns {any} the border link that leads there, where one is known */
export const borderOf = (from, to) =>
  (from?.summary?.borders ?? []).find((/** @type {Region} */ border) => border.region === to);

/** The border links of a region. @param {{sums: Region}} props */
export const Borders = ({ sums }) =>
  html`<ul>${sums.borders.map(
    (/** @type {any} */ border) => html`<li><${RegionTo} name=${border.region} /> <span class="quiet">${borderText(border)}</span></li>`,
  )}</ul>`;

/** Cards by how much of each is free, the whole ones first, as the text says it. @param {{room: CardRoom}} props */
export function RoomBar({ room: { rooms } }) {
  const total = rooms.reduce((sum, count) => sum + count, 0);
  let x = 0;
  return html`<svg class="room-bar" viewBox="0 0 ${Math.max(1, total)} 8" preserveAspectRatio="none" aria-hidden="true">
    ${rooms.map((count, place) => ({ count, place })).reverse().map(({ count, place }) => {
      const rect = count > 0 && html`<rect class=${`room-${place}`} x=${x} width=${count} height="8" />`;
      x += count;
      return rect;
    })}</svg>`;
}

/** A column for each bucket. @param {{counts: number[], label: (place: number) => string}} props */
function Bins({ counts, label }) {
  const most = Math.max(1, ...counts);
  return html`<ol class="bins">${counts.map((count, place) => {
    const height = (HEIGHT * count) / most;
    return html`<li><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">
      <rect y=${HEIGHT - height} width=${WIDTH} height=${height} />
      <rect class="axis" y=${HEIGHT - 1} width=${WIDTH} height="1" /></svg>
      <b>${count}</b> <small>${label(place)}</small></li>`;
  })}</ol>`;
}

/** @param {{sums: Region}} props */
export const CoreRooms = ({ sums }) => html`<${Bins} counts=${sums.rooms} label=${(/** @type {number} */ place) => CORES[place]} />`;

/** @param {{sums: Region}} props */
export const CardRooms = ({ sums }) =>
  sums.cards.map(
    (/** @type {CardRoom} */ { model, rooms }) => html`<div><p class="model">${model ? html`<${Name}>${model}<//>` : t("model unknown")}</p>
      <${Bins} counts=${rooms} label=${shareLabel(PARTS)} /></div>`,
  );
