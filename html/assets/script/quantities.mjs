// Values as text and back, as `chase_viz::quantity` writes them: three digits and an SI prefix.
// html/tests/quantities.json holds what both must write.

const TIMES = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
const COUNTS = [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"], [1e15, "P"], [1e18, "E"]];
const WHOLE = 10_000;

function scaled(value, steps, space) {
  const [size, symbol] = steps.find(([step]) => value / step < 999.5) || steps[steps.length - 1];
  const number = value / size;
  const isWhole = number === 0 || number >= 99.95 || (size === 1 && Number.isInteger(number));
  const text = number.toFixed(isWhole ? 0 : number >= 9.995 ? 1 : 2);
  return symbol ? text + space + symbol : text;
}

// Of nanoseconds: `3.10 ms`.
export const timeText = (ns) => scaled(ns, TIMES, " ");

// Of a number of things: `18.2k`.
export const countText = (number) =>
  number < WHOLE && Number.isInteger(number) ? String(number) : scaled(number, COUNTS, "");

// What is something is not shown as nothing, and what is not all not as all.
export function shareText(part, whole = 1) {
  const percent = whole > 0 ? (part / whole) * 100 : 0;
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  if (part < whole && percent >= 99.95) return ">99.9 %";
  return percent.toFixed(percent === 0 || percent >= 99.95 ? 0 : 1) + " %";
}

const SIZES = {
  ns: 1, µs: 1e3, ms: 1e6, s: 1e9, "%": 1, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, EB: 1e18,
};

// The number that a cell shows, for sorting; `null` where it shows none. Signs of estimates are passed over.
export function numberOf(text) {
  const found = /^[~≤≥<>×+\s]*([-−=]?)\s*(\d+(?:\.\d+)?)\s*(ns|µs|ms|s|[kMGTPE]?B|[kMGTPE%])?(?![\w.])/u.exec(text.trim());
  if (!found) return text.trim() === "=" ? 0 : null;
  const [, sign, digits, unit = ""] = found;
  return Number(digits) * SIZES[unit] * (sign === "-" || sign === "−" ? -1 : 1);
}
