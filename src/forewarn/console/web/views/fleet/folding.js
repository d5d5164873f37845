/** Which groups are folded: a default for all, and exceptions, both kept in the URL. */

import { router } from "../../page/router.js";
import { copy } from "../../service/connected.js";

/** By default, a large fleet opens folded, unless the filter selects one group. */
export class Folding {
  #query;

  /** @param {URLSearchParams} query */
  constructor(query) {
    this.#query = query;
  }

  /** Whether groups are folded by default. */
  get isFolded() {
    const said = this.#query.get("fold");
    if (said) return said === "all";
    return !copy.machines.isWhole && !this.#query.get("group");
  }

  /** @param {string} group */
  isFoldedGroup(group) {
    return this.isFolded !== this.#exceptions.includes(group);
  }

  /** @param {string} group */
  toggle(group) {
    const others = this.#exceptions.filter((each) => each !== group);
    const except = others.length < this.#exceptions.length ? others : [...others, group];
    router.setQuery({ except: except.map(encodeURIComponent).join(",") });
  }

  /** @param {boolean} isFolded */
  static setAll(isFolded) {
    router.setQuery({ fold: isFolded ? "all" : "none", except: null });
  }

  get #exceptions() {
    return (this.#query.get("except") ?? "").split(",").filter(Boolean).map(decoded);
  }
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a truncated URL
  }
}
