/** What tables of steps say of one, of a machine and of a host alike. */

import { workAppearance } from "./appearance.js";
import { isUnknown } from "./order_facts.js";

/** @typedef {import("./appearance.js").Appearance} Appearance */

/** How a step looks whose driver cannot tell how it is doing. @type {Appearance} */
const UNKNOWN = { tone: "warn", glyph: "?", label: "running, unknown how far" };

/** @param {{ state: import("../types").Step["state"], why: string | null }} step */
export const stepAppearance = (step) => (isUnknown(step) ? UNKNOWN : workAppearance(step.state));

/**
 * Count the seconds that a step took; null while it is not over.
 *
 * @param {{ begun_at: string | null, ended_at: string | null }} step
 */
export const took = (step) =>
  step.begun_at && step.ended_at ? (Date.parse(step.ended_at) - Date.parse(step.begun_at)) / 1000 : null;
