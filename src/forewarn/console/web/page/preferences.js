/** The preferences of this browser: theme, time zone, density and single-key shortcuts. */

/** @typedef {"system" | "light" | "dark"} Theme */
/** @typedef {"local" | "utc"} Zone */
/** @typedef {"roomy" | "dense"} Density */

const DEFAULTS = { theme: "system", zone: "local", density: "roomy", keys: "on" };

/** Fires `changed` in every tab. */
class Preferences extends EventTarget {
  constructor() {
    super();
    addEventListener("storage", () => this.#changed());
    this.#show();
  }

  get theme() {
    return /** @type {Theme} */ (this.get("theme"));
  }

  get zone() {
    return /** @type {Zone} */ (this.get("zone"));
  }

  get density() {
    return /** @type {Density} */ (this.get("density"));
  }

  /** Whether single-key shortcuts are on. They disturb speech input. */
  get hasKeys() {
    return this.get("keys") === "on";
  }

  /**
   * @param {keyof typeof DEFAULTS} name
   * @param {string} value
   */
  set(name, value) {
    try {
      localStorage.setItem(`forewarn.${name}`, value);
    } catch {
      // If the browser stores nothing, the default applies.
    }
    this.#changed();
  }

  /** @param {keyof typeof DEFAULTS} name */
  get(name) {
    try {
      return localStorage.getItem(`forewarn.${name}`) ?? DEFAULTS[name];
    } catch {
      return DEFAULTS[name];
    }
  }

  #changed() {
    this.#show();
    this.dispatchEvent(new Event("changed"));
  }

  #show() {
    document.documentElement.dataset.theme = this.theme;
    document.documentElement.dataset.density = this.density;
  }
}

export const preferences = new Preferences();
