/** GPU cards of a node: each a bar of the shares that jobs hold, and the same in words. */
import { html, memory, Name, t, To } from "../show.js";
import { Part } from "./facts.js";

/** @typedef {Record<string, any>} Card a CardView of the API */
/** @typedef {{job: string, name: string, share: number, memory: number}} Held `job`: empty for others' and for what is free */

export const WHOLE = 1000; // thousandths of a card
const SHADES = 4; // of jobs beside each other
const HEIGHT = 12;

/** @param {Card} card @returns {{jobs: Held[], others: Held, free: Held}} `others`: what jobs hold that are not shown */
export function sharesOf({ holders, allocated = 0, memory_allocated: held = 0, memory: whole }) {
  /** @type {Held[]} */
  const jobs = holders ?? [];
  const sum = (/** @type {"share" | "memory"} */ what) => jobs.reduce((total, each) => total + each[what], 0);
  const rest = (/** @type {number} */ share, /** @type {number} */ bytes) => ({
    job: "",
    name: "",
    share: Math.max(0, share),
    memory: Math.max(0, bytes),
  });
  return {
    jobs,
    others: rest(allocated - sum("share"), held - sum("memory")),
    free: rest(WHOLE - allocated, whole - held),
  };
}

/** @param {string} kind @returns {string} whether several jobs may have a part of it each */
function kindText(kind) {
  if (kind === "counted") return t("can be shared: counted, not enforced");
  if (kind === "mps") return t("can be shared: co-operative, by MPS");
  if (kind === "hami") return t("can be shared: co-operative, by HAMi-core");
  return t("given whole only");
}

/** @param {Held} held @param {boolean} known whether the card's memory is @returns {string} */
const amountText = ({ share, memory: bytes }, known) =>
  share >= WHOLE ? t("all of it") : known ? `${share}m, ${memory(bytes)}` : `${share}m`;

/** @param {{shade: string}} props */
const Swatch = ({ shade }) =>
  html`<svg viewBox="0 0 10 10" aria-hidden="true"><rect class=${shade} width="10" height="10" /></svg>`;

/** @param {{card: Card}} props */
function CardBar({ card }) {
  const { jobs, others, free } = sharesOf(card);
  const known = card.memory > 0;
  /** @type {[string, Held, any][]} */
  const parts = [
    ...jobs.map((held, place) => /** @type {[string, Held, any]} */ ([`share-${place % SHADES}`, held, html`<${To} path=${["jobs", held.job]}>${held.name}<//>`])),
    ...(others.share > 0 ? [/** @type {[string, Held, any]} */ (["share-others", others, t("other tenants' jobs")])] : []),
    ...(free.share > 0 ? [/** @type {[string, Held, any]} */ (["share-free", free, t("free")])] : []),
  ];
  let x = 0;
  return html`<li>
    <p><${Name}>${[card.model, known && memory(card.memory)].filter(Boolean).join(", ") || card.id}<//> <span class="quiet">${kindText(card.shareable)}</span>
      <br /><code class="quiet"><${Name}>${card.id}<//></code></p>
    <svg class="card-bar" viewBox="0 0 ${WHOLE} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${parts.map(([shade, { share }]) => {
      const rect = html`<rect class=${shade} x=${x} width=${share} height=${HEIGHT} />`;
      x += share;
      return rect;
    })}</svg>
    <ul class="card-shares">${parts.map(
      ([shade, held, who]) => html`<li><${Swatch} shade=${shade} /> ${who} <span class="quiet">${amountText(held, known)}</span></li>`,
    )}</ul>
  </li>`;
}

/** @param {{cards: Card[]}} props */
export function NodeCards({ cards }) {
  if (!cards.length) return null;
  return html`<${Part} title=${t("Cards")} note=${cards.length}>
    <ul class="cards">${cards.map((card) => html`<${CardBar} key=${card.id} card=${card} />`)}</ul><//>`;
}
