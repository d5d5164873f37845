/** Reads the newest important records to screen readers, at a limited rate. */

import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";

/** @typedef {import("../types").Record} Record */

const TOLD = ["event", "order", "hold", "rollout", "host", "promise"];
const AT_MOST_EVERY = 5000;

class Announcer extends LiveElement {
  #text = "";
  /** @type {Record[]} */
  #untold = [];
  #timer = 0;

  opened() {
    copy.addEventListener("records", (event) => this.#hear(/** @type {CustomEvent} */ (event).detail), {
      signal: this.ended,
    });
    this.ended.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  drawn() {
    return h(
      "div",
      { class: "visually-hidden", role: "log", "aria-live": "polite", "aria-label": "Latest changes" },
      this.#text,
    );
  }

  /** @param {Record[]} records */
  #hear(records) {
    this.#untold.push(...records.filter((record) => TOLD.includes(record.kind.split("-")[0] ?? "")));
    if (this.#untold.length && !this.#timer) this.#timer = setTimeout(() => this.#tell(), 500);
  }

  #tell() {
    const last = this.#untold.slice(-3).map(sentence);
    const more = this.#untold.length - last.length;
    this.#text = last.join(". ") + (more ? `. And ${more} more` : "");
    this.#untold = [];
    this.redraw();
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      if (this.#untold.length) this.#tell();
    }, AT_MOST_EVERY);
  }
}

/** @param {Record} record */
function sentence(record) {
  const about = record.machine ?? record.group ?? record.host ?? "";
  return `${record.kind.replaceAll("-", " ")} ${about}`.trim();
}

define("fw-announcer", Announcer);
