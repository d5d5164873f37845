import { define, LiveElement } from "../../page/live_element.js";
import { preferences } from "../../page/preferences.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { recordList } from "./record_list.js";
import { RecordWindow } from "./record_window.js";

/** The records that match a query, newest first, updated live. */
class RecordLog extends LiveElement {
  /** The query for the history. @type {{ [name: string]: string }} */
  query = {};
  #window = new RecordWindow();

  opened() {
    const { ended: signal } = this;
    this.watch(preferences, "changed");
    this.#window.addEventListener("changed", () => this.#changed(), { signal });
    copy.addEventListener("loaded", () => this.#window.look(), { signal });
    copy.addEventListener("records", (event) => this.#onRecords(/** @type {CustomEvent} */ (event).detail), {
      signal,
    });
    this.#window.open(this.query, null);
  }

  /** @param {import("../../types").Record[]} records */
  #onRecords(records) {
    const wanted = Object.entries(this.query);
    const isOfIt = (/** @type {any} */ record) => wanted.every(([name, value]) => record[name] === value);
    if (records.some(isOfIt)) this.#window.look();
  }

  drawn() {
    const { records, isReading, hasOlder, trouble } = this.#window;
    return [
      trouble && h("p", { class: "notice", "data-tone": "danger", role: "alert" }, trouble),
      recordList(records, null),
      !records.length &&
        !trouble &&
        h(
          "p",
          { class: "muted small", "aria-busy": isReading ? "true" : null },
          isReading ? "Loading …" : "No records.",
        ),
      hasOlder &&
        h(
          "button",
          { type: "button", disabled: isReading, onclick: () => this.#window.older() },
          "Older records",
        ),
    ];
  }

  #changed() {
    if (this.#window.fresh.length && !this.#window.isReading) {
      this.#window.takeFresh();
      this.#window.trim();
    }
    this.redraw();
  }
}

define("fw-record-log", RecordLog);

/**
 * Describe the records of one thing.
 *
 * @param {{ [name: string]: string }} query
 */
export const recordLog = (query) => h("fw-record-log", { key: JSON.stringify(query), ".query": query });
