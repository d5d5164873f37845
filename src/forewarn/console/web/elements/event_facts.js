/** Descriptions of events: the type, the effect, and the promised and delivered notice. */

import { count, listed, span } from "../page/formatting.js";
import { badge } from "./appearance.js";

/** @typedef {import("../types").ListedEvent} ListedEvent */
/** @typedef {import("../types").EventDetail} EventDetail */
/** @typedef {import("./appearance.js").Appearance} Appearance */
/** @typedef {{ least_seconds: number | null, late: number, never: number, so_far: boolean }} Notice */
/** @typedef {import("../types").EventType} EventType */
/** @typedef {ListedEvent & { notice?: Notice | null, notices?: EventDetail["notices"] }} AnyEvent */

/** The effect of a type in the infinitive, the present and the past. @typedef {readonly [string, string, string]} Forms */

/** @type {{ [type in EventType]: Appearance & { one: Forms, several: Forms } }} */
const TYPES = {
  Freeze: {
    tone: "info",
    glyph: "❄",
    label: "Freeze",
    one: ["pause", "pauses", "paused"],
    several: ["pause", "pause", "paused"],
  },
  Reboot: {
    tone: "restart",
    glyph: "↻",
    label: "Reboot",
    one: ["restart", "restarts", "restarted"],
    several: ["restart", "restart", "restarted"],
  },
  Redeploy: {
    tone: "move",
    glyph: "➜",
    label: "Redeploy",
    one: ["move to another host", "moves to another host", "moved to another host"],
    several: ["move to other hosts", "move to other hosts", "moved to other hosts"],
  },
  Preempt: {
    tone: "warn",
    glyph: "▼",
    label: "Preempt",
    one: ["be evicted", "is evicted", "was evicted"],
    several: ["be evicted", "are evicted", "were evicted"],
  },
  Terminate: {
    tone: "warn",
    glyph: "■",
    label: "Terminate",
    one: ["be deleted", "is deleted", "was deleted"],
    several: ["be deleted", "are deleted", "were deleted"],
  },
  SpotRebalanceRecommendation: {
    tone: "idle",
    glyph: "◇",
    label: "SpotRebalanceRecommendation",
    one: ["possibly be evicted soon", "may be evicted soon", "got a warning of eviction"],
    several: ["possibly be evicted soon", "may be evicted soon", "got a warning of eviction"],
  },
};

export const EVENT_TYPES = /** @type {EventType[]} */ (Object.keys(TYPES));

/**
 * Return the appearance of an event type.
 *
 * @param {EventType} type
 * @returns {Appearance}
 */
export const typeAppearance = (type) => TYPES[type];

/**
 * Return the appearance of an event's progress.
 *
 * @param {AnyEvent} event
 * @returns {Appearance}
 */
export function progressAppearance(event) {
  if (event.ended_at && event.started_at) return { tone: "calm", glyph: "✓", label: "finished" };
  if (event.ended_at) return { tone: "idle", glyph: "⊘", label: "cancelled" };
  if (event.status === "Started") return { tone: "info", glyph: "◆", label: "started" };
  if (event.approved) return { tone: "warn", glyph: "✓", label: "approved" };
  return { tone: "warn", glyph: "▲", label: "announced" };
}

/**
 * Describe the effect of an event in one sentence, with its machines.
 *
 * @param {AnyEvent} event
 */
export function eventSentence(event) {
  const names = event.resources;
  if (!names.length) return "names no machine any more";
  const machines = names.length > 3 ? count(names.length, "machine") : listed(names);
  const [infinitive, present, past] = TYPES[event.type][names.length > 1 ? "several" : "one"];
  if (event.started_at) return `${machines} ${event.ended_at ? past : present}`;
  if (event.ended_at) return `${machines} ${names.length > 1 ? "were" : "was"} to ${infinitive}`;
  return `${machines} will ${infinitive}`;
}

/**
 * Write the type and the first machine, for narrow places.
 *
 * @param {AnyEvent} event
 */
export function shortSubject(event) {
  const [first, ...others] = event.resources;
  return `${event.type} ${first ?? ""}${others.length ? ` +${others.length}` : ""}`;
}

/** Return the promised notice in seconds: from the announcement to NotBefore. @param {AnyEvent} event */
export function promisedSeconds(event) {
  return Math.max(0, (Date.parse(event.not_before) - Date.parse(event.announced_at)) / 1000);
}

/**
 * Summarize the notice that the event's machines got; null before the event starts.
 *
 * @param {AnyEvent} event
 * @returns {Notice | null}
 */
export function noticeOf(event) {
  if (event.notice) return event.notice;
  if (!event.notices || !event.started_at) return null;
  const got = event.notices.map((each) => each.notice_seconds).filter((seconds) => seconds !== null);
  return {
    least_seconds: got.length ? Math.min(...got) : null,
    late: event.notices.filter((each) => each.late).length,
    never: event.notices.filter((each) => each.sent_at === null && !each.late).length,
    so_far: !event.ended_at,
  };
}

/**
 * Return the appearance of the promise of notice. The outcome is final when the event ends.
 *
 * @param {AnyEvent} event
 * @returns {Appearance}
 */
export function promiseAppearance(event) {
  const promised = promisedSeconds(event);
  if (!event.started_at && event.ended_at)
    return { tone: "idle", glyph: "⊘", label: "cancelled before its start" };
  if (!event.started_at) return { tone: "idle", glyph: "…", label: `${span(promised)} promised` };
  if (!promised) return { tone: "idle", glyph: "○", label: "no notice promised" };
  const notice = noticeOf(event);
  if (!notice) return { tone: "idle", glyph: "○", label: `${span(promised)} promised` };
  return verdict(notice);
}

/**
 * @param {Notice} notice
 * @returns {Appearance}
 */
function verdict(notice) {
  const broken = brokenOf(notice);
  if (!broken.length) return { tone: "calm", glyph: "✓", label: "notified" };
  const label = broken.join(", ");
  if (notice.so_far) return { tone: "warn", glyph: "…", label: `${label} so far` };
  return { tone: "danger", glyph: notice.never ? "✕" : "!", label };
}

/**
 * Count machines with late or missing notice.
 *
 * @param {Notice} notice
 */
function brokenOf(notice) {
  const never = notice.so_far ? "not notified" : "never notified";
  return [notice.late ? `${notice.late} late` : "", notice.never ? `${notice.never} ${never}` : ""].filter(
    (each) => each,
  );
}

/**
 * Write the promised and the delivered notice.
 *
 * @param {AnyEvent} event
 */
export function noticeText(event) {
  const promised = promisedSeconds(event);
  const words = [promised ? `${span(promised)} promised` : "none promised"];
  const notice = noticeOf(event);
  if (notice && notice.least_seconds !== null) words.push(`at least ${span(notice.least_seconds)} delivered`);
  if (notice) words.push(...brokenOf(notice).map((each) => (notice.so_far ? `${each} so far` : each)));
  if (event.started_at && event.approved && promised) words.push("approved, so it started early");
  return words.join(", ");
}

/** @param {AnyEvent} event */
export const promiseBadge = (event) => badge(promiseAppearance(event));

/** @param {AnyEvent} event */
export const typeBadge = (event) => badge(typeAppearance(event.type));
