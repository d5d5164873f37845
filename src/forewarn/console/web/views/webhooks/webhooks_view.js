/** Webhooks with their delivery state. */

import { actionButtons } from "../../actions/action_buttons.js";
import { performed } from "../../actions/performed.js";
import { badge } from "../../elements/appearance.js";
import { asCommand } from "../../elements/as_command.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { time } from "../../elements/times.js";
import { count, listed, shortId, span } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { api } from "../../service/connected.js";
import { LiveAnswer } from "../../service/live_answer.js";

/** @typedef {import("../../types").Webhook} Webhook */
/** @typedef {import("../../elements/appearance.js").Appearance} Appearance */

// Deliveries leave no records, so undelivered webhooks are polled, in milliseconds.
const LOOK_AGAIN = 5000;

class WebhooksView extends View {
  /** @type {LiveAnswer<Webhook[]> | null} */
  #webhooks = null;

  opened() {
    super.opened();
    const webhooks = new LiveAnswer(
      () => api.all("/v1/webhooks", "webhooks"),
      () => true,
      this.ended,
    );
    this.#webhooks = webhooks;
    this.watch(webhooks, "changed");
    performed.addEventListener("done", () => webhooks.again(), { signal: this.ended });
    const timer = setInterval(() => webhooks.value?.some(isOwed) && webhooks.again(), LOOK_AGAIN);
    this.ended.addEventListener("abort", () => clearInterval(timer));
  }

  drawn() {
    const { value: webhooks, trouble = "" } = this.#webhooks ?? { value: null };
    return [
      h("div", { class: "row", key: "head" }, h("h1", null, "Webhooks"), actionButtons("webhooks", null)),
      h(
        "p",
        { key: "about", class: "muted" },
        "forewarn sends each record of the history to these addresses as a signed POST. ",
        "A failed call is retried, and no record is skipped.",
      ),
      trouble && h("p", { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" }, trouble),
      !webhooks && !trouble && h("p", { class: "muted", role: "status", key: "reading" }, "Loading …"),
      webhooks &&
        (webhooks.length
          ? stackingTable("Webhooks", ["Address", "Records", "Delivery", "Created", ""], webhooks.map(row), {
              isCard: true,
            })
          : h("div", { class: "empty", key: "none" }, h("p", null, "No webhooks."))),
      asCommand(["webhook", "list"]),
    ];
  }
}

/** @param {Webhook} webhook */
const isOwed = (webhook) => webhook.behind > 0 || webhook.failing_since !== null;

/** @param {Webhook} webhook */
const row = (webhook) =>
  h(
    "tr",
    { key: webhook.id },
    cell("Address", [
      h("span", { class: "name" }, webhook.url),
      h("div", { class: "small muted" }, shortId(webhook.id)),
    ]),
    cell("Records", [
      webhook.project ? ["of project ", h("span", { class: "name" }, webhook.project)] : "of the whole fleet",
      h("div", { class: "small muted" }, webhook.kinds.length ? listed(webhook.kinds) : "all kinds"),
    ]),
    cell("Delivery", delivery(webhook)),
    cell("Created", [
      time(webhook.created_at),
      h("div", { class: "small muted" }, "by ", h("span", { class: "name" }, webhook.by)),
    ]),
    cell("", actionButtons("webhook", webhook)),
  );

/** @param {Webhook} webhook */
function delivery(webhook) {
  const owed = webhook.behind
    ? `${count(webhook.behind, "record")} not delivered yet`
    : "all records delivered";
  if (!webhook.failing_since)
    return [badge(webhook.behind ? BEHIND : WELL), h("div", { class: "small" }, owed)];
  const again = webhook.next_try_seconds;
  return [
    badge(FAILING),
    h("div", { class: "small name" }, webhook.error),
    h(
      "div",
      { class: "small" },
      `${count(webhook.failures, "failed call")} since `,
      time(webhook.failing_since),
      again === null ? "" : `; next call in ${span(again)}`,
    ),
    h("div", { class: "small" }, owed),
  ];
}

const WELL = /** @type {Appearance} */ ({ tone: "calm", glyph: "✓", label: "up to date" });
const BEHIND = /** @type {Appearance} */ ({ tone: "info", glyph: "…", label: "behind" });
const FAILING = /** @type {Appearance} */ ({ tone: "danger", glyph: "✕", label: "failing" });

define("fw-webhooks-view", WebhooksView);
