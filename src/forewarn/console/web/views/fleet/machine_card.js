import { badge, eventAppearance, machineAppearance } from "../../elements/appearance.js";
import { importedFrom } from "../../elements/sources.js";
import { countdown, startCountdown } from "../../elements/times.js";
import { define, LiveElement } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Machine} Machine */

const MARGIN = 8;
// Delays in milliseconds: a pointer that only passes by opens no card.
const SHOW_AFTER = 120;
const HIDE_AFTER = 150;

/** A summary of the machine whose tile has the pointer or the focus. Escape closes it. */
class MachineCard extends LiveElement {
  /** @type {Machine | null} */
  #machine = null;
  /** @type {HTMLElement | null} */
  #tile = null;
  #timer = 0;

  opened() {
    const { ended: signal } = this;
    const parent = /** @type {HTMLElement} */ (this.parentElement);
    for (const type of ["pointerover", "focusin"]) {
      parent.addEventListener(type, (event) => this.#at(/** @type {Element} */ (event.target)), { signal });
    }
    for (const type of ["pointerleave", "focusout"])
      parent.addEventListener(type, () => this.#plan(null), { signal });
    addEventListener("keydown", (press) => press.key === "Escape" && this.#show(null), { signal });
    addEventListener("scroll", () => this.#show(null), { signal, passive: true });
    this.watch(copy, "machines", "events");
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
    this.id = "machine-card";
    this.setAttribute("role", "tooltip");
    this.hidden = true;
  }

  drawn() {
    if (!this.#machine) return null;
    const machine = copy.machines.get(this.#machine.project, this.#machine.name) ?? this.#machine;
    const events = copy.eventsOf(machine);
    return [
      h("strong", { class: "name" }, machine.name),
      badge(machineAppearance(machine, events)),
      h(
        "span",
        { class: "muted small" },
        machine.group && [
          "group ",
          h("span", { class: "name" }, machine.group),
          `, update domain ${machine.update_domain}`,
        ],
        machine.host && [machine.group && " · ", "on ", h("span", { class: "name" }, machine.host)],
      ),
      importedFrom(machine.source),
      events.map((event) =>
        h(
          "div",
          { key: event.id, class: "card-event" },
          h("span", { class: "row" }, h("strong", null, event.type), badge(eventAppearance(event))),
          event.status === "Scheduled" &&
            h("span", { class: "small" }, "not before ", startCountdown(event.not_before)),
          event.started_at && h("span", { class: "small" }, "started ", countdown(event.started_at)),
          event.description && h("span", { class: "small" }, event.description),
          event.awaits && h("span", { class: "small" }, event.awaits),
        ),
      ),
    ];
  }

  /** @param {Element} target */
  #at(target) {
    if (this.contains(target)) clearTimeout(this.#timer);
    else this.#plan(target.closest?.(".tile[data-machine]"));
  }

  /** @param {Element | null | undefined} tile */
  #plan(tile) {
    if (tile === this.#tile && tile) return clearTimeout(this.#timer);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#show(/** @type {HTMLElement | null} */ (tile ?? null)),
      tile ? SHOW_AFTER : HIDE_AFTER,
    );
  }

  /** @param {HTMLElement | null} tile */
  #show(tile) {
    clearTimeout(this.#timer);
    this.#tile?.removeAttribute("aria-describedby");
    const [project = "", ...name] = (tile?.dataset.machine ?? "").split("/");
    this.#machine = copy.machines.get(project, name.join("/")) ?? null;
    this.#tile = this.#machine ? tile : null;
    this.hidden = !this.#tile;
    if (!this.#tile) return;
    this.#tile.setAttribute("aria-describedby", this.id);
    this.redraw();
    requestAnimationFrame(() => this.#place());
  }

  /** Place the card below the tile, or above it near the bottom of the window. */
  #place() {
    if (!this.#tile) return;
    const tile = this.#tile.getBoundingClientRect();
    const { width, height } = this.getBoundingClientRect();
    const below = tile.bottom + MARGIN / 2;
    const top =
      below + height + MARGIN > innerHeight ? Math.max(MARGIN, tile.top - height - MARGIN / 2) : below;
    const left = Math.max(MARGIN, Math.min(tile.left, document.documentElement.clientWidth - width - MARGIN));
    this.style.setProperty("top", `${top}px`);
    this.style.setProperty("left", `${left}px`);
  }
}

define("fw-machine-card", MachineCard);
