/** What this tab has done, each with the command that does the same. */

import { performed } from "../actions/performed.js";
import { copyButton, serverText } from "../elements/command_text.js";
import { dateTime } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { showPanel } from "./panel_dialog.js";

/** Show them, the newest first. */
export function showCommands() {
  showPanel("What was done in this tab", () => {
    const done = performed.list.filter((each) => each.isGood);
    if (!done.length) {
      return h("p", null, "Nothing yet. What you do here is listed with the command that does the same.");
    }
    const all = done
      .map((each) => each.command)
      .toReversed()
      .join("\n");
    return [
      serverText() && [
        h("p", { class: "small muted" }, "The command asks another server unless it is told of this one:"),
        serverText(),
      ],
      h("ul", { class: "done-list" }, done.map(line)),
      h("div", null, copyButton(`${all}\n`, "Copy all, in their order")),
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
