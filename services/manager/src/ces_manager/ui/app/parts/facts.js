/** Names and values, and what is done with a button. */
import { useState } from "../../vendor/preact-hooks.js";
import { tell } from "../live.js";
import { html, plain, ProblemBox, t } from "../show.js";

/** @param {{items: ([string, any] | false | null | undefined)[]}} props what is not given is left out */
export const Facts = ({ items }) =>
  html`<dl class="facts">${items.map((item) => item && html`<div><dt>${item[0]}</dt><dd>${item[1]}</dd></div>`)}</dl>`;

/** A part of a page under its own heading. */
export const Part = (/** @type {{title: string, note?: any, children?: any}} */ { title, note, children }) =>
  html`<section class="part"><h2>${title}${note != null && html` <small>${note}</small>`}</h2>${children}</section>`;

/**
 * Buttons that ask something of the manager, and what it answered.
 * @typedef {{text: string, act: () => Promise<any>, danger?: boolean}} Action
 * `act`: may answer undefined where nothing was done; an answer's `remark` is shown
 * @param {{actions: (Action | false)[], done?: () => void}} props
 */
export function Actions({ actions, done = () => {} }) {
  const [state, setState] = useState(
    /** @type {{busy: string, problem: any, remark: string}} */ ({ busy: "", problem: null, remark: "" }),
  );
  const bare = (/** @type {string} */ text) => text.replace(/…$/, ""); // which says that a question follows
  const run = async (/** @type {Action} */ { text, act }) => {
    setState({ busy: text, problem: null, remark: "" });
    try {
      const answer = await act();
      const remark = answer === undefined ? "" : (answer?.remark ?? t("{action}: done", { action: bare(text) }));
      setState({ busy: "", problem: null, remark });
      if (remark) tell(remark);
      done();
    } catch (problem) {
      setState({ busy: "", problem, remark: "" });
    }
  };
  const offered = actions.filter((action) => action !== false);
  if (!offered.length) return null;
  return html`<div class="actions">
    ${offered.map(
      (action) => html`<button type="button" class=${action.danger ? "danger" : ""}
      aria-disabled=${state.busy !== ""} onClick=${() => state.busy || run(action)}>
      ${state.busy === action.text ? t("{action}…", { action: bare(action.text) }) : action.text}</button>`,
    )}
    ${state.remark && html`<span class="quiet">${plain(state.remark)}</span>`}
    <${ProblemBox} problem=${state.problem} />
  </div>`;
}
