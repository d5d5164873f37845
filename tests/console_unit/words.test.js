import "./browser.js";
import assert from "node:assert/strict";
import { test } from "node:test";

const { count, listed, messageOf, shortened, shortId } =
  await import("../../src/forewarn/console/web/page/formatting.js");
const { shellText } = await import("../../src/forewarn/console/web/elements/command_text.js");
const { FAMILIES, kindAppearance } = await import("../../src/forewarn/console/web/elements/record_kinds.js");
const { apiQuery, commandOptions, isFiltered, kindsOf, readWanted, withKinds } =
  await import("../../src/forewarn/console/web/views/history/history_filter.js");

const HOLDS = ["hold-set", "hold-released", "hold-refused"];

test("a count has the singular or the plural", () => {
  assert.equal(count(1, "machine"), "1 machine");
  assert.equal(count(12_000, "machine"), "12,000 machines");
  assert.equal(count(0, "entry", "entries"), "0 entries");
});

test("long lists show the first names and count the rest", () => {
  assert.equal(listed(["a", "b"]), "a, b");
  assert.equal(listed(["a", "b", "c"], 2), "a, b and 1 more");
});

test("a name is shortened in its middle, to the given length", () => {
  assert.equal(shortened("web-server-0001", 9), "web-…0001");
  assert.equal(shortened("web-0", 9), "web-0");
  for (const room of [2, 3, 8, 14]) assert.equal(shortened("web-server-0001", room).length, room);
});

test("an id is shortened to its first part", () =>
  assert.equal(shortId("602D0A1B-0000-4000-8000-000000000001"), "602D0A1B"));

test("messageOf takes errors and other thrown values", () => {
  assert.equal(messageOf(new Error("it burns")), "it burns");
  assert.equal(messageOf("it burns"), "it burns");
});

test("words with special characters are quoted for the shell", () => {
  assert.equal(shellText(["forewarn", "hold", "it's late"]), "forewarn hold 'it'\\''s late'");
  assert.equal(
    shellText(["--at", "2026-01-05T12:00:00Z", "$HOME", ""]),
    "--at 2026-01-05T12:00:00Z '$HOME' ''",
  );
});

test("each kind of record belongs to one family", () => {
  const kinds = FAMILIES.flatMap((family) => family.kinds);
  assert.equal(kinds.length, new Set(kinds).size);
  assert.ok(FAMILIES.every((family) => family.kinds.length));
});

test("a kind of a newer server is shown", () =>
  assert.deepEqual(kindAppearance("moon-eclipsed"), { tone: "idle", glyph: "·", label: "moon eclipsed" }));

test("a family selects its kinds, each once", () => {
  assert.deepEqual(kindsOf(["holds", "hold-set", "token-created"]), [...HOLDS, "token-created"]);
});

test("all kinds of a family are written as the family", () => {
  assert.deepEqual(withKinds(["hold-set"], HOLDS, true), ["holds"]);
  assert.deepEqual(withKinds(["holds"], ["hold-set"], false), ["hold-released", "hold-refused"]);
});

test("console and command ask for the same history", () => {
  const wanted = readWanted(new URLSearchParams("text=fire&kind=holds,token-created&machine=web-0&other=1"));
  assert.ok(isFiltered(wanted));
  assert.deepEqual(apiQuery(wanted), { machine: "web-0", text: "fire", kind: [...HOLDS, "token-created"] });
  assert.deepEqual(commandOptions(wanted), [
    ...["--text", "fire"],
    ...[...HOLDS, "token-created"].flatMap((kind) => ["--kind", kind]),
    ...["--machine", "web-0"],
  ]);
});

test("an address without a filter selects everything, and an invalid number is ignored", () => {
  const wanted = readWanted(new URLSearchParams("at=first"));
  assert.equal(isFiltered(wanted), false);
  assert.equal(wanted.at, null);
  assert.deepEqual(apiQuery(wanted), {});
});
