/** Who can do work, as fields offer them. */

import { copy } from "../service/connected.js";

/** @type {{ [driver: string]: string }} */
const KNOWN = {
  external: "external: somebody else, who reports it",
  simulated: "simulated: nothing is really done",
};

/**
 * Offer the drivers that are installed, after what holds if none is said.
 *
 * @param {string} otherwise
 * @returns {{ [driver: string]: string }}
 */
export function driverChoices(otherwise) {
  return { "": otherwise, ...Object.fromEntries(copy.drivers.map((name) => [name, KNOWN[name] ?? name])) };
}
