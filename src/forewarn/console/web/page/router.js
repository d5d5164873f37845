/** Maps addresses to views. Every view has an address that users can share. */

export const ROOT = "/console";

/**
 * @typedef {object} Route
 * @property {string} path  the part after `/console`, with names in braces: `/machines/{name}`
 * @property {string} tag  the custom element of the view
 * @property {string} title
 * @property {string} [section]  the active entry of the navigation
 */

/** Follows links and the browser's history. Fires `moved`, and `query` when the query may have changed. */
class Router extends EventTarget {
  /** @type {Route[]} */
  #routes = [];

  /** @param {Route[]} routes */
  start(routes) {
    this.#routes = routes;
    addEventListener("popstate", () => this.#moved());
    document.addEventListener("click", (click) => this.#follow(click));
  }

  /** The route of the current address, with the names in it; null if there is none. */
  get place() {
    const path = location.pathname.slice(ROOT.length).replace(/\/+$/, "") || "/";
    for (const route of this.#routes) {
      const names = match(route.path, path);
      if (names) return { route, names };
    }
    return null;
  }

  /** The query of the current address. */
  get query() {
    return new URLSearchParams(location.search);
  }

  /** @param {string} address */
  go(address) {
    if (address !== location.pathname + location.search) history.pushState(null, "", address);
    this.#moved();
  }

  /**
   * Change the query. null and "" remove a name.
   *
   * @param {{ [name: string]: string | null }} changes
   * @param {{ push?: boolean }} [how]  whether "back" returns to the previous query
   */
  setQuery(changes, { push = false } = {}) {
    const query = this.query;
    for (const [name, value] of Object.entries(changes)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    const text = query.toString();
    const address = location.pathname + (text ? `?${text}` : "");
    if (address === location.pathname + location.search) return;
    if (push) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    this.dispatchEvent(new Event("query"));
  }

  #moved() {
    this.dispatchEvent(new Event("moved"));
    this.dispatchEvent(new Event("query"));
  }

  /** @param {MouseEvent} click */
  #follow(click) {
    if (
      click.defaultPrevented ||
      click.button ||
      click.metaKey ||
      click.ctrlKey ||
      click.shiftKey ||
      click.altKey
    )
      return;
    const link = /** @type {Element} */ (click.target).closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || !(link.pathname + "/").startsWith(`${ROOT}/`)) return;
    click.preventDefault();
    this.go(link.pathname + link.search);
  }
}

/**
 * Write the address of a view: `address("/machines/{name}", { name }, { project })`.
 *
 * @param {string} path
 * @param {{ [name: string]: string }} [names]
 * @param {{ [name: string]: string | null | undefined }} [query]
 */
export function address(path, names = {}, query = {}) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name] ?? ""));
  const text = new URLSearchParams(
    /** @type {[string, string][]} */ (Object.entries(query).filter(([, value]) => value)),
  ).toString();
  return ROOT + filled + (text ? `?${text}` : "");
}

/**
 * @param {string} pattern
 * @param {string} path
 * @returns {{ [name: string]: string } | null}
 */
function match(pattern, path) {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return null;
  /** @type {{ [name: string]: string }} */
  const names = {};
  for (const [place, part] of wanted.entries()) {
    const text = given[place] ?? "";
    if (part.startsWith("{")) {
      try {
        names[part.slice(1, -1)] = decodeURIComponent(text);
      } catch {
        return null;
      }
    } else if (part !== text) return null;
  }
  return names;
}

export const router = new Router();
