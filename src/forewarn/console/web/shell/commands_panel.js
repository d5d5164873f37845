/** The actions of this tab, each with the equivalent command. */

import { performed } from "../actions/performed.js";
import { copyButton, serverText } from "../elements/command_text.js";
import { dateTime } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { showPanel } from "./panel_dialog.js";

/** Show the actions, newest first. */
export function showCommands() {
  showPanel("Actions of this tab", () => {
    const done = performed.list.filter((each) => each.isGood);
    if (!done.length) {
      return h(
        "p",
        null,
        "No actions yet. Each action in this tab appears here with the equivalent command.",
      );
    }
    const all = done
      .map((each) => each.command)
      .toReversed()
      .join("\n");
    return [
      serverText() && [
        h("p", { class: "small muted" }, "First point the command at this server:"),
        serverText(),
      ],
      h("ul", { class: "done-list" }, done.map(line)),
      h("div", null, copyButton(`${all}\n`, "Copy all, in order")),
    ];
  });
}

/** @param {import("../actions/performed.js").Done} done */
function line(done) {
  return h(
    "li",
    { key: done.number },
    h("span", { class: "small muted number" }, dateTime(done.at)),
    h("div", { class: "command" }, h("code", null, done.command), copyButton(done.command)),
    h("span", { class: "small" }, done.outcome),
  );
}
