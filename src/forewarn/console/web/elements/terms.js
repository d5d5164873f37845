/** `<fw-term>`: a button that explains a term of forewarn. It works with pointer, keyboard and touch. */

import { define, LiveElement } from "../page/live_element.js";
import { place } from "../page/popovers.js";
import { h } from "../page/tree.js";

const EXPLAINED = {
  armed:
    "An armed event keeps the other update domains of its group away, and may start. " +
    "An event is armed when only the minimum notice of its type is left, or when it is approved.",
  approved:
    "An approval lets an event start before its NotBefore. " +
    "A guest approves when its workload is prepared. A person or a policy can approve, too.",
  cordoned: "A cordoned host accepts no new machines. Its own machines stay.",
  failed: "A host or a step that failed. Retry or abandon a failed step; restore a failed host.",
  held: "A hold stops announcements and starts until it is released. A paused rollout waits, too.",
  late: "The NotBefore of these events has passed, and they have not started.",
  notice: "The time between the announcement of an event and its NotBefore. Its type promises a minimum.",
  stuck: "This wait does not end without action. Open the order to see what to do.",
  "update domain":
    "Machines of a group that maintenance may disturb together. Never two domains of a group at a time.",
};

/** @typedef {keyof typeof EXPLAINED} TermName */

let count = 0;

class Term extends LiveElement {
  /** @type {TermName} */
  term = "armed";
  label = "";
  #id = `term-${++count}`;
  // Empty while closed, so that screen readers and copying skip it.
  #isOpen = false;

  drawn() {
    return [
      h(
        "button",
        { type: "button", key: "term", class: "term", popovertarget: this.#id },
        h("dfn", null, this.label || this.term),
      ),
      h(
        "span",
        {
          key: "meaning",
          id: this.#id,
          class: "term-meaning",
          popover: "auto",
          role: "note",
          onbeforetoggle: (/** @type {ToggleEvent} */ toggle) => this.#toggles(toggle.newState === "open"),
        },
        this.#isOpen && EXPLAINED[this.term],
      ),
    ];
  }

  /** @param {boolean} isOpen */
  #toggles(isOpen) {
    this.#isOpen = isOpen;
    this.redraw();
    if (isOpen) requestAnimationFrame(() => requestAnimationFrame(() => this.#place()));
  }

  #place() {
    const [button, meaning] = /** @type {HTMLElement[]} */ ([...this.children]);
    if (button && meaning) place(meaning, button);
  }
}

define("fw-term", Term);

/**
 * Draw a term with its explanation.
 *
 * @param {TermName} name
 * @param {string} [label]  the form of the term in the sentence
 */
export const term = (name, label = name) =>
  h("fw-term", { key: `term ${name}`, ".term": name, ".label": label });
