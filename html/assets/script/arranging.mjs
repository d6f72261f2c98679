// Which rows of a table are shown, and in which order: no page needed.

// What is typed, as words that all must be found.
export const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

// Whether `text`, in lower case, has all words.
export const hasAll = (text, words) => words.every((word) => text.includes(word));

// Compares two values, of which `null`, what is not known, comes last either way.
export function compare(a, b, isUp) {
  if (a === null || b === null) return (a === null) - (b === null);
  const difference = typeof a === "string" ? (a < b ? -1 : a > b ? 1 : 0) : a - b;
  return isUp ? difference : -difference;
}

// Positions in order of their keys; equals stay in the order that they had.
export function ordered(positions, keyOf, isUp) {
  return [...positions].sort((a, b) => compare(keyOf(a), keyOf(b), isUp) || a - b);
}

// Which way a column is sorted by the next click: numbers from the largest on, names from A on; then the other way.
export const nextWay = (isSorted, wasUp, isText) => (isSorted ? !wasUp : isText);
