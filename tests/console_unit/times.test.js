import "./browser.js";
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

const { preferences } = await import("../../src/forewarn/console/web/page/preferences.js");
const { brieflyAt, dateTime, day, distance, measured, span, timeOfDay, untilStart } =
  await import("../../src/forewarn/console/web/page/formatting.js");
const { momentFromField, momentToField, parseSpan, typedSpan, wallTime } =
  await import("../../src/forewarn/console/web/page/typed_times.js");
const { ticks } = await import("../../src/forewarn/console/web/page/ticks.js");
const { dayRanges, dayRangesInWords } = await import("../../src/forewarn/console/web/page/day_ranges.js");

const NOON = "2026-01-05T12:00:00Z";
const HOUR = 3_600_000;

afterEach(() => preferences.set("zone", "local"));

test("a span is written with its two largest units", () => {
  assert.deepEqual([0, 59, 60, 872, 3600, 5400, 86_400, 183_600].map(span), [
    "0 s",
    "59 s",
    "1 m",
    "14 m 32 s",
    "1 h",
    "1 h 30 m",
    "1 d",
    "2 d 3 h",
  ]);
});

test("a span of almost a minute is rounded to a minute", () => assert.equal(span(59.6), "1 m"));

test("a negative span has a minus, unless it rounds to zero", () => {
  assert.equal(span(-90), "−1 m 30 s");
  assert.equal(span(-0.4), "0 s");
});

test("a short measured span has tenths", () => {
  assert.equal(measured(0.24), "0.2 s");
  assert.equal(measured(61), "1 m 1 s");
});

test("a distance tells future from past", () => {
  assert.equal(distance(60_000, 0), "in 1 m");
  assert.equal(distance(0, 60_000), "1 m ago");
  assert.equal(distance(400, 0), "now");
});

test("an overdue start is due", () => {
  assert.equal(untilStart(0, 20_000), "due for 20 s");
  assert.equal(untilStart(20_000, 0), "in 20 s");
});

test("times are in the local zone, or in UTC with a suffix", () => {
  assert.equal(dateTime(NOON), "2026-01-05 13:00:00");
  assert.equal(timeOfDay(NOON), "13:00:00");
  preferences.set("zone", "utc");
  assert.equal(dateTime(NOON), "2026-01-05 12:00:00 UTC");
});

test("a day depends on the chosen zone", () => {
  const late = "2026-01-05T23:30:00Z";
  assert.equal(day(late, "utc"), "Monday 2026-01-05");
  assert.equal(day(late, "local"), "Tuesday 2026-01-06");
});

test("a time of another day has its date", () => {
  assert.equal(brieflyAt("2026-01-05T14:00:00Z", Date.parse(NOON)), "15:00:00");
  assert.equal(brieflyAt("2026-01-06T14:00:00Z", Date.parse(NOON)), "01-06 15:00");
});

test("spans have the syntax of the command", () => {
  assert.deepEqual(["90", " 15m ", "1h30m", "7d", "0.5h"].map(parseSpan), [90, 900, 5400, 604_800, 1800]);
  assert.deepEqual(["", "15 m", "m", "1h30", "-5m", "1e3"].map(parseSpan), Array(6).fill(null));
});

test("a written span parses to the same value", () => {
  for (const seconds of [0, 1, 90, 5400, 86_400, 694_861])
    assert.equal(parseSpan(typedSpan(seconds)), seconds);
});

test("a moment in a field parses to the same value in both zones", () => {
  for (const [zone, field] of [
    ["local", "2026-01-05T13:00:00"],
    ["utc", "2026-01-05T12:00:00"],
  ]) {
    preferences.set("zone", zone);
    assert.equal(momentToField(NOON), field);
    assert.equal(momentFromField(field), NOON);
  }
});

test("an empty field is no moment", () => {
  assert.deepEqual([momentToField(null), momentToField("soon"), momentFromField("")], ["", "", ""]);
});

test("a local time converts to UTC in summer and in winter", () => {
  assert.equal(wallTime("2027-03-02 22:00", "Europe/Berlin"), "2027-03-02T21:00:00Z");
  assert.equal(wallTime("2027-07-02 22:00", "Europe/Berlin"), "2027-07-02T20:00:00Z");
  assert.equal(wallTime("2027-07-02 22:00", "Pacific/Auckland"), "2027-07-02T10:00:00Z");
});

test("a local time near a clock change converts correctly", () => {
  assert.equal(wallTime("2027-03-28 01:30", "Europe/Berlin"), "2027-03-28T00:30:00Z");
  assert.equal(wallTime("2027-03-28 03:30", "Europe/Berlin"), "2027-03-28T01:30:00Z");
});

test("an unknown zone converts to null", () => assert.equal(wallTime("2027-03-02 22:00", "Mars/Base"), null));

test("axis lines are at round times of the chosen zone", () => {
  const from = Date.parse("2026-01-05T12:17:00Z");
  const labels = (zone) => {
    preferences.set("zone", zone);
    return ticks({ from, to: from + 13 * HOUR }, 5 * HOUR).map(({ label, isDay }) =>
      isDay ? `day ${label}` : label,
    );
  };
  assert.deepEqual(labels("local"), ["18:00", "day 01-06"]);
  assert.deepEqual(labels("utc"), ["18:00", "day 01-06"]);
  assert.equal(ticks({ from, to: from + 13 * HOUR }, 5 * HOUR)[0]?.at, Date.parse("2026-01-05T18:00:00Z"));
});

test("axis lines seconds apart show seconds", () => {
  const from = Date.parse(NOON);
  assert.deepEqual(
    ticks({ from, to: from + 30_000 }, 10_000).map((tick) => tick.label),
    ["13:00:00", "13:00:15", "13:00:30"],
  );
});

test("consecutive days form a range, across new year and clock changes", () => {
  assert.deepEqual(dayRanges(["2026-12-31", "2027-01-01", "2027-03-28"]), [
    ["2026-12-31", "2027-01-01"],
    ["2027-03-28", "2027-03-28"],
  ]);
  assert.equal(dayRangesInWords(["2027-03-27", "2027-03-28", "2027-03-29"]), "2027-03-27 to 2027-03-29");
  assert.equal(dayRangesInWords([]), "");
});
