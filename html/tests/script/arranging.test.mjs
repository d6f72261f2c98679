import assert from "node:assert/strict";
import test from "node:test";
import { compare, hasAll, nextWay, ordered, wordsOf } from "../../assets/script/arranging.mjs";

test("all words must be found, in any order and case", () => {
  const words = wordsOf("  Read LIBC ");
  assert.deepEqual(words, ["read", "libc"]);
  assert(hasAll("fread in libc.so.6", words) && !hasAll("fwrite in libc.so.6", words));
  assert(hasAll("anything", wordsOf("")));
});

test("what is not known comes last either way, and equals stay as they were", () => {
  const keys = [3, null, 1, 3, 2];
  const keyOf = (at) => keys[at];
  assert.deepEqual(ordered(keys.keys(), keyOf, false), [0, 3, 4, 2, 1]);
  assert.deepEqual(ordered(keys.keys(), keyOf, true), [2, 4, 0, 3, 1]);
  assert(compare("a", "b", true) < 0 && compare("a", "b", false) > 0);
});

test("numbers from the largest on, names from A on, then the other way", () => {
  assert.equal(nextWay(false, false, false), false);
  assert.equal(nextWay(false, false, true), true);
  assert.equal(nextWay(true, true, true), false);
});
