/** Who speaks for a machine, host, group or project: people, or the driver that it was imported by. */

import { h } from "../page/tree.js";

/** People's sources, as they are told. @type {{ [source: string]: string }} */
const BY_PEOPLE = { declared: "declared by a fleet file", put: "put one at a time" };

/** @param {string} source */
export const sourceWords = (source) => BY_PEOPLE[source] ?? `imported from ${source}`;

/**
 * Say where something was imported from, in lists; what people declare goes without saying.
 *
 * @param {string} source
 */
export const importedFrom = (source) =>
  source in BY_PEOPLE ? null : h("span", { class: "small muted name" }, sourceWords(source));
