/** Create, replace and revoke tokens. */

import { parseSpan } from "../page/typed_times.js";
import { copy } from "../service/connected.js";
import { secretShown } from "./secret.js";
import { NAME, typedName } from "./declared_fields.js";
import { option, post } from "./verb.js";

/** @typedef {import("../types").Token} Token */
/** @typedef {import("./verb.js").Field} Field */
/** @typedef {import("./verb.js").Values} Values */

/** @type {Field} */
const EXPIRES = {
  name: "expires",
  label: "Expires after",
  kind: "duration",
  hint: "Such as 12h or 90d. If omitted, never.",
};

/**
 * @param {string} name
 * @param {string} role
 * @param {string | undefined} project
 * @param {string | undefined} expires
 */
const created = (name, role, project, expires) =>
  post("/v1/tokens", {
    body: {
      name,
      role: /** @type {Token["role"]} */ (role),
      ...(project ? { project } : {}),
      ...(expires ? { expires_seconds: parseSpan(expires) } : {}),
    },
  });

/** @param {Values} values */
const projectOf = (values) => (values.role === "operator" ? "" : values.project);

/** @param {any} answer */
const shown = (answer) =>
  secretShown(
    `The secret of token ${answer.token.name}`,
    answer.secret,
    "To use the token, set FOREWARN_TOKEN to this secret, or sign in to the console with it.",
  );

/** @type {import("./verb.js").Verb<null>} */
export const CREATE_TOKEN = {
  verb: "create",
  label: "Create a token",
  right: "run",
  isFrequent: true,
  about: "Gives a person or a program access. The console shows the secret once.",
  question: () => "Create a token?",
  doing: () => "Create token",
  fields: () => [
    { ...NAME, hint: "Records show this name: letters, digits, dots, underscores and hyphens." },
    {
      name: "role",
      label: "Role",
      kind: "choice",
      choices: {
        operator: "operator: full access",
        user: "user: orders work on the machines of one project",
        viewer: "viewer: read access",
      },
    },
    {
      name: "project",
      label: "Project",
      kind: "text",
      hint: "Required for a user. A viewer with a project sees only that project.",
      suggestions: () => copy.projects.keys(),
      when: (values) => values.role !== "operator",
    },
    EXPIRES,
  ],
  request: (_, values) => created(typedName(values), values.role ?? "", projectOf(values), values.expires),
  command: (_, values) => [
    ...["token", "create", "--name", typedName(values) || "NAME", "--role", values.role ?? ""],
    ...option("--project", projectOf(values)),
    ...option("--expires", values.expires),
  ],
  shown,
  outcome: (answer) => `Token ${answer.token.name} is created.`,
};

/** @param {Token} token */
const isInForce = (token) => !token.revoked_at;

/** The next free name: `ann`, `ann-2`, `ann-3`. @param {string} name */
function nextName(name) {
  const [, stem = name, number = "1"] = /^(.*?)(?:-(\d+))?$/.exec(name) ?? [];
  return `${stem}-${Number(number) + 1}`;
}

/** @type {import("./verb.js").Verb<Token>} */
export const REPLACE_TOKEN = {
  verb: "create",
  label: "Replace",
  right: "run",
  about:
    "Creates a second token with the same role and project. The old one stays valid until you revoke it.",
  concerns: isInForce,
  question: (token) => `Replace token ${token.name}?`,
  doing: () => "Create new token",
  fields: (token) => [{ ...NAME, value: nextName(token.name), hint: "The name of the new token." }, EXPIRES],
  request: (token, values) => created(typedName(values), token.role, token.project ?? "", values.expires),
  command: (token, values) => [
    ...["token", "create", "--name", typedName(values) || "NAME", "--role", token.role],
    ...option("--project", token.project ?? ""),
    ...option("--expires", values.expires),
  ],
  shown,
  outcome: (answer, token) =>
    `Token ${answer.token.name} is created. Revoke ${token.name} when its user has switched to the new one.`,
};

/** @type {import("./verb.js").Verb<Token>} */
export const REVOKE_TOKEN = {
  verb: "revoke",
  label: "Revoke",
  right: "run",
  hurts: true,
  about: "Ends the token at once and permanently. The server refuses its calls and ends its sessions.",
  concerns: isInForce,
  question: (token) => `Revoke token ${token.name}?`,
  doing: (token) => `Revoke ${token.name}`,
  touches: (token) => ({
    summary:
      token.name === copy.caller?.name
        ? "You are signed in with this token: the console signs you out in every tab."
        : `${token.name} (${token.role}${token.project ? ` of project ${token.project}` : ""}) loses access.`,
  }),
  typed: (token) => token.name,
  request: (token) => post("/v1/tokens/{name}/revoke", { path: { name: token.name } }),
  command: (token) => ["token", "revoke", token.name],
  outcome: (answer) => [`Token ${answer.token.name} is revoked.`, ...answer.warnings].join(" "),
};
