/** The appearance and duration of steps, on machines and on hosts. */

import { workAppearance } from "./appearance.js";
import { isUnknown } from "./order_facts.js";

/** @typedef {import("./appearance.js").Appearance} Appearance */

/** A running step whose state the driver cannot tell. @type {Appearance} */
const UNKNOWN = { tone: "warn", glyph: "?", label: "running, state unknown" };

/** @param {{ state: import("../types").Step["state"], why: string | null }} step */
export const stepAppearance = (step) => (isUnknown(step) ? UNKNOWN : workAppearance(step.state));

/**
 * Return the duration of a step in seconds; null while it runs.
 *
 * @param {{ begun_at: string | null, ended_at: string | null }} step
 */
export const took = (step) =>
  step.begun_at && step.ended_at ? (Date.parse(step.ended_at) - Date.parse(step.begun_at)) / 1000 : null;
