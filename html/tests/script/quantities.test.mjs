import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { countText, numberOf, shareText, timeText } from "../../assets/script/quantities.mjs";

const cases = JSON.parse(readFileSync(new URL("../quantities.json", import.meta.url)));

test("values are written as everywhere else", () => {
  for (const [value, text] of cases.times) assert.equal(timeText(value), text);
  for (const [value, text] of cases.counts) assert.equal(countText(value), text);
  for (const [part, whole, text] of cases.shares) assert.equal(shareText(part, whole), text);
});

test("cells are numbers again, for sorting", () => {
  for (const [value, text] of cases.times) assert(Math.abs(numberOf(text) - value) <= value / 150, text);
  for (const [value, text] of cases.counts) assert(Math.abs(numberOf(text) - value) <= value / 150, text);
  const marked = [["~1.17 ms ± 4.0 %", 1.17e6], ["≤ 3 µs", 3e3], ["≥ 1.00 s", 1e9], ["<0.1 %", 0.1], ["+50.0 %", 50],
    ["-3.0 %", -3], ["−3.0 %", -3], ["×2.50", 2.5], ["=", 0], ["74.2 MB", 74.2e6], ["39.0 %, 320 ms", 39]];
  for (const [text, number] of marked) assert.equal(numberOf(text), number, text);
  for (const text of ["", "deflate", "libz.so.1", "?"]) assert.equal(numberOf(text), null, text);
});

test("longer times are larger numbers, whatever their unit", () => {
  const texts = [5, 900, 1e3, 5e5, 2e6, 9e8, 3e9].map(timeText);
  const numbers = texts.map(numberOf);
  assert.deepEqual([...numbers].sort((a, b) => a - b), numbers, texts.join(" "));
});
