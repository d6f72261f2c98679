import assert from "node:assert/strict";
import test from "node:test";
import { csvOf, marked, piecesOf, written } from "../../assets/script/values.mjs";

test("what is not exact says so", () => {
  const self = { name: "self", kind: "time", mark: ["plus-minus", 1] };
  assert.equal(marked([1170000, null], self, 0), "1.17 ms");
  assert.equal(marked([1170000, 46800], self, 0), "~1.17 ms ± 4.0 %");
  assert.equal(marked([1000, 2000], self, 0), "≤ 3.00 µs");
  assert.equal(marked([1000, 3], { ...self, mark: ["at-least", 1] }, 0), "≥ 1.00 µs");
  assert.equal(marked([0.185, 3], { name: "share", kind: "share", mark: ["about", 1] }, 0), "~18.5 %");
  assert.equal(marked([null, 3], self, 0), "");
});

test("numbers that name things are whole", () => {
  assert.equal(written(1234567, "count", "TID"), "1234567");
  assert.equal(written(1234567, "count", "calls"), "1.23M");
});

test("CSV is quoted, and has numbers as they are", () => {
  const columns = [[{ name: "function", kind: "text" }, 0], [{ name: "self", kind: "time" }, 2]];
  assert.equal(csvOf(columns, [['a,"b"', "left out", 1234567], ["c", "", null]]),
    'function,self (ns)\r\n"a,""b""",1234567\r\nc,\r\n');
});

test("names are broken after words, and never between colons", () => {
  assert.deepEqual(piecesOf("std::vector<a::b>::push_back"), ["std::", "vector<a::", "b>::", "push_", "back"]);
  for (const name of ["__libc", "a::", "::", "", "write"]) assert.equal(piecesOf(name).join(""), name);
  assert.deepEqual(piecesOf("write"), ["write"]);
});
