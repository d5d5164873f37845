import "./browser.js";
import { event, machine } from "./fleet.js";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const { copy } = await import("../../src/forewarn/console/web/service/connected.js");
const { asksServer, joined, knownHits, MOST_OF_A_KIND } =
  await import("../../src/forewarn/console/web/shell/search_hits.js");

const ID = "602D0A1B-0000-4000-8000-000000000001";

/** @param {readonly any[]} machines @param {number} [size] */
const know = (machines, size = machines.length) => copy.machines.load(size, /** @type {any} */ (machines));
/** @param {string} text */
const found = (text) => knownHits(text).map((hit) => hit.name);

beforeEach(async () => {
  copy.events.clear();
  copy.groups.clear();
  copy.hosts = null;
  await know([machine("web-1"), machine("web-10"), machine("web-2"), machine("old-web-1")]);
});

test("exact names come first, then prefixes, then the rest", () =>
  assert.deepEqual(found("WEB-1"), ["web-1", "web-10", "old-web-1"]));

test("hits of the same rank are in natural order", () =>
  assert.deepEqual(found("web-"), ["web-1", "web-2", "web-10", "old-web-1"]));

test("the hits of a kind are limited", async () => {
  await know(Array.from({ length: 20 }, (_, number) => machine(`web-${number}`)));
  assert.equal(found("web").length, MOST_OF_A_KIND);
});

test("a name finds machines, hosts and groups, in that order", () => {
  copy.hosts = new Map([["web-host", /** @type {any} */ ({ name: "web-host", state: "ok", carried: 2 })]]);
  copy.groups.set("web", /** @type {any} */ ({ name: "web", kind: "scale-set", project: "default" }));
  const kinds = knownHits("web").map((hit) => hit.kind);
  assert.deepEqual([...new Set(kinds)], ["machine", "host", "group"]);
});

test("a search finds an event by its machines, and by its id from four letters on", () => {
  copy.events.set(ID, /** @type {any} */ (event(ID, ["db-0"])));
  assert.deepEqual(found("db-0"), ["Freeze of db-0"]);
  assert.deepEqual(found("602d"), ["Freeze of db-0"]);
  assert.deepEqual(found("602"), []);
});

test("the address of a hit has the project if there are several", () => {
  copy.projects = new Map([
    ["default", /** @type {any} */ ({})],
    ["blue", /** @type {any} */ ({})],
  ]);
  assert.equal(knownHits("web-2")[0]?.href, "/console/machines/web-2?project=default");
  copy.projects = new Map();
  assert.equal(knownHits("web-2")[0]?.href, "/console/machines/web-2");
});

test("an empty text finds nothing", () => {
  assert.deepEqual(knownHits(""), []);
  assert.equal(asksServer(""), false);
});

test("the server is searched for ids, and for machines of a large fleet", async () => {
  assert.equal(asksServer("web"), false);
  assert.equal(asksServer("602d"), true);
  await know([], 100_000);
  assert.equal(asksServer("web"), true);
});

test("merged hits have no duplicates, and known hits win", () => {
  const known = { kind: "event", name: "Freeze of db-0", about: "Started", href: "/console/events/1" };
  const past = { ...known, about: "over" };
  const other = { kind: "machine", name: "db-0", about: "", href: "/console/machines/db-0" };
  const hits = joined(/** @type {any} */ ([known]), /** @type {any} */ ([past, other]), "db");
  assert.deepEqual(hits, [other, known]);
});
