/** The command that shows the same as a view, folded at its end. */

import { h } from "../page/tree.js";
import { commandText } from "./command_text.js";

/** @param {...readonly string[]} commands  without `forewarn` */
export const asCommand = (...commands) =>
  h(
    "details",
    { class: "as-command" },
    h("summary", null, "Equivalent command"),
    commands.map((words) => commandText(words)),
  );
