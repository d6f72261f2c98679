// Values of the raw tables as text, and as CSV.
import { countText, shareText, timeText } from "./quantities.mjs";

export function written(value, kind, name) {
  if (value === null) return "";
  if (kind === "time") return timeText(value);
  if (kind === "share") return shareText(value);
  if (kind === "count") return name.endsWith("ID") ? String(value) : countText(value);
  return value;
}

// What is not exact says so; of an estimate that may be nothing, only what it is at most is known.
export function marked(row, column, at) {
  const value = row[at];
  const text = written(value, column.kind, column.name);
  const [mark, by] = column.mark || [];
  const error = column.mark ? row[by] : null;
  if (error === null || value === null) return text;
  if (mark === "at-least") return "≥ " + text;
  if (mark === "about") return "~" + text;
  if (error > 0 && error >= value) return "≤ " + written(value + error, column.kind, column.name);
  return "~" + text + (error > 0 && error >= value * 0.0005 ? " ± " + shareText(error, value) : "");
}

// RFC 4180; numbers as they are, not as they are shown. `columns` are pairs of a column and its position.
export function csvOf(columns, rows) {
  const quoted = (value) => {
    const text = value === null ? "" : String(value);
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  const heading = (column) => (column.kind === "time" ? column.name + " (ns)" : column.name);
  const lines = [columns.map(([column]) => quoted(heading(column))).join(",")];
  for (const row of rows) lines.push(columns.map(([, at]) => quoted(row[at])).join(","));
  return lines.join("\r\n") + "\r\n";
}

// Where a name may be broken: after `_` and `::`, never between the colons.
export const piecesOf = (name) => name.match(/.+?(?:::|_|$)/gs) ?? [name];
