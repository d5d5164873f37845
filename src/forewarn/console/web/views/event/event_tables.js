/** The notice of each machine of an event, its approvals and its deferral. */

import { badge, machineAppearance } from "../../elements/appearance.js";
import { promisedSeconds } from "../../elements/event_facts.js";
import { machineLink } from "../../elements/links.js";
import { time } from "../../elements/times.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { measured, span } from "../../page/formatting.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").EventDetail} EventDetail */
/** @typedef {EventDetail["notices"][number]} MachineNotice */
/** @typedef {import("../../elements/appearance.js").Appearance} Appearance */

/** @param {EventDetail} event */
export function machineNotices(event) {
  if (!event.notices.length) return h("p", { class: "muted" }, "No machine is left in this event.");
  const isMeasured = event.notices.some((notice) => notice.away_seconds !== null);
  return stackingTable(
    "Machines of the event",
    [
      ...["Machine", "State now", "First poll", "Promised notice", "Delivered notice", "Promise"],
      ...(isMeasured ? ["Away"] : []),
    ],
    event.notices.map((notice) => noticeRow(notice, event, isMeasured)),
  );
}

/**
 * @param {MachineNotice} notice
 * @param {EventDetail} event
 * @param {boolean} isMeasured
 */
function noticeRow(notice, event, isMeasured) {
  const machine = copy.machines.get(event.project ?? "", notice.machine);
  const promised = promisedSeconds(event);
  return h(
    "tr",
    { key: notice.machine },
    cell("Machine", machineLink(notice.machine, event.project)),
    cell("State now", machine ? badge(machineAppearance(machine, copy.eventsOf(machine))) : null),
    cell("First poll", time(notice.sent_at) ?? (event.ended_at ? "never" : "not yet")),
    cell("Promised notice", promised ? span(promised) : "none"),
    cell("Delivered notice", notice.notice_seconds === null ? null : span(notice.notice_seconds)),
    cell("Promise", badge(noticeAppearance(notice, event))),
    isMeasured && cell("Away", notice.away_seconds === null ? null : measured(notice.away_seconds)),
  );
}

/**
 * @param {MachineNotice} notice
 * @param {EventDetail} event
 * @returns {Appearance}
 */
function noticeAppearance(notice, event) {
  const isTold = notice.sent_at !== null;
  if (!event.started_at) {
    if (event.ended_at) return { tone: "idle", glyph: "⊘", label: "cancelled" };
    return isTold
      ? { tone: "calm", glyph: "✓", label: "notified" }
      : { tone: "warn", glyph: "…", label: "not notified yet" };
  }
  if (!promisedSeconds(event)) return { tone: "idle", glyph: "○", label: "none promised" };
  if (!isTold && !event.ended_at) return { tone: "warn", glyph: "…", label: "not notified so far" };
  if (notice.late) return { tone: "danger", glyph: "!", label: "service was away" };
  if (!isTold) return { tone: "danger", glyph: "✕", label: "never notified" };
  return { tone: "calm", glyph: "✓", label: "notified" };
}

/** @param {EventDetail} event */
export function approvalLedger(event) {
  return [
    event.approvals.length
      ? stackingTable(
          "Approvals",
          ["Approved by", "As", "At", "From"],
          event.approvals.map((approval, place) =>
            h(
              "tr",
              { key: place },
              cell("Approved by", h("span", { class: "name" }, approval.by)),
              cell("As", AS[approval.kind] ?? approval.kind),
              cell("At", time(approval.at)),
              cell("From", approval.address),
            ),
          ),
        )
      : h("p", { class: "muted" }, "No approvals."),
    !event.ended_at &&
      !event.started_at &&
      event.awaited.length > 0 &&
      h("p", null, "Waiting for: ", awaited(event)),
    deferral(event),
  ];
}

/** @param {EventDetail} event */
const awaited = (event) =>
  h("span", { class: "name" }, event.awaited.join(event.approval === "any" ? " or " : ", "));

/** @type {{ [kind: string]: string }} */
const AS = { guest: "a guest", person: "a person", policy: "a policy" };

/** @param {EventDetail} event */
function deferral(event) {
  const { deferred } = event;
  if (!deferred) return null;
  return h(
    "p",
    { key: "deferral" },
    "Deferred by ",
    h("span", { class: "name" }, deferred.by),
    " ",
    time(deferred.at),
    " until ",
    time(deferred.until),
    `, by ${span(deferred.granted_seconds)}`,
    deferred.asked_seconds !== deferred.granted_seconds && ` (requested: ${span(deferred.asked_seconds)})`,
    ".",
  );
}
