/** The progress of each host in a rollout. */

import { copy } from "../service/connected.js";
import { isOver } from "./rollout_words.js";

/** @typedef {import("../types").Rollout} Rollout */
/** @typedef {import("../types").Order} Order */
/** @typedef {import("./appearance.js").Appearance} Appearance */
/** @typedef {keyof typeof LOOKS} Progress */

/** In the order that a host goes through them; failures come last. */
export const LOOKS = /** @satisfies {{ [progress: string]: Appearance }} */ ({
  planned: { tone: "idle", glyph: "·", label: "planned" },
  waits: { tone: "idle", glyph: "…", label: "waiting" },
  announced: { tone: "warn", glyph: "▲", label: "announced" },
  leaving: { tone: "move", glyph: "➜", label: "machines leave" },
  empty: { tone: "move", glyph: "○", label: "empty, waiting for its work" },
  working: { tone: "info", glyph: "◆", label: "working" },
  returning: { tone: "move", glyph: "↩", label: "machines come back" },
  done: { tone: "calm", glyph: "✓", label: "done" },
  failed: { tone: "danger", glyph: "✕", label: "failed" },
  lost: { tone: "danger", glyph: "?", label: "lost" },
  leftOut: { tone: "warn", glyph: "⊘", label: "skipped" },
});

/**
 * Return the progress of each host in a rollout.
 *
 * @param {Rollout} rollout
 * @returns {Map<string, Progress>}
 */
export function progressOf(rollout) {
  const done = new Set(rollout.hosts_done);
  const leftOut = new Set(rollout.given_up);
  const inTrouble = new Set(rollout.waiting.map((each) => each.what));
  /** @type {Map<string, Progress>} */
  const found = new Map();
  for (const wave of rollout.waves) {
    wave.hosts.forEach((host, place) => {
      const id = wave.orders[place];
      // The live copy has the open orders.
      const order = id ? copy.orders.get(id) : undefined;
      if (leftOut.has(host)) found.set(host, "leftOut");
      else if (copy.hosts?.get(host)?.state === "lost") found.set(host, "lost");
      else if (order) found.set(host, ofOrder(order));
      else if (id && !isOver(rollout) && inTrouble.has(host)) found.set(host, "failed");
      else if (done.has(host) || (id && !isOver(rollout))) found.set(host, "done");
      else found.set(host, id ? "leftOut" : "planned");
    });
  }
  return found;
}

/**
 * @param {Order} order
 * @returns {Progress}
 */
function ofOrder(order) {
  if (order.state === "failed") return "failed";
  if (order.state === "queued") return "waits";
  return order.mode ? ofService(order) : order.state === "announced" ? "announced" : "working";
}

/**
 * Return the progress of service work on a host.
 *
 * @param {Order} order
 * @returns {Progress}
 */
function ofService(order) {
  const stage = order.stages.find((each) => each.state !== "done");
  if (!stage) return "working";
  if (stage.kind === "host") {
    if (stage.state === "started") return "working";
    const wasEmptied = order.stages.some((each) => each.kind === "evacuate" && each.steps.length > 0);
    return wasEmptied ? "empty" : stage.state === "announced" ? "announced" : "waits";
  }
  if (stage.kind === "return") return "returning";
  return stage.state === "started" ? "leaving" : stage.state === "announced" ? "announced" : "waits";
}
