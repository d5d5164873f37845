import { define, LiveElement } from "../page/live_element.js";
import { address } from "../page/router.js";
import { h } from "../page/tree.js";
import { api, copy } from "../service/connected.js";
import { LiveAnswer } from "../service/live_answer.js";
import { badge } from "./appearance.js";
import { eventLink, linkedIds, machineLink, orderLink } from "./links.js";
import { kindAppearance } from "./record_kinds.js";
import { time } from "./times.js";

/** @typedef {import("../types").Record} Record */
/** @typedef {{ machine?: string, host?: string, group?: string, project?: string }} About */

const MOST = 15;

/** The newest records of a machine, host, group or project, with a link to the full history. */
class RecentRecords extends LiveElement {
  /** @type {About} */
  about = {};
  /** @type {LiveAnswer<Record[]> | null} */
  #records = null;

  opened() {
    this.#records = new LiveAnswer(
      async () => (await api.get("/v1/history", { query: { ...this.about, limit: MOST } })).records,
      (record) => isAbout(record, this.about),
      this.ended,
    );
    this.watch(this.#records, "changed");
  }

  drawn() {
    const { value: records = null, trouble = "" } = this.#records ?? {};
    if (trouble) return h("p", { class: "notice", "data-tone": "danger" }, trouble);
    if (!records)
      return h("p", { class: "muted", role: "status", "aria-busy": "true" }, "Loading the history …");
    if (!records.length) return h("p", { class: "muted" }, "No records yet.");
    return [
      h(
        "ol",
        { class: "recent", reversed: true },
        records.map((record) => this.#line(record)),
      ),
      h("a", { href: address("/history", {}, this.about) }, "Show all records"),
    ];
  }

  /** @param {Record} record */
  #line(record) {
    return h(
      "li",
      { key: record.number },
      h(
        "a",
        { class: "recent-time number", href: address("/history", {}, { at: String(record.number) }) },
        time(record.at),
      ),
      badge(kindAppearance(record.kind)),
      h(
        "span",
        { class: "recent-what" },
        !this.about.machine && record.machine && [machineLink(record.machine, record.project), " "],
        record.event && ["event ", eventLink(record.event), " "],
        record.order && ["order ", orderLink(record.order), " "],
        record.reason && h("span", { class: "name" }, linkedIds(record.reason)),
        record.by && h("span", { class: "muted" }, " by ", h("span", { class: "name" }, record.by)),
      ),
    );
  }
}

/**
 * @param {Record} record
 * @param {About} about
 */
function isAbout(record, about) {
  return (
    (!about.machine || record.machine?.toLowerCase() === about.machine.toLowerCase()) &&
    (!about.host || record.host === about.host) &&
    (!about.group || record.group === about.group) &&
    (!about.project || record.project === about.project || !copy.projects.size)
  );
}

define("fw-recent-records", RecentRecords);

/**
 * Draw the newest records of a machine, host, group or project.
 *
 * @param {About} about
 */
export const recentRecords = (about) =>
  h("fw-recent-records", { key: JSON.stringify(about), ".about": about });
