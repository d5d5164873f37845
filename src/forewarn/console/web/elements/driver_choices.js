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
export const driverChoices = (otherwise) => ({ "": otherwise, ...choices(copy.drivers) });

/**
 * Offer the drivers that are installed, and the one that is chosen, be it installed or not.
 *
 * @param {string} chosen
 * @returns {{ [driver: string]: string }}
 */
export const driversBeside = (chosen) => choices([...new Set([chosen, ...copy.drivers])]);

/** @param {readonly string[]} names */
const choices = (names) => Object.fromEntries(names.map((name) => [name, KNOWN[name] ?? name]));
