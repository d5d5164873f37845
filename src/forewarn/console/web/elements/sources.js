/** The source of a machine, host, group or project: a fleet file, the API, or an import. */

import { h } from "../page/tree.js";

/** @type {{ [source: string]: string }} */
const BY_PEOPLE = { declared: "declared by a fleet file", put: "declared by an API call or command" };

/** @param {string} source */
export const sourceWords = (source) => BY_PEOPLE[source] ?? `imported from ${source}`;

/**
 * Name the driver that imported a thing. Declared things get no note.
 *
 * @param {string} source
 */
export const importedFrom = (source) =>
  source in BY_PEOPLE ? null : h("span", { class: "small muted name" }, sourceWords(source));
