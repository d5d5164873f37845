/** The terms of a rollout, and the notice given to guests. */

import { doneBy } from "../../elements/rollout_words.js";
import { time } from "../../elements/times.js";
import { count, span } from "../../page/formatting.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../types").Rollout} Rollout */
/** @typedef {import("../../types").Child} Child */

/** @param {Rollout} rollout */
export function rolloutFacts(rollout) {
  /** @type {[string, Child][]} */
  const facts = [
    ["Begun", time(rollout.created_at)],
    ["Placed by", h("span", { class: "name" }, rollout.by)],
    ["Reason", rollout.reason],
    ["Ended", time(rollout.ended_at)],
    ["Action", rollout.action === "service" ? `service (${rollout.mode ?? "evacuate"})` : rollout.action],
    ["Hosts at once", rollout.hosts_at_once],
    ["Gap between waves", rollout.gap_seconds ? span(rollout.gap_seconds) : "none"],
    ["Deadline", time(rollout.deadline)],
    ["Expected duration", rollout.expected_seconds ? span(rollout.expected_seconds) : null],
    ["Health timeout", span(rollout.health_seconds)],
    ["Require a poll", rollout.require_poll ? "yes" : null],
    ["Canary hosts", canaries(rollout)],
    ["Allowed failures", rollout.max_failures === "0" ? null : rollout.max_failures],
    ["Whole host at once", rollout.whole ? "yes" : null],
    [
      "Together",
      rollout.together &&
        `update domains are disturbed together, a broken promise. Reason: ${rollout.together}`,
    ],
    ["Driver", doneBy(rollout)],
    ["Version", rollout.version],
  ];
  return h(
    "section",
    { class: "card", "aria-labelledby": "terms-head", key: "terms" },
    h("h2", { id: "terms-head" }, "Terms"),
    h(
      "dl",
      { class: "facts" },
      facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)]),
    ),
  );
}

/** @param {Rollout} rollout */
export function noticeGiven({ notice }) {
  const { least_seconds: least, late, never } = notice;
  const isBroken = late > 0 || never > 0;
  return h(
    "section",
    { class: "card", "aria-labelledby": "notice-head", key: "notice" },
    h("h2", { id: "notice-head" }, "Notice given"),
    h(
      "dl",
      { class: "facts" },
      h("dt", null, "Shortest notice"),
      h("dd", null, least === null ? "no poll yet" : span(least)),
      h("dt", null, "Notified late"),
      h("dd", null, late ? count(late, "machine") : "none"),
      h("dt", null, "Never notified"),
      h("dd", null, never ? count(never, "machine") : "none"),
    ),
    isBroken && h("p", { class: "small muted" }, "These machines poll too seldom or not at all."),
  );
}

/** @param {Rollout} rollout */
function canaries(rollout) {
  if (!rollout.canary) return null;
  const soak = rollout.soak_seconds ? `, with a soak time of ${span(rollout.soak_seconds)}` : "";
  return `the first ${rollout.canary}${soak}`;
}
