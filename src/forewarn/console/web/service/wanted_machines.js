import { messageOf } from "../page/formatting.js";
import { copy } from "./connected.js";

/** @typedef {import("./machine_shelf.js").Wanted} Wanted */

/** The machines that a view shows. Of a large fleet, only these are read. */
export class WantedMachines {
  /** Why they could not be read; empty if they could. */
  trouble = "";
  /** @type {Wanted | null} */
  #wanted = null;

  /**
   * Whether the view shows these machines.
   *
   * @param {Wanted | null} wanted
   */
  isOf(wanted) {
    return JSON.stringify(wanted) === JSON.stringify(this.#wanted);
  }

  /** Whether the machines are read. */
  get isRead() {
    return !this.#wanted || copy.machines.has(this.#wanted);
  }

  /**
   * Show these machines instead of the previous ones; null for none.
   *
   * @param {Wanted | null} wanted
   * @param {() => void} [changed]  called after the read, or after its failure
   * @returns {boolean}  whether the selection changed
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
