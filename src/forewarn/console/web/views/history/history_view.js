/** The history: all records, newest first, updated live. */

import { commandText } from "../../elements/command_text.js";
import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { preferences } from "../../page/preferences.js";
import { address, router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { copy } from "../../service/connected.js";
import { filterBar } from "./filter_bar.js";
import { apiQuery, isFiltered, readWanted } from "./history_filter.js";
import { recordList } from "./record_list.js";
import { RecordWindow } from "./record_window.js";

// Delay after the last key press before the search starts, in milliseconds.
const TYPING = 250;
// Within this distance from the top, in pixels, new records are inserted at once.
const AT_TOP = 40;

class HistoryView extends View {
  #window = new RecordWindow();
  #opened = "";
  #typing = 0;
  // Typed text before the search starts.
  #text = /** @type {string | null} */ (null);
  #scrollsTo = /** @type {number | null} */ (null);

  opened() {
    super.opened();
    this.watch(preferences, "changed");
    const { ended: signal } = this;
    this.#window.addEventListener("changed", () => this.#changed(), { signal });
    router.addEventListener("query", () => this.#open(), { signal });
    for (const type of ["records", "loaded"])
      copy.addEventListener(type, () => this.#window.look(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#typing));
    this.#opened = "";
    this.#open();
  }

  drawn() {
    const wanted = readWanted(this.query);
    return [
      h("h1", null, "History"),
      filterBar({ ...wanted, text: this.#text ?? wanted.text }, (text) => this.#typed(text)),
      this.#around(wanted.at),
      h(
        "div",
        {
          class: wanted.at === null ? "history-new" : "history-new history-newer",
          "aria-live": "polite",
          key: "new",
        },
        this.#freshButton(),
      ),
      this.#trouble(),
      h(
        "div",
        { class: "history-list", key: "list", "aria-busy": this.#window.isReading ? "true" : null },
        recordList(this.#window.records, wanted.at),
      ),
      this.#end(wanted),
    ];
  }

  #open() {
    const wanted = readWanted(this.query);
    const key = JSON.stringify(wanted);
    if (key === this.#opened) return;
    this.#opened = key;
    this.#scrollsTo = wanted.at;
    this.#window.open(apiQuery(wanted), wanted.at);
  }

  #changed() {
    const isWatched = scrollY <= AT_TOP && this.#window.at === null && !isFiltered(readWanted(this.query));
    if (isWatched && this.#window.fresh.length && !this.#window.isReading) {
      this.#window.takeFresh();
      this.#window.trim();
    }
    this.redraw();
    if (this.#scrollsTo !== null && !this.#window.isReading) requestAnimationFrame(() => this.#showLinked());
  }

  #showLinked() {
    this.#scrollsTo = null;
    const linked = /** @type {HTMLElement | null} */ (this.querySelector(".record[aria-current]"));
    linked?.scrollIntoView({ block: "center" });
    linked?.focus({ preventScroll: true });
  }

  /** @param {string} text */
  #typed(text) {
    clearTimeout(this.#typing);
    this.#text = text;
    this.#typing = setTimeout(() => {
      this.#text = null;
      router.setQuery({ text, at: null });
    }, TYPING);
  }

  /** @param {number | null} at */
  #around(at) {
    if (at === null) return null;
    const { records, isReading, trouble } = this.#window;
    const isThere = isReading || trouble || records.some((record) => record.number === at);
    return h(
      "p",
      { class: "notice", "data-tone": isThere ? "info" : "warn", key: "around" },
      isThere
        ? `Record ${at} and the records around it.`
        : `Record ${at} is not available: it was removed with old records, or you may not see it.`,
      h("a", { href: address("/history") }, "Show newest records"),
    );
  }

  #freshButton() {
    const { fresh, hasMoreFresh, at } = this.#window;
    if (!fresh.length) return null;
    const number = `${fresh.length}${hasMoreFresh ? "+" : ""}`;
    return h(
      "button",
      { type: "button", class: "primary", onclick: () => this.#showFresh() },
      at === null ? `${number} new` : `Show ${number} newer`,
    );
  }

  #showFresh() {
    const isAround = this.#window.at !== null;
    this.#window.takeFresh();
    if (!isAround) scrollTo(0, 0);
  }

  #trouble() {
    const { trouble } = this.#window;
    return (
      trouble && h("p", { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" }, trouble)
    );
  }

  /** @param {import("./history_filter.js").Wanted} wanted */
  #end(wanted) {
    const { records, isReading, hasOlder, trouble } = this.#window;
    if (isReading && !records.length)
      return h("p", { class: "muted", role: "status", key: "end" }, "Loading …");
    if (hasOlder)
      return h(
        "div",
        { class: "row", key: "end" },
        h(
          "button",
          { type: "button", disabled: isReading, onclick: () => this.#window.older() },
          records.length ? "Older records" : "Search older records",
        ),
        h(
          "span",
          { class: "small muted", role: "status" },
          records.length ? `${count(records.length, "record")} shown` : "No match in the newer records.",
        ),
      );
    if (trouble) return null;
    if (records.length)
      return h(
        "p",
        { class: "small muted", key: "end" },
        `${count(records.length, "record")}. End of the history.`,
      );
    return h(
      "div",
      { class: "empty", key: "end" },
      h("p", null, isFiltered(wanted) ? "No record matches." : "No records yet."),
      !isFiltered(wanted) && [
        h("p", null, "The first records appear when you apply a fleet:"),
        commandText(["fleet", "apply", "fleet.toml"]),
      ],
    );
  }
}

define("fw-history-view", HistoryView);
