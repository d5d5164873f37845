/** A dialog that only shows content, such as the keyboard shortcuts. */

import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";

/** @typedef {import("../types").Child} Child */

/**
 * Show content in a dialog.
 *
 * @param {string} title
 * @param {() => Child} content
 */
export function showPanel(title, content) {
  if (document.querySelector("dialog[open]")) return;
  const panel = /** @type {PanelDialog} */ (document.createElement("fw-panel-dialog"));
  panel.heading = title;
  panel.content = content;
  document.body.append(panel);
}

class PanelDialog extends LiveElement {
  heading = "";
  /** @type {() => Child} */
  content = () => null;

  connectedCallback() {
    super.connectedCallback();
    this.querySelector("dialog")?.showModal();
  }

  drawn() {
    return h(
      "dialog",
      { "aria-labelledby": "panel-title", onclose: () => this.remove() },
      h(
        "div",
        { class: "stack" },
        h("h2", { id: "panel-title" }, this.heading),
        this.content(),
        h(
          "div",
          { class: "row dialog-buttons" },
          h("button", { type: "button", onclick: () => this.querySelector("dialog")?.close() }, "Close"),
        ),
      ),
    );
  }
}

define("fw-panel-dialog", PanelDialog);
