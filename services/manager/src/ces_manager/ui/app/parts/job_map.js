/** The picture of a job, with what draws it: that is fetched once somebody looks at one. */
import { useEffect, useState } from "../../vendor/preact-hooks.js";
import { insist } from "../client.js";
import { html, t } from "../show.js";

/**
 * @param {object} props
 * @param {import("../map/job_graph.js").Task[]} props.tasks
 * @param {any[]} props.flows
 * @param {string} [props.at] when the flows were measured; left out where they are planned only
 * @param {Record<string, Record<string, string>>} [props.refused] task -> node -> why it may not go there
 * @param {import("./amounts.js").Lacking} [props.lacking] how much nodes have too little
 */
export function JobMap(props) {
  const [Loaded, setLoaded] = useState(/** @type {any} */ (null));
  const [failed, setFailed] = useState(false);
  const load = () => {
    setFailed(false);
    insist((again) => import(`../map/job_picture.js${again}`)).then(
      ({ JobPicture }) => setLoaded(() => JobPicture),
      () => setFailed(true),
    );
  };
  useEffect(load, []);
  // What has a place is another picture: places of tasks are none of nodes.
  const kind = props.tasks.some(({ node }) => node) ? "placed" : "alone";
  if (Loaded) return html`<${Loaded} key=${kind} ...${props} />`;
  if (!failed) return html`<p class="job-picture-place quiet">${t("Loading…")}</p>`;
  return html`<p class="job-picture-place quiet">${t("The picture cannot be loaded; the tables say the same.")} <button type="button" onClick=${load}>${t("Try again")}</button></p>`;
}
