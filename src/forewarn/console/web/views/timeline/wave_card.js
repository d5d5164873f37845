/** The texts of a coming wave: label, card, and description for screen readers. */

import { rolloutBadge } from "../../elements/rollout_words.js";
import { countdown, time } from "../../elements/times.js";
import { count, dateTime, listed, shortId } from "../../page/formatting.js";
import { h } from "../../page/tree.js";

/** @typedef {import("./coming_waves.js").WaveBar} WaveBar */

const HOSTS_NAMED = 3;
const HOSTS_LISTED = 12;

/** Return a short label: the number and the hosts of the wave. @param {WaveBar} bar */
export function waveSubject({ number, wave }) {
  const names = wave.hosts.slice(0, HOSTS_NAMED).join(", ");
  const more = wave.hosts.length - HOSTS_NAMED;
  return `wave ${number}: ${names}${more > 0 ? ` +${more}` : ""}`;
}

/** Describe the bar for screen readers. @param {WaveBar} bar */
export function waveWords({ rollout, wave, number }) {
  return [
    `Wave ${number} of rollout ${shortId(rollout.id ?? "")}, expected: ${rollout.action} of ${listed(wave.hosts, HOSTS_LISTED)}`,
    `announced about ${dateTime(wave.announce_at ?? "")}`,
    `starts about ${dateTime(wave.start_at ?? "")}`,
    `ends about ${dateTime(wave.end_at ?? "")}`,
  ].join("; ");
}

/** @param {WaveBar} bar */
export const waveFacts = ({ rollout, wave, number }) => [
  h("p", { class: "row" }, h("strong", null, `Wave ${number}`), rolloutBadge(rollout)),
  h(
    "p",
    { class: "name" },
    `${rollout.action} of ${count(wave.hosts.length, "host")}: ${listed(wave.hosts, HOSTS_LISTED)}`,
  ),
  h(
    "dl",
    { class: "facts small" },
    expected("announced", wave.announce_at),
    expected("starts", wave.start_at),
    expected("ends", wave.end_at),
  ),
  h("p", { class: "small muted" }, "Expected times, not promises. Press Enter or click to open the rollout"),
];

/**
 * @param {string} name
 * @param {string | null} at
 */
const expected = (name, at) =>
  at && [h("dt", null, name), h("dd", null, "about ", time(at), " (", countdown(at), ")")];
