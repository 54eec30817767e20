/**
 * Whose session this tab has, and requests in its name. The session's token lies in sessionStorage and travels in the
 * Authorization header only, so no address and no cookie carries it.
 */
import { signal } from "../vendor/signals.js";
import { t } from "./show.js";

/**
 * @typedef {object} Identity
 * @property {string} name
 * @property {"viewer" | "submitter" | "operator" | "admin"} role
 * @property {string[] | null} tenants null: all
 * @property {string | null} expires_at
 */
/** @typedef {{token: string, expires_at: string, identity: Identity}} Session */

const KEPT = "ces.session";
const ROLES = ["viewer", "submitter", "operator", "admin"];

/** @returns {Session | null} */
function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  } catch {
    return null;
  }
}

/** @type {import("../vendor/signals.js").Signal<Session | null>} */
export const session = signal(remembered());
/** Why nobody is signed in any more, as said above the sign-in form. */
export const farewell = signal("");

/** @param {Session | null} next @param {string} [why] where it ends by itself */
function keep(next, why = "") {
  if (next) sessionStorage.setItem(KEPT, JSON.stringify(next));
  else sessionStorage.removeItem(KEPT);
  farewell.value = why;
  session.value = next;
}

/** @param {string} role @returns {boolean} whether the one who is signed in may do what that role may */
export const may = (role) => ROLES.indexOf(session.value?.identity.role ?? "") >= ROLES.indexOf(role);

/** A refusal or a failure, as the manager's problem documents have it. `status` 0: nothing answered. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} title
   * @param {string} [detail]
   * @param {{field: string, problem: string}[]} [errors]
   * @param {number} [retryAfter] seconds to wait, where the answer says so
   */
  constructor(status, title, detail = "", errors = [], retryAfter = 0) {
    super(detail || title);
    Object.assign(this, { status, title, detail, errors, retryAfter });
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/**
 * @typedef {object} Ask
 * @property {string} [method]
 * @property {unknown} [body] sent as JSON
 * @property {{type: string, text: string}} [document] sent as it is, instead of a body
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {string | null} [token] instead of the session's; null for none
 */

/**
 * An answer that is no refusal. Throws Problem; ends the session where its token is refused.
 * @param {string} path
 * @param {Ask} [ask]
 * @returns {Promise<Response>}
 */
export async function request(path, ask = {}) {
  const token = ask.token === undefined ? session.value?.token : ask.token;
  const headers = new Headers(ask.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  const type = ask.document?.type ?? (ask.body === undefined ? "" : "application/json");
  if (type) headers.set("Content-Type", type);
  const body = ask.document?.text ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body));
  let answer;
  try {
    answer = await fetch(path, {
      method: ask.method ?? "GET",
      headers,
      body,
      signal: ask.signal,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    if (ask.signal?.aborted) throw error;
    throw new Problem(0, t("No connection"), t("The manager does not answer."));
  }
  if (answer.ok) return answer;
  const problem = await problemOf(answer);
  const ours = token && token === session.value?.token;
  if (answer.status === 401 && ours) keep(null, `${t("Your session has ended.")} ${problem.message}`);
  throw problem;
}

/** @param {Response} answer @returns {Promise<Problem>} */
async function problemOf(answer) {
  const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
  try {
    const { title, detail, errors } = await answer.json();
    return new Problem(answer.status, String(title), String(detail ?? ""), errors ?? [], retryAfter);
  } catch {
    return new Problem(
      answer.status,
      t("The manager answered with status {status}", { status: answer.status }),
      "",
      [],
      retryAfter,
    );
  }
}

/**
 * What a route answers, read from JSON.
 * @param {string} path
 * @param {Ask} [ask]
 * @returns {Promise<any>}
 */
export async function call(path, ask) {
  const answer = await request(path, ask);
  return answer.status === 204 ? null : answer.json();
}

/** @param {TemplateStringsArray} texts @param {...string} parts @returns {string} an address whose parts are escaped */
export const route = (texts, ...parts) => String.raw(texts, ...parts.map(encodeURIComponent));

// Modules and rules that come later -------------------------------------------------------------------------------

const LOADS = 3; // of one thing, before somebody is asked
const PAUSE_MS = 400; // before the second; four times that before the third
let loads = 0;

/**
 * Load something of the dashboard's own, again where the connection breaks off. `load` gets what is added to the
 * address: from the second time on it is another one, since browsers may remember what could not be had.
 * @template T
 * @param {(again: string) => Promise<T>} load
 * @returns {Promise<T>}
 */
export async function insist(load) {
  for (let failures = 0; ; ) {
    try {
      return await load(failures ? `?again=${++loads}` : "");
    } catch (problem) {
      if (++failures === LOADS) throw problem;
      await new Promise((go) => setTimeout(go, PAUSE_MS * 4 ** (failures - 1)));
    }
  }
}

/** @param {string} address of rules, absolute @returns {Promise<void>} settles once they hold */
export const loadRules = (address) =>
  insist(
    (again) =>
      new Promise((done, fail) => {
        const link = document.createElement("link");
        link.rel = "stylesheet";
        link.href = address + again;
        link.onload = () => done();
        link.onerror = () => {
          link.remove();
          fail(new Error(`${address} cannot be loaded`));
        };
        document.head.append(link);
      }),
  );

// Signing in and out ----------------------------------------------------------------------------------------------

/** @param {string} code one-time */
export async function exchange(code) {
  keep(await call("/v1/sessions", { method: "POST", body: { code }, token: null }));
}

/** Begin a session with an access token, which is not kept. @param {string} token */
export async function signIn(token) {
  const { code } = await call("/v1/sessions/codes", { method: "POST", token });
  await exchange(code);
}

/** End the session here at once, and at the manager as soon as it hears of it. */
export function signOut() {
  const token = session.value?.token;
  keep(null);
  // Whoever leaves is not kept waiting; a session that could not be ended ends by itself within hours.
  if (token) call("/v1/sessions/mine", { method: "DELETE", token }).catch(() => {});
}

// Streams ---------------------------------------------------------------------------------------------------------

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
