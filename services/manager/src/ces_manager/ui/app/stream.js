/** Streams of the API: server-sent events as they come, and again after every break. */
import { request } from "./client.js";

/** @typedef {{id: string, type: string, data: string}} Heard */

const LONGEST_PAUSE_S = 10;
export const SILENCE_S = 20; // after which a connection counts as dead; comments come every 15 s at least

/**
 * Server-sent events of a body as they come. Comments come as events without type, as a sign of life.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<Heard>}
 */
export async function* eventsOf(body) {
  const decoder = /** @type {ReadableWritablePair<string, Uint8Array>} */ (
    /** @type {unknown} */ (new TextDecoderStream())
  );
  const reader = body.pipeThrough(decoder).getReader();
  let rest = "";
  for (;;) {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const silence = new Promise((_, fail) => {
      timer = setTimeout(() => fail(new Error("silence")), SILENCE_S * 1000);
    });
    const { done, value } = await Promise.race([reader.read(), /** @type {Promise<never>} */ (silence)]).finally(() =>
      clearTimeout(timer),
    );
    if (done) return;
    const blocks = (rest + value).split(/\r\n\r\n|\n\n|\r\r/);
    rest = blocks.pop() ?? "";
    for (const block of blocks) yield heardIn(block);
  }
}

/** @param {string} block @returns {Heard} */
function heardIn(block) {
  const heard = { id: "", type: "", data: "" };
  const data = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === "id") heard.id = value;
    else if (name === "event") heard.type = value;
    else if (name === "data") data.push(value);
  }
  if (data.length && !heard.type) heard.type = "message";
  return { ...heard, data: data.join("\n") };
}

/**
 * Follow a stream until it is closed: again after every break, from the last numbered event on.
 * @param {string} path
 * @param {object} options
 * @param {string} [options.last] id after which to begin
 * @param {(heard: Heard) => void} options.heard called for each event, and for comments with an empty type
 * @param {(state: "connecting" | "open" | "waiting", problem?: any) => void} [options.told]
 * @returns {() => void} closes it
 */
export function follow(path, { last = "", heard, told = () => {} }) {
  const aborter = new AbortController();
  const { signal: aborted } = aborter;
  const run = async () => {
    for (let failures = 0; !aborted.aborted; failures++) {
      let retryAfter = 0;
      const attempt = new AbortController();
      const end = () => attempt.abort();
      aborted.addEventListener("abort", end);
      try {
        /** @type {Record<string, string>} */
        const headers = last ? { "Last-Event-ID": last } : {};
        const answer = await request(path, { headers, signal: attempt.signal });
        told("open");
        for await (const event of eventsOf(/** @type {ReadableStream<Uint8Array>} */ (answer.body))) {
          failures = 0;
          if (event.id) last = event.id;
          heard(event);
        }
      } catch (/** @type {any} */ problem) {
        if (aborted.aborted || problem.status === 401) return;
        if (!aborted.aborted) told("waiting", problem);
        retryAfter = problem.retryAfter ?? 0;
      } finally {
        end(); // whatever ended it, the connection is not left open
        aborted.removeEventListener("abort", end);
      }
      if (aborted.aborted) return;
      told("waiting");
      const pause = Math.max(retryAfter, Math.min(LONGEST_PAUSE_S, 0.5 * 2 ** failures) * (0.75 + Math.random() / 2));
      await new Promise((go) => setTimeout(go, pause * 1000));
    }
  };
  run();
  return () => aborter.abort();
}
