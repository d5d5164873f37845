/** What a rollout was told to do, by whom, and what notice its guests have had. */

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
    ["By", h("span", { class: "name" }, rollout.by)],
    ["Reason", rollout.reason],
    ["Ended", time(rollout.ended_at)],
    ["Action", rollout.action === "service" ? `service (${rollout.mode ?? "evacuate"})` : rollout.action],
    ["Hosts at once", rollout.hosts_at_once],
    ["Gap", rollout.gap_seconds ? span(rollout.gap_seconds) : "none"],
    ["Deadline", time(rollout.deadline)],
    ["A host takes", rollout.expected_seconds ? span(rollout.expected_seconds) : null],
    ["Healthy within", `${span(rollout.health_seconds)} of its work`],
    ["Polls", rollout.require_poll ? "a machine that polled before must have polled again" : null],
    ["Canaries", canaries(rollout)],
    [
      "Failures",
      rollout.max_failures === "0" ? null : `up to ${rollout.max_failures} of its hosts are left out`,
    ],
    ["In one go", rollout.whole ? "each host, all its machines together" : null],
    ["Together", rollout.together && `two update domains at once, a broken promise: ${rollout.together}`],
    ["Done by", doneBy(rollout)],
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
      h("dt", null, "The least"),
      h("dd", null, least === null ? "none has been read yet" : span(least)),
      h("dt", null, "Read late"),
      h("dd", null, late ? count(late, "machine") : "by none"),
      h("dt", null, "Never read"),
      h("dd", null, never ? count(never, "machine") : "by none"),
    ),
    isBroken &&
      h(
        "p",
        { class: "small muted" },
        "A machine that reads late, or never, polls too seldom or not at all.",
      ),
  );
}

/** @param {Rollout} rollout */
function canaries(rollout) {
  if (!rollout.canary) return null;
  const soak = rollout.soak_seconds ? `, then ${span(rollout.soak_seconds)} before the others` : "";
  return `the first ${rollout.canary} of its hosts${soak}`;
}
