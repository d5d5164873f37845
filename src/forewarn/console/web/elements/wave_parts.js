/** The parts of a wave on the time axis: notice and work, past and expected. */

import { TimeAxis } from "./time_axis.js";

/** @typedef {import("../types").Wave} Wave */
/** @typedef {{ kind: "notice" | "work", isExpected: boolean, from: number, to: number }} Part */
/** @typedef {{ announced: string | null, started: string | null, ended: string | null }} Moments */

/**
 * Return a wave's real and expected moments.
 *
 * @param {Wave} wave
 * @param {string | null} [notBefore]  the latest NotBefore of an announced wave
 * @returns {{ real: Moments, expected: Moments }}
 */
export function momentsOf(wave, notBefore = null) {
  return {
    real: { announced: wave.announced_at, started: wave.started_at, ended: wave.ended_at },
    expected: { announced: wave.announce_at, started: wave.start_at ?? notBefore, ended: wave.end_at },
  };
}

/**
 * List the parts of a wave in order.
 *
 * @param {Wave} wave
 * @param {number} now
 * @param {string | null} [notBefore]
 * @returns {Part[]}
 */
export function partsOf(wave, now, notBefore = null) {
  if (!wave.announced_at) return wave.stages.flatMap(expectedParts);
  const { real, expected } = momentsOf(wave, notBefore);
  const announced = Date.parse(wave.announced_at);
  const ended = parsed(real.ended) ?? Math.max(parsed(expected.ended) ?? now, now);
  const started = parsed(real.started) ?? Math.min(parsed(expected.started) ?? ended, ended);
  return [
    ...divided("notice", announced, started, real.started ? started : now),
    ...divided("work", started, ended, real.started ? (real.ended ? ended : now) : 0),
  ];
}

/** @param {import("../types").Wave["stages"][number]} stage */
function expectedParts(stage) {
  const [announced, started, ended] = [stage.announce_at, stage.start_at, stage.end_at].map(Date.parse);
  return [
    ...divided("notice", announced ?? 0, started ?? 0, 0),
    .../** @type {Part[]} */ ([{ kind: "work", isExpected: true, from: started ?? 0, to: ended ?? 0 }]),
  ];
}

/**
 * Split a span into its past and its expected part.
 *
 * @param {"notice" | "work"} kind
 * @param {number} from
 * @param {number} to
 * @param {number} until  the end of the past
 * @returns {Part[]}
 */
function divided(kind, from, to, until) {
  const middle = Math.min(Math.max(until, from), to);
  return [
    { kind, isExpected: false, from, to: middle },
    { kind, isExpected: true, from: middle, to },
  ].filter((part) => part.to > part.from);
}

/** @param {string | null} moment */
const parsed = (moment) => (moment ? Date.parse(moment) : null);

/**
 * Build the axis for waves; null if no times are known.
 *
 * @param {readonly Wave[]} waves
 * @param {number} now
 * @param {{ isWithNow?: boolean }} [how]  whether the axis includes the current time
 */
export function waveAxis(waves, now, { isWithNow = false } = {}) {
  const stretches = [];
  for (const wave of waves) {
    const from = parsed(wave.announced_at ?? wave.announce_at);
    if (from === null) continue;
    stretches.push({ from, to: Math.max(from, parsed(wave.ended_at ?? wave.end_at) ?? now) });
  }
  if (isWithNow && stretches.length) stretches.push({ from: now, to: now });
  return TimeAxis.over(stretches);
}
