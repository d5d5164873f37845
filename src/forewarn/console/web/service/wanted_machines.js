import { messageOf } from "../page/formatting.js";
import { copy } from "./connected.js";

/** @typedef {import("./machine_shelf.js").Wanted} Wanted */

/** The machines that one view, or a part of one, looks at; others of a large fleet are not read. */
export class WantedMachines {
  /** Why they could not be read, if that is so. */
  trouble = "";
  /** @type {Wanted | null} */
  #wanted = null;

  /**
   * Whether it is these machines that are looked at.
   *
   * @param {Wanted | null} wanted
   */
  isOf(wanted) {
    return JSON.stringify(wanted) === JSON.stringify(this.#wanted);
  }

  /** Whether all that is wanted has been read. */
  get isRead() {
    return !this.#wanted || copy.machines.has(this.#wanted);
  }

  /**
   * Look at these machines, and no longer at those before; null for none.
   *
   * @param {Wanted | null} wanted
   * @param {() => void} [changed]  called when they are read, or could not be
   * @returns {boolean}  whether these are others than before
   */
  look(wanted, changed = () => {}) {
    if (this.isOf(wanted)) return false;
    const before = this.#wanted;
    this.#wanted = wanted;
    this.trouble = "";
    if (wanted) this.#read(wanted, changed);
    if (before) copy.machines.release(before);
    return true;
  }

  /**
   * @param {Wanted} wanted
   * @param {() => void} changed
   */
  async #read(wanted, changed) {
    try {
      await copy.machines.want(wanted);
    } catch (error) {
      if (this.#wanted !== wanted) return;
      this.trouble = messageOf(error);
    }
    changed();
  }
}
