/** What happened: every record, newest first, as it comes. */

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

// So long nobody types: then it is looked for.
const TYPING = 250;
// Whoever has scrolled no further than this sees the newest records, and is shown those that come.
const AT_TOP = 40;

class HistoryView extends View {
  #window = new RecordWindow();
  #opened = "";
  #typing = 0;
  // What is typed and not looked for yet.
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
    if (this.#scrollsTo !== null && !this.#window.isReading) requestAnimationFrame(() => this.#showMeant());
  }

  #showMeant() {
    this.#scrollsTo = null;
    const meant = /** @type {HTMLElement | null} */ (this.querySelector(".record[aria-current]"));
    meant?.scrollIntoView({ block: "center" });
    meant?.focus({ preventScroll: true });
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
        ? `Record ${at}, and what was around it.`
        : `Record ${at} is not here: it was removed with old ones, or is not yours to see.`,
      h("a", { href: address("/history") }, "Show the newest"),
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
      return h("p", { class: "muted", role: "status", key: "end" }, "Reading …");
    if (hasOlder)
      return h(
        "div",
        { class: "row", key: "end" },
        h(
          "button",
          { type: "button", disabled: isReading, onclick: () => this.#window.older() },
          records.length ? "Older records" : "Look further back",
        ),
        h(
          "span",
          { class: "small muted", role: "status" },
          records.length
            ? `${count(records.length, "record")} shown`
            : "None of the newer records is like that.",
        ),
      );
    if (trouble) return null;
    if (records.length)
      return h(
        "p",
        { class: "small muted", key: "end" },
        `${count(records.length, "record")}: the beginning.`,
      );
    return h(
      "div",
      { class: "empty", key: "end" },
      h("p", null, isFiltered(wanted) ? "No record is like that." : "Nothing has happened yet."),
      !isFiltered(wanted) && [
        h("p", null, "A first fleet makes the first records:"),
        commandText(["fleet", "apply", "fleet.toml"]),
      ],
    );
  }
}

define("fw-history-view", HistoryView);
