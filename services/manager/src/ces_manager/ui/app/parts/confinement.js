/** What keeps the workers of a node apart, in a line, as the terminal says it. */
import { t } from "../show.js";

/**
 * @param {string} runtime
 * @param {string} network
 * @param {{user: string, filter: boolean, root: string, disk: string} | null | undefined} told by its agent
 * @returns {string}
 */
export function confinementText(runtime, network, told) {
  if (!told) return t("{runtime}: its agent has not told yet", { runtime });
  const place = runtime === "docker" ? t("container of its own") : t("user of its own");
  const parts = [
    told.user === "own" ? place : t("user shared by all"),
    told.filter ? t("calls filtered") : t("calls not filtered"),
    t(`root ${told.root}`),
    t(`disk ${told.disk}`),
    network === "tc" ? t("network by tc") : t("network not confined"),
  ];
  return `${runtime}: ${parts.join(", ")}`;
}
