/** Export of the filtered records as a file, with progress and the equivalent command. */

import { commandText } from "../../elements/command_text.js";
import { download } from "../../elements/download.js";
import { count, messageOf } from "../../page/formatting.js";
import { define, LiveElement } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { api } from "../../service/connected.js";
import { apiQuery, commandOptions, readWanted } from "./history_filter.js";
import { exported } from "./record_export.js";

/** @typedef {import("./record_export.js").Form} Form */

class HistoryExport extends LiveElement {
  /** @type {import("./history_filter.js").Wanted} */
  #wanted = readWanted(new URLSearchParams());
  #text = "";
  #trouble = "";
  /** @type {AbortController | null} */
  #running = null;
  #part = { read: 0, number: 0, newest: 1 };

  set wanted(/** @type {import("./history_filter.js").Wanted} */ value) {
    this.#wanted = value;
    this.redraw();
  }

  get wanted() {
    return this.#wanted;
  }

  opened() {
    this.ended.addEventListener("abort", () => this.#running?.abort());
  }

  drawn() {
    return h(
      "details",
      { class: "history-export" },
      h("summary", null, "Export and commands"),
      h("p", { class: "small muted" }, "All records that match the filters, oldest first."),
      this.#running ? this.#progress() : this.#buttons(),
      h("p", { class: "small", role: "status" }, this.#text || null),
      this.#trouble && h("p", { class: "notice", "data-tone": "danger", role: "alert" }, this.#trouble),
      h("p", { class: "small muted" }, "On the command line:"),
      commandText(["history", ...commandOptions(this.#wanted)]),
      commandText(["history", "export", "-o", "history.csv", ...commandOptions(this.#wanted)]),
    );
  }

  #buttons() {
    return h(
      "div",
      { class: "row", key: "buttons" },
      h("button", { type: "button", onclick: () => this.#export("csv") }, "Export CSV"),
      h("button", { type: "button", onclick: () => this.#export("jsonl") }, "Export JSON lines"),
    );
  }

  #progress() {
    const { read, number, newest } = this.#part;
    return h(
      "div",
      { class: "row", key: "progress" },
      h("progress", { max: newest, ".value": Math.min(number, newest), "aria-label": "Records exported" }),
      h("span", { class: "small number" }, count(read, "record")),
      h("button", { type: "button", onclick: () => this.#running?.abort() }, "Cancel"),
    );
  }

  /** @param {Form} form */
  async #export(form) {
    const running = (this.#running = new AbortController());
    this.#trouble = this.#text = "";
    this.#part = { read: 0, number: 0, newest: 1 };
    this.redraw();
    try {
      const query = apiQuery(this.#wanted);
      const newest = await api.get("/v1/history", { query: { limit: 1 } });
      this.#part.newest = newest.records[0]?.number ?? 1;
      const onPage = (/** @type {number} */ read, /** @type {number} */ number) => {
        this.#part = { ...this.#part, read, number };
        this.redraw();
      };
      const file = await exported(query, form, { signal: running.signal, onPage });
      download(file, `history.${form}`);
      this.#text = `${count(this.#part.read, "record")} written to history.${form}.`;
    } catch (error) {
      if (running.signal.aborted) this.#text = "Cancelled. No file was written.";
      else this.#trouble = messageOf(error);
    }
    this.#running = null;
    this.redraw();
  }
}

define("fw-history-export", HistoryExport);
