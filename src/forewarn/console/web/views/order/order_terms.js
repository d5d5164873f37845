/** The terms of an order. */

import { fact } from "../../elements/fact.js";
import { linkedIds, rolloutLink } from "../../elements/links.js";
import { orderSubject, orderWords } from "../../elements/order_facts.js";
import { countdown, time } from "../../elements/times.js";
import { span } from "../../page/formatting.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Order} Order */

/** @type {{ [driver: string]: string }} */
const DRIVERS = {
  simulated: "simulated: no real machine is touched",
  external: "external: another program does the work and reports it",
  hook: "hook: the command in the settings of the server",
};

/** @type {{ [mode in import("../../types").Schemas["ServiceMode"]]: string }} */
const MODES = {
  evacuate: "move to other hosts first if possible; the others restart with the host",
  "in-place": "all restart with the host",
};

/** @param {Order} order */
export function orderTerms(order) {
  return h(
    "section",
    { class: "card", key: "terms", "aria-labelledby": "terms" },
    h("h2", { id: "terms" }, "Terms"),
    h(
      "dl",
      { class: "facts" },
      fact("Action", orderWords(order)),
      (order.machine || order.host) && fact(order.machine ? "Machine" : "Host", orderSubject(order)),
      order.project && fact("Project", h("span", { class: "name" }, order.project)),
      fact("Placed by", [h("span", { class: "name" }, order.by), ", ", time(order.created_at)]),
      order.reason && fact("Reason", h("span", { class: "name" }, linkedIds(order.reason))),
      fact("Requested by", order.source === "Platform" ? "the platform" : "the user"),
      order.mode && fact("Machines", MODES[order.mode]),
      order.returning && fact("Afterwards", "machines move back, with a second notice"),
      fact("Driver", DRIVERS[order.driver] ?? h("span", { class: "name" }, order.driver)),
      order.host_driver &&
        fact(
          "Driver for the host itself",
          DRIVERS[order.host_driver] ?? h("span", { class: "name" }, order.host_driver),
        ),
      order.fenced && fact("Fencing confirmed", h("span", { class: "name" }, order.fenced)),
      order.despite_hold && fact("Holds", "ignored"),
      order.emergency && fact("Emergency", h("span", { class: "name" }, order.emergency)),
      order.together && fact("Together", h("span", { class: "name" }, order.together)),
      order.whole && !order.mode && fact("Whole host at once", "yes"),
      order.deadline && fact("Deadline", [time(order.deadline), " (", countdown(order.deadline), ")"]),
      order.expected_seconds !== null && fact("Expected duration", span(order.expected_seconds)),
      order.heartbeat_seconds !== null && fact("Heartbeat", span(order.heartbeat_seconds)),
      order.rollout && fact("Rollout", copy.may("survey") ? rolloutLink(order.rollout) : order.rollout),
      order.rehearsal && fact("Rehearsal", h("span", { class: "mono" }, order.rehearsal)),
      order.abandoned_by &&
        !order.ended_at &&
        fact(
          order.state === "cancelled" ? "Cancelled by" : "Being abandoned by",
          h("span", { class: "name" }, order.abandoned_by),
        ),
      order.ended_at && fact("Ended", time(order.ended_at)),
      fact("ID", h("span", { class: "mono" }, order.id)),
    ),
  );
}
