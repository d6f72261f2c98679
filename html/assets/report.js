// What a page can't do with HTML and CSS: going into a library, and laying out many rows.
// Names only ever become text nodes.
"use strict";

// ---- going in and out -------------------------------------------------------------------------

for (const box of document.querySelectorAll("[data-panels]")) {
  const panels = [...box.querySelectorAll(".panel")];
  const show = (id, focus) => {
    const wanted = panels.find((panel) => panel.id === id);
    if (!wanted) return;
    for (const panel of panels) panel.hidden = panel !== wanted;
    if (focus) {
      wanted.querySelector("h3").focus({ preventScroll: true });
      box.parentElement.scrollIntoView();
    }
  };
  const follow = (focus) => show(location.hash.slice(1), focus);
  show(panels[0].id, false);
  follow(false);
  addEventListener("hashchange", () => follow(true));
  box.addEventListener("click", (event) => {
    const slice = event.target.closest("[data-key]");
    if (slice) location.hash = slice.dataset.key;
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panels[0].contains(event.target)) location.hash = panels[0].id;
  });
}
// On paper nothing can be opened.
addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll("details:not([open]):not(#raw-columns)")) {
    if (!closed.classList.contains("flame")) closed.open = true;
  }
});

// ---- all rows ---------------------------------------------------------------------------------

const raw = document.getElementById("raw");
if (raw) {
  const STEP = 100;
  const get = (name) => document.getElementById("raw-" + name);
  const tables = new Map();
  let table, order, sorted, shown;

  const scaled = (value, steps) => {
    let step = steps.find(([size]) => value / size < 999.5) || steps[steps.length - 1];
    const number = value / step[0];
    const whole = number === 0 || number >= 99.95 || (step[0] === 1 && Number.isInteger(number));
    return number.toFixed(whole ? 0 : number >= 9.995 ? 1 : 2) + (step[1] ? " " + step[1] : "");
  };
  const TIMES = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  const COUNTS = [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"], [1e15, "P"]];
  const written = (value, kind, name) => {
    if (value === null) return "";
    if (kind === "time") return scaled(value, TIMES);
    if (kind === "share") return value > 0 && value < 0.0005 ? "< 0.1 %" : (value * 100).toFixed(1) + " %";
    if (kind === "count") return name.endsWith("ID") ? String(value) : scaled(value, COUNTS);
    return value;
  };
  // What is not exact says so; of an estimate that may be nothing, only what it is at most is known.
  const marked = (row, column, at) => {
    const [value, text] = [row[at], written(row[at], column.kind, column.name)];
    const [mark, by] = column.mark || [];
    const error = column.mark ? row[by] : null;
    if (error === null || value === null) return text;
    if (mark === "at-least") return "≥ " + text;
    if (mark === "about") return "~" + text;
    if (error > 0 && error >= value) return "≤ " + written(value + error, column.kind, column.name);
    return "~" + text + (error > 0 && error >= value * 0.0005 ? " ± " + written(error / value, "share") : "");
  };
  const element = (name, text, parent) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  const columns = () => table.columns.map((column, at) => [column, at]).filter(([column]) => column.shown);

  const arrange = () => {
    const words = get("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = table.columns.map((column, at) => (column.kind === "text" ? at : -1)).filter((at) => at >= 0);
    const texted = (row) => texts.map((at) => row[at] || "").join("\n").toLowerCase();
    order = table.rows.map((_, at) => at);
    if (words.length) {
      table.texts ||= table.rows.map(texted);
      order = order.filter((at) => words.every((word) => table.texts[at].includes(word)));
    }
    if (sorted) {
      const [at, up] = sorted;
      const isText = table.columns[at].kind === "text";
      const compare = (a, b) => {
        const [x, y] = [table.rows[a][at], table.rows[b][at]];
        // What is not known comes last, either way.
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        const difference = isText ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
        return (up ? difference : -difference) || a - b;
      };
      order.sort(compare);
    }
    shown = STEP;
    draw();
  };

  const draw = () => {
    const rows = get("rows");
    // The sort buttons are made anew: whoever used one stays there.
    const focused = document.activeElement.dataset ? document.activeElement.dataset.column : undefined;
    rows.replaceChildren();
    const head = element("tr", undefined, element("thead", undefined, rows));
    for (const [column, at] of columns()) {
      const cell = element("th", undefined, head);
      cell.scope = "col";
      if (column.kind !== "text") cell.className = "number";
      const isSorted = sorted && sorted[0] === at;
      cell.ariaSort = isSorted ? (sorted[1] ? "ascending" : "descending") : "none";
      const button = element("button", column.name, cell);
      button.type = "button";
      button.dataset.column = at;
      button.addEventListener("click", () => {
        // Numbers from the largest on, names from A on; then the other way.
        const first = column.kind === "text";
        sorted = [at, isSorted ? !sorted[1] : first];
        arrange();
      });
    }
    const body = element("tbody", undefined, rows);
    for (const number of order.slice(0, shown)) {
      const line = element("tr", undefined, body);
      columns().forEach(([column, at], place) => {
        const text = marked(table.rows[number], column, at);
        const cell = element(place ? "td" : "th", undefined, line);
        if (!place) cell.scope = "row";
        if (column.kind === "text") element("span", text, cell).className = "name";
        else [cell.className, cell.textContent] = ["number", text];
      });
    }
    get("more").hidden = order.length <= shown;
    const visible = Math.min(shown, order.length);
    get("status").textContent = `${visible} of ${order.length} rows` +
      (order.length < table.rows.length ? `, found among ${table.rows.length}` : "");
    const button = focused === undefined ? null : rows.querySelector(`[data-column="${focused}"]`);
    if (button) button.focus();
  };

  const choose = (number) => {
    if (!tables.has(number)) {
      tables.set(number, JSON.parse(document.getElementById("raw-" + number).textContent));
    }
    table = tables.get(number);
    sorted = undefined;
    const boxes = get("columns").querySelector("fieldset");
    boxes.replaceChildren(boxes.querySelector("legend"));
    for (const column of table.columns) {
      const label = element("label", undefined, boxes);
      const box = element("input", undefined, label);
      box.type = "checkbox";
      box.checked = column.shown;
      label.append(" " + column.name);
      box.addEventListener("change", () => {
        column.shown = box.checked;
        draw();
      });
    }
    arrange();
  };

  // RFC 4180; numbers as they are, not as they are shown.
  const csv = () => {
    const quoted = (value) => {
      const text = value === null ? "" : String(value);
      return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    };
    const unit = (column) => (column.kind === "time" ? column.name + " (ns)" : column.name);
    const lines = [columns().map(([column]) => quoted(unit(column))).join(",")];
    for (const number of order) {
      lines.push(columns().map(([, at]) => quoted(table.rows[number][at])).join(","));
    }
    return lines.join("\r\n") + "\r\n";
  };
  const copy = async () => {
    const text = csv();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Where the browser gives pages from a disk no clipboard.
      const area = element("textarea", text, document.body);
      area.value = text;
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    get("status").textContent = `${order.length} rows copied`;
  };

  raw.hidden = false;
  get("table").addEventListener("change", (event) => choose(Number(event.target.value)));
  get("search").addEventListener("input", arrange);
  get("copy").addEventListener("click", copy);
  get("more").addEventListener("click", () => {
    shown += 10 * STEP;
    draw();
  });
  choose(0);
}
