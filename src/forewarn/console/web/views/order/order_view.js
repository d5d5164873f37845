/** One order: stages and steps, reasons for waiting, events, terms and records. */

import { linkedIds } from "../../elements/links.js";
import { actionButtons } from "../../actions/action_buttons.js";
import { badge } from "../../elements/appearance.js";
import { asCommand } from "../../elements/as_command.js";
import { notThere } from "../../elements/missing.js";
import {
  driverBadge,
  failedHostSteps,
  failedSteps,
  orderSubject,
  orderWords,
  stateBadges,
} from "../../elements/order_facts.js";
import { pageHead } from "../../elements/page_head.js";
import { reasons } from "../../elements/reasons.js";
import { countdown, time } from "../../elements/times.js";
import { workProgress } from "../../elements/work_progress.js";
import { define } from "../../page/live_element.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { api, copy } from "../../service/connected.js";
import { LiveAnswer } from "../../service/live_answer.js";
import { recordLog } from "../history/record_log.js";
import {
  brokenPromisesNotice,
  failureNotice,
  externalWorkNotice,
  unknownStepsNotice,
} from "./order_notices.js";
import { orderEvents } from "./order_events.js";
import { orderTerms } from "./order_terms.js";

/** @typedef {import("../../types").OrderDetail} OrderDetail */
/** @typedef {import("../../types").EventDetail} EventDetail */
/** @typedef {import("../../types").Record} Record */
/** @typedef {{ order: OrderDetail, events: readonly EventDetail[], broken: readonly Record[] }} Shown */

class OrderView extends View {
  /** @type {LiveAnswer<Shown> | null} */
  #answer = null;

  opened() {
    super.opened();
    const id = this.names.id ?? "";
    this.#answer = new LiveAnswer(
      () => read(id),
      (record) => record.order === this.#answer?.value?.order.id || record.topics.includes("holds"),
      this.ended,
    );
    this.watch(this.#answer, "changed");
    this.watch(copy, "orders");
  }

  drawn() {
    const found = this.#answer?.value;
    if (!found) {
      return notThere("Order", this.#answer ?? { trouble: "", isMissing: false }, {
        href: address("/orders"),
        label: "Show all orders",
      });
    }
    const { events, broken } = found;
    // Reasons can end without a record, so the live copy is more recent than the answer.
    const current = copy.orders.get(found.order.id);
    const order = current ? { ...found.order, ...current } : found.order;
    return [
      this.#head(order),
      this.#answer?.trouble &&
        h(
          "p",
          { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" },
          this.#answer.trouble,
        ),
      this.#standing(order),
      failedSteps(order).length + failedHostSteps(order).length > 0 && failureNotice(order),
      !order.ended_at && reasons(otherReasons(order), order.waiting_until, order),
      unknownStepsNotice(order),
      externalWorkNotice(order),
      brokenPromisesNotice(broken),
      h(
        "section",
        { class: "card", key: "work", "aria-labelledby": "stages" },
        h("h2", { id: "stages" }, "Stages and steps"),
        workProgress(order, events),
      ),
      orderEvents(order, events),
      orderTerms(order),
      h(
        "section",
        { class: "card", key: "records", "aria-labelledby": "records" },
        h("h2", { id: "records" }, "Records"),
        recordLog({ order: order.id }),
      ),
      asCommand(["order", "show", order.id]),
    ];
  }

  /** @param {OrderDetail} order */
  #head(order) {
    return pageHead({
      path: h("a", { href: address("/orders") }, "Orders"),
      heading: h(
        "h1",
        null,
        `${capital(orderWords(order))} of ${order.host ? "host " : ""}`,
        orderSubject(order),
      ),
      signs: [
        stateBadges(order),
        driverBadge(order),
        order.emergency && badge({ tone: "danger", glyph: "!", label: "emergency" }),
        order.together && badge({ tone: "danger", glyph: "!", label: "together" }),
      ],
      actions: !order.ended_at && actionButtons("order", order),
    });
  }

  /** @param {OrderDetail} order */
  #standing(order) {
    const since = order.ended_at ?? order.created_at;
    return h(
      "p",
      { key: "standing" },
      order.ended_at ? "Ended " : "Placed ",
      time(since),
      " (",
      countdown(since),
      order.ended_at ? "), placed by " : ") by ",
      h("span", { class: "name" }, order.by),
      order.reason && [", reason: ", h("span", { class: "name" }, linkedIds(order.reason))],
      ".",
      order.why && [" ", h("span", { class: "name" }, linkedIds(capital(order.why))), "."],
    );
  }
}

/** Return the reasons for waiting without those of failed steps, which have a notice of their own. @param {OrderDetail} order */
function otherReasons(order) {
  const failed = new Set([
    ...failedSteps(order).map((step) => step.machine),
    ...failedHostSteps(order).map((step) => `${step.task} of host ${order.host}`),
  ]);
  return order.waiting.filter((each) => !(failed.has(each.what) && each.reason.startsWith("failed")));
}

/**
 * @param {string} id
 * @returns {Promise<Shown>}
 */
async function read(id) {
  const [{ order, events }, { records }] = await Promise.all([
    api.get("/v1/orders/{id}", { path: { id } }),
    api.get("/v1/history", { query: { order: id, kind: ["promise-broken"] } }),
  ]);
  return { order, events, broken: records };
}

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

define("fw-order-view", OrderView);
