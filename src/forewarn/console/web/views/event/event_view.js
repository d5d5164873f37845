/** One event: state, notice of each machine, approvals, order and records. */

import { actionButtons } from "../../actions/action_buttons.js";
import { badge } from "../../elements/appearance.js";
import { asCommand } from "../../elements/as_command.js";
import { eventSentence, progressAppearance, promiseBadge, typeBadge } from "../../elements/event_facts.js";
import { fact } from "../../elements/fact.js";
import { groupLink, linkedIds, orderLink } from "../../elements/links.js";
import { notThere } from "../../elements/missing.js";
import { orderSubject, orderWords, stateBadges } from "../../elements/order_facts.js";
import { pageHead } from "../../elements/page_head.js";
import { reasons } from "../../elements/reasons.js";
import { term } from "../../elements/terms.js";
import { countdown, startCountdown, time } from "../../elements/times.js";
import { workProgress } from "../../elements/work_progress.js";
import { measured, span } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { api, copy } from "../../service/connected.js";
import { LiveAnswer } from "../../service/live_answer.js";
import { recordLog } from "../history/record_log.js";
import { reasonsOf } from "./event_reasons.js";
import "./event_strip.js";
import { approvalLedger, machineNotices } from "./event_tables.js";

/** @typedef {import("../../types").EventDetail} EventDetail */
/** @typedef {import("../../types").Order} Order */

// The most names in one request.
const NAMES_AT_ONCE = 200;

class EventView extends View {
  /** @type {LiveAnswer<{ event: EventDetail, order: Order }> | null} */
  #answer = null;

  opened() {
    super.opened();
    const id = this.names.id ?? "";
    this.#answer = new LiveAnswer(
      () => this.#read(id),
      (record) => record.event === this.#event?.id || record.order === this.#event?.order,
      this.ended,
    );
    this.watch(this.#answer, "changed");
    this.watch(copy, "orders", "machines");
  }

  get #event() {
    return this.#answer?.value?.event;
  }

  drawn() {
    const found = this.#answer?.value;
    if (!found) {
      return notThere("Event", this.#answer ?? { trouble: "", isMissing: false }, {
        href: address("/timeline"),
        label: "Show the timeline",
      });
    }
    const { event } = found;
    const order = copy.orders.get(event.order) ?? found.order;
    return [
      this.#head(event),
      this.#answer?.trouble &&
        h("p", { class: "notice", "data-tone": "danger", role: "alert" }, this.#answer.trouble),
      this.#standing(event),
      !event.ended_at && reasons(reasonsOf(event, order), order.waiting_until, order, event.id),
      h("fw-event-strip", { key: "strip", ".event": event }),
      h(
        "section",
        { class: "card", key: "machines", "aria-labelledby": "notice" },
        h("h2", { id: "notice" }, "Notice by machine"),
        machineNotices(event),
      ),
      h(
        "div",
        { class: "columns", key: "columns" },
        this.#facts(event),
        h(
          "section",
          { class: "card", "aria-labelledby": "ledger" },
          h("h2", { id: "ledger" }, "Approvals and deferrals"),
          approvalLedger(event),
        ),
      ),
      this.#work(order),
      h(
        "section",
        { class: "card", key: "records", "aria-labelledby": "records" },
        h("h2", { id: "records" }, "Records"),
        recordLog({ event: event.id }),
      ),
      asCommand(["event", "show", event.id]),
    ];
  }

  /** @param {string} id */
  async #read(id) {
    const { event } = await api.get("/v1/events/{id}", { path: { id } });
    const { order } = await api.get("/v1/orders/{id}", { path: { id: event.order } });
    await copy.machines.want({ name: event.resources.slice(0, NAMES_AT_ONCE) });
    return { event, order };
  }

  /** @param {EventDetail} event */
  #head(event) {
    return pageHead({
      path: h("a", { href: address("/timeline") }, "Timeline"),
      heading: h("h1", { class: "name" }, `${event.type}: ${eventSentence(event)}`),
      signs: [
        typeBadge(event),
        badge(progressAppearance(event)),
        promiseBadge(event),
        event.simulated &&
          badge({ tone: "info", glyph: "◌", label: "simulated: no real machine is touched" }),
      ],
      actions: !event.ended_at && actionButtons("event", event),
    });
  }

  /** @param {EventDetail} event */
  #standing(event) {
    if (event.ended_at) {
      return h(
        "p",
        { key: "standing" },
        "Ended ",
        time(event.ended_at),
        " (",
        countdown(event.ended_at),
        ")",
        event.why && [": ", h("span", { class: "name" }, linkedIds(event.why))],
        ".",
      );
    }
    if (event.started_at) {
      return h(
        "p",
        { key: "standing" },
        "Started ",
        time(event.started_at),
        " (",
        countdown(event.started_at),
        "). The event stays listed until the work on its machines is done, and for at least 90 s.",
      );
    }
    return h(
      "div",
      { key: "standing" },
      h(
        "p",
        null,
        "Starts not before ",
        time(event.not_before),
        " (",
        h("strong", null, startCountdown(event.not_before)),
        ").",
      ),
      postponement(event),
      !event.armed_at &&
        h(
          "p",
          null,
          "Not ",
          term("armed"),
          " yet: this event does not block other events until shortly before its start. Then it waits for the other update domains of its group.",
        ),
      event.awaits &&
        h(
          "p",
          null,
          "Starts earlier with the ",
          term("approved", "approval"),
          " of ",
          h("span", { class: "name" }, event.awaits),
          ".",
        ),
    );
  }

  /** @param {EventDetail} event */
  #facts(event) {
    return h(
      "section",
      { class: "card", "aria-labelledby": "facts" },
      h("h2", { id: "facts" }, "Details"),
      h(
        "dl",
        { class: "facts" },
        fact("Description", h("span", { class: "name" }, linkedIds(event.description || "–"))),
        fact(
          "Group",
          event.group
            ? [groupLink(event.group), ", ", term("update domain"), ` ${event.update_domain}`]
            : "a standalone machine",
        ),
        event.project && fact("Project", h("span", { class: "name" }, event.project)),
        fact("Requested by", event.source === "Platform" ? "the platform" : "the user"),
        fact("Order", orderLink(event.order)),
        fact("Approval by", APPROVAL[event.approval] ?? event.approval),
        fact("Announced", time(event.announced_at)),
        (event.armed_at || !event.ended_at) &&
          fact(
            "Armed",
            event.armed_at ? time(event.armed_at) : "not yet: blocks no other event",
            term("armed", "Armed"),
          ),
        fact("Announced impact", event.duration_seconds < 0 ? "unknown (-1)" : span(event.duration_seconds)),
        fact("Measured impact", impact(event)),
        fact("ID", h("span", { class: "mono" }, event.id)),
      ),
    );
  }

  /** @param {Order} order */
  #work(order) {
    return h(
      "section",
      { class: "card", key: "work", "aria-labelledby": "work" },
      h(
        "div",
        { class: "row" },
        h("h2", { id: "work" }, "Order"),
        orderLink(order.id),
        stateBadges(order),
        h(
          "span",
          { class: "small muted" },
          `${orderWords(order)} `,
          order.host ? "of host " : "of ",
          orderSubject(order),
          ", placed by ",
          h("span", { class: "name" }, order.by),
        ),
      ),
      workProgress(order),
    );
  }
}

/** Describe a postponement: the old NotBefore and the reason. @param {EventDetail} event */
function postponement({ postponed }) {
  if (!postponed) return null;
  return h(
    "p",
    null,
    "Postponed ",
    time(postponed.at),
    ". The first NotBefore was ",
    time(postponed.since),
    ". Reason: ",
    h("span", { class: "name" }, linkedIds(postponed.reason)),
    ".",
  );
}

/** @type {{ [rule: string]: string }} */
const APPROVAL = {
  any: "any machine of the group",
  all: "every machine of the event",
  leader: "the first machine of the event",
};

/** @param {EventDetail} event */
function impact(event) {
  if (event.impact_seconds !== null) return measured(event.impact_seconds);
  if (event.ended_at) return "none";
  return event.started_at ? "not ended yet" : "not started yet";
}

define("fw-event-view", EventView);
