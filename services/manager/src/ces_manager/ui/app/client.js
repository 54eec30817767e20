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
