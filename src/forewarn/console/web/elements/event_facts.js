/** What is told of an event in words: its type, what it does, what notice was promised and delivered. */

import { count, listed, span } from "../page/formatting.js";
import { badge } from "./appearance.js";

/** @typedef {import("../types").ListedEvent} ListedEvent */
/** @typedef {import("../types").EventDetail} EventDetail */
/** @typedef {import("./appearance.js").Appearance} Appearance */
/** @typedef {{ least_seconds: number | null, late: number, never: number, so_far: boolean }} Notice */
/** @typedef {import("../types").EventType} EventType */
/** @typedef {ListedEvent & { notice?: Notice | null, notices?: EventDetail["notices"] }} AnyEvent */

/** What a type does to one machine and to several: what they will do, what they do, what they did. @typedef {readonly [string, string, string]} Forms */

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
    one: ["perhaps be evicted soon", "may be evicted soon", "was told that it may be evicted"],
    several: ["perhaps be evicted soon", "may be evicted soon", "were told that they may be evicted"],
  },
};

export const EVENT_TYPES = /** @type {EventType[]} */ (Object.keys(TYPES));

/**
 * Say how a type of event looks.
 *
 * @param {EventType} type
 * @returns {Appearance}
 */
export const typeAppearance = (type) => TYPES[type];

/**
 * Say how far an event is: listed, or over and why.
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
 * Say in one sentence what an event does, and to whom.
 *
 * @param {AnyEvent} event
 */
export function eventSentence(event) {
  const names = event.resources;
  if (!names.length) return "no machine is left in it";
  const who = names.length > 3 ? count(names.length, "machine") : listed(names);
  const [infinitive, present, past] = TYPES[event.type][names.length > 1 ? "several" : "one"];
  if (event.started_at) return `${who} ${event.ended_at ? past : present}`;
  if (event.ended_at) return `${who} ${names.length > 1 ? "were" : "was"} to ${infinitive}`;
  return `${who} will ${infinitive}`;
}

/**
 * Write whom an event names, in few characters.
 *
 * @param {AnyEvent} event
 */
export function shortSubject(event) {
  const [first, ...others] = event.resources;
  return `${event.type} ${first ?? ""}${others.length ? ` +${others.length}` : ""}`;
}

/** What was promised, in seconds: the time from the announcement to NotBefore. @param {AnyEvent} event */
export function promisedSeconds(event) {
  return Math.max(0, (Date.parse(event.not_before) - Date.parse(event.announced_at)) / 1000);
}

/**
 * Sum up what notice the machines of an event got; null while nothing is known of it.
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
 * Say whether the promise of notice was kept; that is judged when the event ends.
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
 * Describe the machines that were not notified in time.
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
 * Write what was promised and what was delivered.
 *
 * @param {AnyEvent} event
 */
export function noticeText(event) {
  const promised = promisedSeconds(event);
  const words = [promised ? `${span(promised)} promised` : "none promised"];
  const notice = noticeOf(event);
  if (notice && notice.least_seconds !== null) words.push(`at least ${span(notice.least_seconds)} delivered`);
  if (notice) words.push(...brokenOf(notice).map((each) => (notice.so_far ? `${each} so far` : each)));
  if (event.started_at && event.approved && promised) words.push("approved, so it began early");
  return words.join(", ");
}

/** @param {AnyEvent} event */
export const promiseBadge = (event) => badge(promiseAppearance(event));

/** @param {AnyEvent} event */
export const typeBadge = (event) => badge(typeAppearance(event.type));
