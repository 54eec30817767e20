/** The text of a job file: what is said of its lines, how it is sent, and where it lies while a tab is open. */

const KEPT = "ces.job-text";
const KEY = /^(?:"([^"]*)"|'([^']*)'|([^\s#"'{}[\],:][^:#]*?))\s*:(?:\s+(.*))?$/;
const DASHED = /^-(?:\s+|$)/;

// Keeping ---------------------------------------------------------------------------------------------------------

/** @typedef {{owner: string, text: string, key: string}} Draft `key`: of its submission, empty before the first try */

/** @param {string} owner who is signed in: a draft is shown to nobody else @returns {Draft} */
export function keptDraft(owner) {
  try {
    const draft = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
    if (draft?.owner === owner) return { owner, text: String(draft.text ?? ""), key: String(draft.key ?? "") };
  } catch {
    // none that can be read
  }
  return { owner, text: "", key: "" };
}

/** @param {Draft} draft */
export function keepDraft(draft) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(draft));
  } catch {
    // too large to be kept: a reload loses it
  }
}

/** @returns {string} what names one submission, so that sending it twice submits once */
export const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} text @returns {{type: string, text: string}} as a request has it */
export function documentOf(text) {
  try {
    JSON.parse(text);
    return { type: "application/json", text };
  } catch {
    return { type: "application/yaml", text };
  }
}

// Lines -----------------------------------------------------------------------------------------------------------

/** @param {string} text without what a comment or a string holds @returns {number} brackets that stay open */
function openBrackets(text) {
  const bare = text.replace(/"(?:[^"\\]|\\.)*"|'[^']*'|(?:^|\s)#.*$/g, "");
  return (bare.match(/[[{]/g)?.length ?? 0) - (bare.match(/[\]}]/g)?.length ?? 0);
}

/**
 * The lines of keys and items in block style, such as `tasks.0.resources`. Made for pointing at a mistake only: what
 * this does not understand has no line.
 * @param {string} text
 * @returns {Map<string, {line: number, value: string}>} lines count from 1
 */
function fieldsOf(text) {
  const found = new Map();
  /** @type {{indent: number, name: string | number}[]} */
  const path = [];
  let open = 0; // brackets
  let block = -1; // indentation of the key whose literal text goes on
  const note = (/** @type {number} */ line, value = "") => {
    const key = path.map(({ name }) => name).join(".");
    if (!found.has(key)) found.set(key, { line, value });
  };
  for (const [index, whole] of text.split("\n").entries()) {
    let rest = whole.trimEnd();
    let indent = rest.length - rest.trimStart().length;
    rest = rest.trimStart();
    if (block >= 0 && (!rest || indent > block)) continue;
    block = -1;
    if (!rest || rest.startsWith("#")) continue;
    if (open > 0) {
      open += openBrackets(rest);
      continue;
    }
    for (let dash = DASHED.exec(rest); dash; dash = DASHED.exec(rest)) {
      while (path.length && path[path.length - 1].indent > indent) path.pop();
      const last = path[path.length - 1];
      if (last && last.indent === indent && typeof last.name === "number") last.name += 1;
      else path.push({ indent, name: 0 });
      note(index + 1);
      indent += dash[0].length;
      rest = rest.slice(dash[0].length);
    }
    open = Math.max(0, openBrackets(rest));
    const key = KEY.exec(rest);
    if (!key) continue;
    while (path.length && path[path.length - 1].indent >= indent) path.pop();
    path.push({ indent, name: key[1] ?? key[2] ?? key[3] });
    const value = key[4] ?? "";
    note(index + 1, value);
    if (/^[|>]/.test(value)) block = indent;
  }
  return found;
}

/**
 * @param {string} text
 * @param {string} field as a refusal names it, such as `tasks.0.resources.cpu`
 * @returns {number} its line from 1, or that of the innermost thing around it; 0 where there is none
 */
export function lineOf(text, field) {
  const fields = fieldsOf(text);
  const path = field.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
  for (; path.length; path.pop()) {
    const found = fields.get(path.join("."));
    if (found) return found.line;
  }
  return 0;
}

/** @param {string} value as the file has it @returns {string} without quotes and comment */
const scalar = (value) => /^"([^"]*)"|^'([^']*)'|^([^#]*?)\s*(?:#.*)?$/.exec(value)?.slice(1).find(Boolean) ?? "";

/** @param {string} text @returns {{name: string, group: string}} the job, and its group whose number CES decides */
export function namesIn(text) {
  try {
    const job = JSON.parse(text);
    return { name: String(job.name ?? ""), group: String(job.elastic?.group ?? "") };
  } catch {
    const fields = fieldsOf(text);
    const inline = /\bgroup:\s*([\w-]+)/.exec(fields.get("elastic")?.value ?? "")?.[1];
    return {
      name: scalar(fields.get("name")?.value ?? ""),
      group: scalar(fields.get("elastic.group")?.value ?? "") || (inline ?? ""),
    };
  }
}
