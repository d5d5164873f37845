/** What a person has chosen for this browser: theme, time zone, density, whether keys do something. */

/** @typedef {"system" | "light" | "dark"} Theme */
/** @typedef {"local" | "utc"} Zone */
/** @typedef {"roomy" | "dense"} Density */

const DEFAULTS = { theme: "system", zone: "local", density: "roomy", keys: "on" };

/** Announces `changed`, in every tab. */
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

  /** Whether single keys are shortcuts; who speaks to the computer may not want that. */
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
      // A browser that keeps nothing shows the default.
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
