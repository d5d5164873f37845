/** The console's entry point: find the caller, follow the fleet, show the view of the address. */

import { router } from "./page/router.js";
import { startKeyboard } from "./shell/keyboard.js";
import { ROUTES } from "./shell/routes.js";
import { session } from "./shell/session.js";
import "./shell/shell.js";

router.start(ROUTES);
session.start();
startKeyboard();
