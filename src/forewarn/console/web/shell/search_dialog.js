/** The search for everything: a combobox in a dialog. `/`, Ctrl-K or a button opens it. */

import { messageOf } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { router } from "../page/router.js";
import { h } from "../page/tree.js";
import { asksServer, foundHits, joined, knownHits, MOST_OF_A_KIND } from "./search_hits.js";

/** @typedef {import("./search_hits.js").Hit} Hit */
/** @typedef {import("./search_hits.js").HitKind} HitKind */

// Milliseconds without typing before the server is searched.
const TYPING = 150;

const KINDS = /** @type {{ [kind in HitKind]: string }} */ ({
  machine: "Machines",
  host: "Hosts",
  group: "Groups",
  event: "Events",
  order: "Orders",
});

/** Open the search, unless a dialog is open. */
export function showSearch() {
  if (document.querySelector("dialog[open]")) return;
  document.body.append(document.createElement("fw-search-dialog"));
}

class SearchDialog extends LiveElement {
  #text = "";
  /** @type {Hit[]} */
  #hits = [];
  #active = 0;
  #isAsking = false;
  /** Whether the user pressed Enter before the server answered. */
  #isEntered = false;
  #trouble = "";
  #timer = 0;

  opened() {
    this.ended.addEventListener("abort", () => clearTimeout(this.#timer));
    router.addEventListener("moved", () => this.#close(), { signal: this.ended });
  }

  connectedCallback() {
    super.connectedCallback();
    this.querySelector("dialog")?.showModal();
  }

  drawn() {
    const kinds = Object.keys(KINDS).filter((kind) => this.#hits.some((hit) => hit.kind === kind));
    return h(
      "dialog",
      { class: "search-dialog", "aria-label": "Search", onclose: () => this.remove() },
      h(
        "div",
        { class: "row search-line" },
        h("input", {
          type: "search",
          role: "combobox",
          "aria-label": "Search machines, hosts, groups, events and orders",
          "aria-autocomplete": "list",
          "aria-expanded": String(this.#hits.length > 0),
          "aria-controls": "search-hits",
          "aria-activedescendant": this.#hits.length ? `search-hit-${this.#active}` : null,
          placeholder: "Name, address, vm-id, event or order",
          autocomplete: "off",
          spellcheck: "false",
          autofocus: true,
          ".value": this.#text,
          oninput: (/** @type {any} */ input) => this.#type(input.target.value),
          onkeydown: (/** @type {KeyboardEvent} */ press) => this.#press(press),
        }),
        h("button", { type: "button", class: "quiet", onclick: () => this.#close() }, "Close"),
      ),
      h("p", { class: "small muted", role: "status" }, this.#status()),
      h(
        "div",
        { id: "search-hits", role: "listbox", "aria-label": "Hits" },
        kinds.map((kind) => this.#group(/** @type {HitKind} */ (kind))),
      ),
    );
  }

  #status() {
    if (this.#trouble)
      return `The search on the server failed: ${this.#trouble}. Edit the text to try again.`;
    if (!this.#text) return "Type a part of a name, an address or an id. Enter opens the selected hit.";
    if (this.#isAsking) return "Searching …";
    if (!this.#hits.length) return `No name, address or id contains “${this.#text}”.`;
    if (this.#hits.length === 1) return "1 hit. Enter opens it.";
    const isCut = Object.values(Object.groupBy(this.#hits, (hit) => hit.kind)).some(
      (hits) => hits.length === MOST_OF_A_KIND,
    );
    return `${this.#hits.length} hits${isCut ? `, at most ${MOST_OF_A_KIND} of a kind: type more to narrow the search` : ""}.`;
  }

  /** @param {HitKind} kind */
  #group(kind) {
    return h(
      "div",
      { key: kind, role: "group", "aria-label": KINDS[kind] },
      h("div", { class: "small muted search-kind", "aria-hidden": "true" }, KINDS[kind]),
      this.#hits.map((hit, place) => hit.kind === kind && this.#option(hit, place)),
    );
  }

  /**
   * @param {Hit} hit
   * @param {number} place
   */
  #option(hit, place) {
    return h(
      "a",
      {
        key: hit.href,
        id: `search-hit-${place}`,
        role: "option",
        tabindex: "-1",
        class: "search-hit",
        href: hit.href,
        "aria-selected": String(place === this.#active),
      },
      h("span", { class: "name" }, hit.name),
      h("span", { class: "small muted name" }, hit.about),
    );
  }

  /** @param {string} text */
  #type(text) {
    this.#text = text.trim();
    this.#active = 0;
    this.#isEntered = false;
    this.#trouble = "";
    const known = knownHits(this.#text);
    this.#hits = known;
    clearTimeout(this.#timer);
    this.#isAsking = asksServer(this.#text);
    if (this.#isAsking) this.#timer = setTimeout(() => this.#ask(this.#text, known), TYPING);
    this.redraw();
  }

  /**
   * @param {string} text
   * @param {readonly Hit[]} known
   */
  async #ask(text, known) {
    try {
      const found = await foundHits(text);
      if (text !== this.#text) return;
      this.#hits = joined(known, found, text);
    } catch (error) {
      if (text !== this.#text) return;
      this.#trouble = messageOf(error);
    }
    this.#isAsking = false;
    if (this.#isEntered && this.#hits.length === 1) this.#open();
    this.redraw();
  }

  /** @param {KeyboardEvent} press */
  #press(press) {
    const last = this.#hits.length - 1;
    if (press.key === "ArrowDown") this.#mark(this.#active < last ? this.#active + 1 : 0);
    else if (press.key === "ArrowUp") this.#mark(this.#active > 0 ? this.#active - 1 : last);
    else if (press.key === "Enter") this.#enter();
    // By default, Escape would only clear the field.
    else if (press.key === "Escape") this.#close();
    else return;
    press.preventDefault();
  }

  /** @param {number} place */
  #mark(place) {
    this.#active = Math.max(0, place);
    this.redraw();
    requestAnimationFrame(() =>
      this.querySelector(`#search-hit-${this.#active}`)?.scrollIntoView({ block: "nearest" }),
    );
  }

  #enter() {
    if (this.#isAsking) this.#isEntered = true;
    else this.#open();
  }

  #open() {
    const hit = this.#hits[this.#active];
    if (hit) router.go(hit.href);
  }

  #close() {
    this.querySelector("dialog")?.close();
  }
}

define("fw-search-dialog", SearchDialog);
