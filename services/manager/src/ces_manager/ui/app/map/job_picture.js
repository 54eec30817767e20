/** One job as a picture: its tasks on a part of the map, its flows as arrows, the path of one of them lit hop by hop. */
import { useEffect, useMemo, useRef, useState } from "../../vendor/preact-hooks.js";
import { links, media, nodes, tell } from "../live.js";
import { address, setQuery } from "../main.js";
import { whyNotText } from "../parts/amounts.js";
import { href, html, plain, rate, t, tn } from "../show.js";
import { describe } from "./describe.js";
import { graphOf, namesOf, SITE } from "./graph.js";
import { FlowList, flowText, Refusals } from "./job_flows.js";
import { arrowsOf, isPlaced, jobLight, nodesOf, notesOf, refusalsByNode, taskGraph, tasksByNode } from "./job_graph.js";
import { computePlaces } from "./layout.js";
import { flowKey } from "./light.js";
import { Picture } from "./picture.js";
import { newcomers } from "./placement.js";
import { followPlaces } from "./places.js";
import { followPointer } from "./pointer.js";
import { styled } from "./styles.js";
import { viewOf } from "./view.js";
import { Zoom } from "./zoom.js";

/** @typedef {import("./view.js").Selection} Selection */
/** @typedef {import("./job_graph.js").Task} Task */
/** @typedef {Map<string, import("./graph.js").Place>} Places */
/** @typedef {any} Flow a FlowRates of the API, or a PlannedFlow of a dry run */

const WHOLE = viewOf(new URLSearchParams());
const SMALL = 60; // nodes of a cluster that is drawn whole where it matters which of them were refused
const NAMED = 5; // flows over a link, or reasons of a node, beside the pointer

await styled;

/**
 * Places of nodes: as on the map, and around those where the map does not have one.
 * @param {string[]} names @param {import("../live.js").Item[]} between links that join them
 * @returns {Places} empty at first; nothing moves afterwards
 */
function usePlaces(names, between) {
  const [places, setPlaces] = useState(/** @type {Places} */ (new Map()));
  const kept = useRef(/** @type {Places} */ (new Map()));
  useEffect(() => {
    if (!names.length) return undefined;
    let giveUp = () => {};
    const take = (/** @type {Places} */ found) => {
      kept.current = new Map([...kept.current, ...found]);
      setPlaces(kept.current);
    };
    const find = (/** @type {Places} */ onMap) => {
      const all = new Map([...onMap, ...kept.current]);
      const fixed = new Map(names.filter((name) => all.has(name)).map((name) => [name, /** @type {import("./graph.js").Place} */ (all.get(name))]));
      giveUp();
      if (fixed.size === names.length) return take(fixed);
      const groupOf = (/** @type {string} */ name) => nodes.peek().get(name)?.labels?.[SITE];
      const failed = () => take(new Map([...fixed, ...newcomers(names, between, fixed)]));
      giveUp = computePlaces(names, between, groupOf, fixed, { watched: false, found: take, failed });
    };
    const end = followPlaces(find);
    return () => {
      end();
      giveUp();
    };
  }, [names.join()]);
  return places;
}

/** What is drawn of the job now. @param {{tasks: Task[], flows: Flow[], refused: Record<string, Record<string, string>>, lacking: import("../parts/amounts.js").Lacking, chosen: string}} job */
function useScene({ tasks, flows, refused, lacking, chosen }) {
  const refusals = refusalsByNode(refused, lacking);
  const placed = isPlaced(tasks) || refusals.size > 0;
  const cluster = { nodes: nodes.value, links: links.value, media: media.value };
  const all = refusals.size ? namesOf(cluster) : new Set();
  const names = placed ? nodesOf(tasks, flows, all.size <= SMALL ? [...all, ...refusals.keys()] : refusals.keys()) : [];
  const seen = new Set(names);
  const between = [...cluster.links.values()].filter(({ src, dst }) => seen.has(src) && seen.has(dst));
  const places = usePlaces(names, between);
  const onMap = useMemo(() => graphOf(cluster, places, WHOLE, seen), [names.join(), places, cluster.nodes, cluster.links]);
  const graph = placed ? onMap : taskGraph(tasks, flows);
  // A node that one task may not use is drawn as refused unless another one lies there.
  const never = [...refusals.keys()].filter((node) => !tasks.some((task) => task.node === node));
  return {
    graph,
    light: placed ? jobLight(graph, tasks, flows, chosen) : null,
    arrows: arrowsOf(graph, flows, chosen),
    notes: notesOf(tasks, never, t("refused")),
    refusals,
    placed,
  };
}

/** @param {string[]} all @returns {string[]} the first ones, and how many more there are */
const few = (all) => [...all.slice(0, NAMED), ...(all.length > NAMED ? [t("and {n} more", { n: all.length - NAMED })] : [])];

/** @param {Selection} selection @param {ReturnType<typeof useScene>} scene @param {Task[]} tasks @param {Flow[]} flows @returns {string[]} what stands beside the pointer */
function textsOf({ kind, key }, { graph, refusals, placed }, tasks, flows) {
  if (kind === "flow") {
    const flow = flows.find((each) => flowKey(each) === key);
    return flow ? [flowText(flow), flow.rate == null ? "" : t("given {rate}", { rate: rate(flow.rate) }), plain(flow.path.join(" › ")), plain(flow.shortfall?.text ?? "")].filter(Boolean) : [];
  }
  if (!placed) return [plain(key)];
  const texts = describe({ kind, key }, graph, WHOLE);
  if (kind === "link") return [...texts, ...few(flowsOver(flows, key).map(flowText))];
  const here = tasksByNode(tasks).get(key) ?? [];
  return [...texts, ...(here.length ? [plain(here.join(", "))] : []), ...few((refusals.get(key) ?? []).map(({ task, why, lacks }) => `${plain(task)}: ${whyNotText(why, lacks)}`))];
}

/** @param {Flow[]} flows @param {string} link `src>dst` @returns {Flow[]} those whose path leads over it */
const flowsOver = (flows, link) => flows.filter(({ path }) => path.some((/** @type {string} */ name, /** @type {number} */ index) => `${name}>${path[index + 1]}` === link));

/**
 * @param {object} props
 * @param {Task[]} props.tasks
 * @param {Flow[]} props.flows
 * @param {string} [props.at] when the flows were measured; left out where they are planned only
 * @param {Record<string, Record<string, string>>} [props.refused] task -> node -> why it may not go there
 * @param {import("../parts/amounts.js").Lacking} [props.lacking] how much nodes have too little
 */
export function JobPicture({ tasks, flows, at = "", refused = {}, lacking = {} }) {
  const asked = address.value.query.get("flow") ?? "";
  const chosen = flows.some((flow) => flowKey(flow) === asked) ? asked : "";
  const [looked, look] = useState(""); // at a node that refused
  const scene = useScene({ tasks, flows, refused, lacking, chosen });
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const picture = useRef(/** @type {Picture | null} */ (null));
  const choose = (/** @type {string} */ key) => {
    setQuery({ flow: key === chosen ? null : key });
    const flow = flows.find((each) => flowKey(each) === key);
    if (flow && key !== chosen) tell(flowText(flow));
  };
  const select = (/** @type {Selection | null} */ hit) => {
    const over = hit?.kind === "link" ? flowsOver(flows, hit.key).map(flowKey) : [];
    // The next one of those that lead over the link, each click.
    const flow = hit?.kind === "flow" ? hit.key : over[(over.indexOf(chosen) + 1) % over.length];
    look(hit?.kind === "node" && scene.refusals.has(hit.key) ? hit.key : "");
    if (flow && flow !== chosen) choose(flow);
    else if (!hit && chosen) choose(chosen);
  };
  const open = (/** @type {Selection} */ { kind, key }) => {
    if (kind === "node" && scene.placed) location.hash = href("nodes", key);
    else if (kind === "link") location.hash = href("links", ...key.split(">"));
  };
  const now = useRef({ select, open, describe: (/** @type {Selection} */ _) => /** @type {string[]} */ ([]) });
  now.current = { select, open, describe: (selection) => textsOf(selection, scene, tasks, flows) };
  useEffect(() => {
    const made = new Picture(/** @type {HTMLCanvasElement} */ (canvas.current), () => {});
    picture.current = made;
    const end = followPointer(made, {
      within: true,
      select: (hit) => now.current.select(hit),
      open: (hit) => now.current.open(hit),
      describe: (hit) => now.current.describe(hit),
      arranging: () => false,
      arrange: () => {},
    });
    return () => {
      end();
      made.end();
    };
  }, []);
  useEffect(() => picture.current?.show({ graph: scene.graph, light: scene.light, arrows: scene.arrows, notes: scene.notes, selection: looked ? { kind: "node", key: looked } : null }));
  const values = { tasks: tn(tasks.length, "1 task", "{n} tasks"), flows: tn(flows.length, "1 flow", "{n} flows"), nodes: tn(tasksByNode(tasks).size, "1 node", "{n} nodes") };
  const name = isPlaced(tasks) ? t("Picture of {tasks} on {nodes}, and {flows}; the tables say the same", values) : t("Picture of {tasks} and {flows}; the tables say the same", values);
  return html`<div class="map job-picture">
    <div class="map-picture"><canvas ref=${canvas} role="img" aria-label=${name}></canvas><${Zoom} picture=${picture} /></div>
    <div class="job-beside">
      ${(flows.length || isPlaced(tasks)) && html`<${FlowList} flows=${flows} at=${at} chosen=${chosen} choose=${choose} />`}
      ${looked && html`<${Refusals} node=${looked} reasons=${scene.refusals.get(looked) ?? []} />`}
    </div>
  </div>`;
}
