/** One directed link: what it could carry, what is promised on it, what it carries. */
import { useState } from "../../vendor/preact-hooks.js";
import { call, may, route } from "../client.js";
import { capacityOf, links, media, pictureAt } from "../live.js";
import { useAnswer } from "../parts/answers.js";
import { Actions, Facts, Part } from "../parts/facts.js";
import { LinkHour } from "../parts/history.js";
import { availabilityText } from "../parts/learned.js";
import { FlowsBefore, LinkFlows } from "../parts/link_flows.js";
import { linkColumns, LinkState, LinkTo } from "../parts/network.js";
import { Rows } from "../parts/rows.js";
import {
  Bars,
  DASH,
  Head,
  href,
  html,
  language,
  milliseconds,
  moment,
  Name,
  percent,
  plain,
  rate,
  since,
  t,
  To,
} from "../show.js";

/** @typedef {import("../live.js").Item} Item */

/**
 * What the live picture leaves out of a link: since when it is in its state, which event was the last before, and when
 * it was measured.
 * @param {Item | undefined} link
 */
function useTimes(link) {
  const path = link ? route`/v1/links/${link.src}/${link.dst}` : null;
  return useAnswer(path, { version: link && `${link.state} ${link.measured}` }).data ?? {};
}

/** What a probe has just found. @param {{found: any}} props */
const Probe = ({ found }) => html`<${Part} title=${t("Probe")}>
  <table class="plain-table">
    <thead><tr>${[t("Configured"), t("Sent"), t("Received"), t("Measured"), t("Round trip")].map(
      (name) => html`<th
      scope="col" class="end">${name}</th>`,
    )}</tr></thead>
    <tbody><tr>
      <td class="end">${rate(found.bandwidth)}</td><td class="end">${rate(found.sent)}</td><td class="end">
        ${rate(found.received)}</td>
      <td class="end">
        ${found.measured == null ? t("at least {rate}", { rate: rate(found.received) }) : rate(found.measured)}</td>
        <td class="end">${milliseconds(found.round_trip_s)}</td>
    </tr></tbody>
  </table>
  ${
    found.measured == null &&
    html`<p class="quiet">
    ${t("The sending node could not fill the link, so it carries no less than was received.")}</p>`
  }
<//>`;

/** Bars of one scale, one below the other, with their numbers. */
function Scale(/** @type {{link: Item}} */ { link }) {
  const whole = Math.max(link.bandwidth, link.measured ?? 0);
  const rows = [
    [t("Configured"), link.bandwidth],
    [t("Measured"), link.measured],
    [t("Reserved"), link.reserved],
    [t("Used"), link.used],
  ];
  return html`<table class="scale">
    <tbody>${rows.map(
      ([name, value], index) => html`<tr>
      <th scope="row">${name}</th>
      <td class="bar">${
        value != null &&
        html`<${Bars} whole=${whole} committed=${index === 3 ? 0 : value}
        used=${index === 3 ? value : null} />`
      }</td>
      <td class="end">${rate(value)}</td><td class="end quiet">
        ${index > 1 && value != null ? percent(value, capacityOf(link)) : ""}</td>
    </tr>`,
    )}</tbody>
  </table>`;
}

/** @param {{path: string[]}} props */
export default function Link({ path: [, src, dst = ""] }) {
  const [probed, setProbed] = useState(/** @type {any} */ (null));
  const link = links.value.get(`${src}>${dst}`);
  const times = useTimes(link);
  const title = `${src} › ${dst}`;
  if (!link)
    return html`<${Head} title=${title} /><p>${pictureAt.value ? t("There is no such link.") : t("Loading…")}</p>`;
  const probe = async () => {
    const found = await call(route`/v1/links/${src}/${dst}/probe`, { method: "POST" });
    setProbed(found);
    return found;
  };
  const back = links.value.get(`${dst}>${src}`);
  const sharing = link.medium ? [...links.value.values()].filter((each) => each.medium === link.medium) : [];
  const count = (/** @type {number | null} */ value) => (value == null ? DASH : value.toLocaleString(language.value));
  return html`
    <${Head} title=${title}><${LinkState} link=${link} /> <a href=${`${href("map")}?link=${encodeURIComponent(`${src}>${dst}`)}`}>${t("on the map")}</a><//>
    <${Actions} actions=${[may("operator") && { text: t("Probe"), act: probe }]} />
    ${probed && html`<${Probe} found=${probed} />`}
    <${Scale} link=${link} />
    <${Facts}
      items=${[
        [t("Ends"), html`<${To} path=${["nodes", src]}>${src}<//> › <${To} path=${["nodes", dst]}>${dst}<//>`],
        back && [t("The way back"), html`<${LinkTo} link=${back} /> <${LinkState} link=${back} />`],
        times.state_since && [
          t("In this state"),
          t("for {span}, since {time}", { span: since(times.state_since), time: moment(times.state_since) }),
        ],
        link.state !== "up" && [t("Why"), link.reason ? html`<bdi lang="en">${plain(link.reason)}</bdi>` : DASH],
        times.measured_at && [t("Measured"), t("{span} ago", { span: since(times.measured_at) })],
        [t("Availability"), availabilityText(times.availability)],
        [t("Dropped packets"), count(link.drops)],
        [t("Errors"), count(link.errors)],
        [t("Round trip"), milliseconds(link.round_trip_s)],
        link.delay > 0 && [t("Delay, one way, as configured"), milliseconds(link.delay / 1e6)],
        [t("Kind"), link.kind],
        link.medium && [t("Medium"), html`<${Name}>${link.medium}<//>, ${rate(media.value.get(link.medium))}`],
      ]}
    />
    ${
      link.state !== "up" &&
      times.last_up &&
      html`<${Part} title=${t("Flows that reserved it until it went down")}>
      <${FlowsBefore} src=${src} dst=${dst} event=${times.last_up} /><//>`
    }
    <${LinkHour} link=${link} />
    <${Part} title=${t("Flows that reserve it")}><${LinkFlows} src=${src} dst=${dst} /><//>
    ${
      sharing.length > 0 &&
      html`<${Part} title=${t("Links that share this medium")} note=${sharing.length}>
      <${Rows} caption=${t("Links that share this medium")} columns=${linkColumns()} items=${sharing}
        keyOf=${(/** @type {Item} */ each) => `${each.src}>${each.dst}`} usual="link" empty="" />
    <//>`
    }
  `;
}
