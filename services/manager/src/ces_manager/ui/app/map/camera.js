/** Which part of the map is seen, and how large. Pure: every move returns another camera. */
import { clamp } from "./sizes.js";

/** @typedef {{x: number, y: number, k: number}} Camera the point of the map in the middle of the picture, and pixels per unit */
/** @typedef {{width: number, height: number}} Size of the picture, in CSS pixels */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Bounds in units of the map */

const [FAR, NEAR] = [0.02, 5];
const FITTING = 1.5; // a small map is not blown up beyond this

/** @param {Camera} camera @param {number} dx @param {number} dy pixels by which the picture moves @returns {Camera} */
export const panned = (camera, dx, dy) => ({ ...camera, x: camera.x - dx / camera.k, y: camera.y - dy / camera.k });

/**
 * Zoom, while what is at one point of the picture stays there.
 * @param {Camera} camera @param {Size} size @param {number} px @param {number} py @param {number} factor
 * @returns {Camera}
 */
export function zoomed(camera, size, px, py, factor) {
  const k = clamp(camera.k * factor, FAR, NEAR);
  const [dx, dy] = [px - size.width / 2, py - size.height / 2];
  return { k, x: camera.x + dx / camera.k - dx / k, y: camera.y + dy / camera.k - dy / k };
}

/** @param {Camera} camera @param {Size} size @param {number} px @param {number} py @returns {[number, number]} in units of the map */
export const toMap = (camera, size, px, py) => [camera.x + (px - size.width / 2) / camera.k, camera.y + (py - size.height / 2) / camera.k];

/** @param {Camera} camera @param {Size} size @param {number} x @param {number} y @returns {[number, number]} in the picture */
export const toPicture = (camera, size, x, y) => [(x - camera.x) * camera.k + size.width / 2, (y - camera.y) * camera.k + size.height / 2];

/** @param {Camera} camera @param {Size} size @returns {Bounds} what is seen */
export const seen = ({ x, y, k }, { width, height }) => ({ left: x - width / 2 / k, right: x + width / 2 / k, top: y - height / 2 / k, bottom: y + height / 2 / k });

/** @param {Iterable<{x: number, y: number}>} points @returns {Bounds | null} null where there is none */
export function boundsOf(points) {
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { x, y } of points) {
    bounds.left = Math.min(bounds.left, x);
    bounds.right = Math.max(bounds.right, x);
    bounds.top = Math.min(bounds.top, y);
    bounds.bottom = Math.max(bounds.bottom, y);
  }
  return bounds.left <= bounds.right ? bounds : null;
}

/** @param {Bounds | null} bounds @param {Size} size @returns {Camera} that shows all of it, with a margin for signs and names */
export function fitted(bounds, { width, height }) {
  if (!bounds) return { x: 0, y: 0, k: 1 };
  const margin = Math.min(56, width / 8, height / 8);
  const k = Math.min((width - 2 * margin) / Math.max(bounds.right - bounds.left, 1), (height - 2 * margin) / Math.max(bounds.bottom - bounds.top, 1));
  return { x: (bounds.left + bounds.right) / 2, y: (bounds.top + bounds.bottom) / 2, k: clamp(k, FAR, FITTING) };
}
