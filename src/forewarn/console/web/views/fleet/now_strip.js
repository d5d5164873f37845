/** The first part of the fleet view: everything that needs a person now. */

import { hostBadges, workAppearance, badge } from "../../elements/appearance.js";
import { shortSubject } from "../../elements/event_facts.js";
import { hostLink } from "../../elements/links.js";
import { failedHostSteps, failedSteps, orderWords } from "../../elements/order_facts.js";
import { term } from "../../elements/terms.js";
import { countdown } from "../../elements/times.js";
import { count } from "../../page/formatting.js";
import { define, LiveElement } from "../../page/live_element.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { clock, copy } from "../../service/connected.js";
import { nextStart, nowItems } from "./now_items.js";

/** @typedef {import("../../types").Child} Child */
/** @typedef {import("./now_items.js").NowItem} NowItem */
/** @typedef {import("./now_items.js").NowKind} NowKind */

const SHOWN = 3;
// The views of hosts, orders and events list all of them.
const LISTED = 50;

/** @type {{ [kind in NowKind]: { tone: import("../../elements/appearance.js").Tone, glyph: string, label: () => Child, all: string } }} */
const KINDS = {
  failed: { tone: "danger", glyph: "✕", label: () => term("failed"), all: "/orders" },
  stuck: { tone: "warn", glyph: "!", label: () => term("stuck"), all: "/orders" },
  late: { tone: "warn", glyph: "◔", label: () => term("late"), all: "/timeline" },
  held: { tone: "warn", glyph: "‖", label: () => term("held"), all: "/hosts" },
  soon: { tone: "info", glyph: "▲", label: () => "starting in 15 min", all: "/timeline" },
};

class NowStrip extends LiveElement {
  opened() {
    this.watch(copy, "hosts", "orders", "events", "holds", "rollouts", "loaded");
    this.watch(clock, "tick");
  }

  drawn() {
    const items = nowItems();
    const kinds = /** @type {NowKind[]} */ (Object.keys(KINDS));
    const isCalm = kinds.every((kind) => !items[kind].length);
    return h(
      "section",
      { class: isCalm ? "now-strip calm" : "now-strip", "aria-labelledby": "now" },
      h("h2", { id: "now" }, "Now"),
      isCalm
        ? calm()
        : h(
            "ul",
            { class: "now-parts" },
            kinds.map((kind) => part(kind, items[kind])),
          ),
    );
  }
}

function calm() {
  const next = nextStart();
  return h(
    "p",
    { "data-tone": "calm" },
    h("span", { class: "now-glyph", "aria-hidden": "true" }, "✓ "),
    h("strong", null, "Nothing needs you. "),
    "Nothing is failed, stuck, late or held. ",
    next ? ["The next event starts ", countdown(next), "."] : "No event is announced.",
  );
}

/**
 * @param {NowKind} kind
 * @param {NowItem[]} items
 */
function part(kind, items) {
  const { tone, glyph, label, all } = KINDS[kind];
  return h(
    "li",
    {
      key: kind,
      class: "now-part",
      "data-kind": kind,
      "data-tone": items.length ? tone : "idle",
      "data-none": !items.length,
    },
    h(
      "div",
      { class: "now-count" },
      h("span", { class: "now-glyph", "aria-hidden": "true" }, glyph),
      h("strong", { class: "number" }, items.length.toLocaleString("en")),
      h("span", null, " ", label()),
    ),
    items.length > 0 && h("ul", { class: "now-items" }, items.slice(0, SHOWN).map(line)),
    items.length > SHOWN &&
      h(
        "details",
        { class: "small" },
        h("summary", null, count(items.length - SHOWN, "more", "more")),
        h("ul", { class: "now-items" }, items.slice(SHOWN, LISTED).map(line)),
        items.length > LISTED && h("a", { href: address(all) }, "Show all"),
      ),
  );
}

/** @param {NowItem} item */
function line(item) {
  if ("host" in item) {
    const { host } = item;
    const why = host.reachable === false ? host.unreachable_because : null;
    return h(
      "li",
      { key: `host ${host.name}` },
      hostLink(host.name),
      " ",
      hostBadges(host),
      host.carried > 0 && h("span", { class: "small" }, ` ${count(host.carried, "machine")}`),
      why && h("span", { class: "now-why name", title: why }, why),
    );
  }
  if ("order" in item) return orderLine(item.order);
  if ("event" in item) {
    const { event } = item;
    return h(
      "li",
      { key: event.id },
      h("a", { class: "name", href: address("/events/{id}", { id: event.id }) }, shortSubject(event)),
      " ",
      h("span", { class: "small" }, countdown(event.not_before)),
    );
  }
  if ("hold" in item) return holdLine(item.hold);
  const { rollout } = item;
  return h(
    "li",
    { key: rollout.id },
    h("a", { href: address("/rollouts/{id}", { id: rollout.id ?? "" }) }, `Rollout ${rollout.action}`),
    " ",
    badge(workAppearance("paused")),
    rollout.why && h("span", { class: "now-why name", title: rollout.why }, rollout.why),
  );
}

/** @param {import("../../types").Order} order */
function orderLine(order) {
  const failed = failedSteps(order)[0] ?? failedHostSteps(order)[0];
  const waits = order.waiting[0];
  const why = failed?.why ?? order.why ?? (waits ? `${waits.what}: ${waits.reason}` : "");
  return h(
    "li",
    { key: order.id },
    h(
      "a",
      { class: "name", href: address("/orders/{id}", { id: order.id }) },
      `${orderWords(order)} of ${order.machine ?? order.host ?? "–"}`,
    ),
    why && h("span", { class: "now-why name", title: why }, why),
  );
}

/** @param {import("../../types").Hold} hold */
function holdLine(hold) {
  const href = hold.host
    ? address("/hosts/{name}", { name: hold.host })
    : address("/fleet", {}, { project: hold.project });
  return h(
    "li",
    { key: hold.id },
    h("a", { class: "name", href }, hold.reach),
    h("span", { class: "now-why name", title: hold.reason }, hold.reason),
  );
}

define("fw-now-strip", NowStrip);
