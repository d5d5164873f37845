/** The drivers that form fields offer. */

import { copy } from "../service/connected.js";

/** @type {{ [driver: string]: string }} */
const KNOWN = {
  external: "external: another program does the work and reports it",
  simulated: "simulated: no real machine is touched",
};

/**
 * Offer the default, then the installed drivers.
 *
 * @param {string} otherwise  the label of the default
 * @returns {{ [driver: string]: string }}
 */
export const driverChoices = (otherwise) => ({ "": otherwise, ...choices(copy.drivers) });

/**
 * Offer the installed drivers and the current one, even if it is not installed.
 *
 * @param {string} chosen
 * @returns {{ [driver: string]: string }}
 */
export const driversBeside = (chosen) => choices([...new Set([chosen, ...copy.drivers])]);

/** @param {readonly string[]} names */
const choices = (names) => Object.fromEntries(names.map((name) => [name, KNOWN[name] ?? name]));
