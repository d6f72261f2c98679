// What a page must do in a real browser, from a disk and without a network: node check.mjs PAGE...
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";
import { launch } from "./browser.mjs";
import { timeline } from "./timeline.mjs";

const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
const { context, close } = await launch(chromium);
let failed = false;

for (const file of process.argv.slice(2)) {
  const name = path.basename(file, ".html");
  try {
    await check(file, name);
    console.log(`${name}: as it should be`);
  } catch (error) {
    failed = true;
    console.log(`${name}: ${error.stack}`);
  }
}
await close();
process.exit(failed ? 1 : 0);

async function check(file, name) {
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    if (!/^(file|data|about|blob):/.test(request.url())) problems.push(`fetches ${request.url()}`);
  });
  const url = "file://" + path.resolve(file);
  await page.setViewportSize({ width: 1280, height: 900 });
  // The fastest of a few times: others may have the processors meanwhile.
  const limit = 2000 * (process.env.CI ? 3 : 1);
  let opened = Infinity;
  for (let times = 0; times < 5 && opened >= limit; times += 1) {
    const start = Date.now();
    await page.goto(url, { waitUntil: "load" });
    opened = Math.min(opened, Date.now() - start);
  }
  assert(opened < limit, `takes ${opened} ms to open`);

  await sections(page);
  await firstScreen(page);
  await findings(page);
  await drillDown(page);
  await tables(page);
  await filter(page);
  await choices(page);
  await timeline(page);
  await rows(page);
  if (name === "estimates") await marks(page);
  await flame(page);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const width of [1280, 400]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(50);
      await layout(page, `${scheme}, ${width} pixels`);
      await columns(page, width);
      await accessible(page, `${scheme}, ${width} pixels`);
    }
  }
  for (const width of [1000, 800]) {
    await page.setViewportSize({ width, height: 900 });
    await columns(page, width);
  }
  const pdf = await page.pdf({ format: "A4" });
  assert(pdf.subarray(0, 5).toString() === "%PDF-" && pdf.length > 20_000, "prints");
  assert.equal(await page.evaluate("globalThis.broken"), undefined, "a name ran as a script");
  assert.equal(await page.locator("img").count(), 0, "a name became an element");
  assert.deepEqual(problems, [], "console");
  await page.close();
}

// Each section that the contents name is there, with something in it that is seen.
async function sections(page) {
  const links = await page.locator("nav.contents a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
  assert(links.length >= 5, `sections: ${links}`);
  for (const link of links) {
    const section = page.locator(link);
    const box = await section.boundingBox();
    // One finding of one line is less high than any other section.
    const heading = await section.locator("h2").first().boundingBox();
    const least = link === "#findings" ? heading.height + 16 : 60;
    assert(box && box.height > least, `${link} is empty: ${box?.height}`);
    const shown = await section.locator("svg, table, iframe, li, p").filter({ visible: true }).count();
    assert(shown > 0, `${link} shows nothing`);
  }
}

// Without scrolling: what it is, where the time goes, what is waited for. What was not seen is there, and folded.
async function firstScreen(page) {
  for (const card of ["header.top h1", "#where", "#waits"]) {
    const box = await page.locator(card).boundingBox();
    assert(box && box.y < 700, `${card} is on the first screen`);
  }
  assert(!(await page.locator("details.about").first().evaluate((details) => details.open)), "gaps are folded");
  // Letters without serifs, whatever the machine binds generic names to.
  const session = await page.context().newCDPSession(page);
  await session.send("DOM.enable");
  await session.send("CSS.enable");
  const { root } = await session.send("DOM.getDocument");
  const { nodeId } = await session.send("DOM.querySelector", { nodeId: root.nodeId, selector: "h1" });
  const { fonts } = await session.send("CSS.getPlatformFontsForNode", { nodeId });
  for (const font of fonts) assert(!/serif/i.test(font.familyName.replace(/sans[ -]?serif/i, "")), font.familyName);
  await session.detach();
}

// Tables are sorted by their headings, by the keys too, and long ones are folded.
async function tables(page) {
  const all = page.locator("main .scroll:not(#raw-scroll):visible");
  let sorted = 0;
  for (let at = 0; at < await all.count(); at += 1) {
    const table = all.nth(at);
    const rows = table.locator("tbody tr:visible");
    assert(await rows.count() <= 12, "long tables are folded");
    const number = table.locator("thead th.number button").first();
    if (await rows.count() < 2 || !(await number.count())) continue;
    await number.focus();
    await page.keyboard.press("Enter");
    assert.equal(await table.locator("th[aria-sort=descending]").count(), 1);
    const column = await table.locator("thead th").evaluateAll((heads) => heads.findIndex((head) => head.ariaSort === "descending"));
    const read = () => rows.evaluateAll((rows, column) => rows.map((row) => row.cells[column].textContent), column);
    const down = await read();
    await page.keyboard.press("Enter");
    assert.equal(await table.locator("th[aria-sort=ascending]").count(), 1);
    const up = await read();
    if (new Set(down).size > 1 && down.length === up.length) {
      assert.notDeepEqual(down, up, "sorts the other way");
      sorted += 1;
    }
  }
  assert(sorted > 0, "some table was sorted");
  const more = page.locator(".tools.below button:visible").first();
  if (await more.count()) {
    const text = await more.textContent();
    const all = Number(/Show all (\d+)/.exec(text)[1]);
    await more.focus();
    await page.keyboard.press("Enter");
    const scroll = page.locator(".tools.below:has(button[aria-expanded=true])").first().locator("xpath=preceding-sibling::*[1]");
    assert.equal(await scroll.locator("tbody tr:visible").count(), all);
    await page.keyboard.press("Enter");
  }
}

// One filter for the page; "/" goes to it, Escape empties it.
async function filter(page) {
  const rows = () => page.locator("main .scroll:not(#raw-scroll, .window) tbody tr:visible").count();
  const before = await rows();
  await page.locator("h1").click();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "filter");
  await page.keyboard.type("no such name anywhere");
  await page.waitForFunction(() => document.documentElement.classList.contains("filtered"));
  // It filters while one types.
  for (let times = 0; times < 300 && await rows(); times += 1) await page.waitForTimeout(50);
  assert.equal(await rows(), 0, "nothing has these words");
  assert.match(await page.locator("#raw-status").textContent(), /^0 of 0 rows/);
  assert(await page.locator("svg .off").count() > 0, "marks without the words are faint");
  await page.locator("#filter").focus();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.documentElement.classList.contains("filtered"));
  assert.equal(await rows(), before);
  assert.equal(await page.locator("svg .off").count(), 0);
  const name = await page.locator("#where .name:visible").first().textContent();
  await page.fill("#filter", name.slice(0, 30));
  await page.waitForFunction(() => document.documentElement.classList.contains("filtered"));
  const found = await page.locator("#where tbody tr:visible").first().textContent();
  const words = name.slice(0, 30).toLowerCase().split(/\s+/).filter(Boolean);
  assert(words.every((word) => found.toLowerCase().includes(word)), found);
  await page.fill("#filter", "");
  await page.waitForFunction(() => !document.documentElement.classList.contains("filtered"));
}

// Bars or pie, processor or wall time, by the keys.
async function choices(page) {
  for (const [name, one, other] of [["shape", ".as-bars", ".as-pie"], ["clock", ".of-cpu", ".of-wall"]]) {
    const box = page.locator(`fieldset[data-choice=${name}]`);
    if (!(await box.count())) continue;
    const seen = (what) => page.locator(`#where ${what}`).filter({ visible: true }).count();
    assert(await seen(one) > 0 && await seen(other) === 0, `${name}: begins with ${one}`);
    await box.locator("input").first().focus();
    await page.keyboard.press("ArrowRight");
    assert(await seen(one) === 0 && await seen(other) > 0, `${name}: changes to ${other}`);
    await page.keyboard.press("ArrowLeft");
    assert(await seen(one) > 0 && await seen(other) === 0, `${name}: and back`);
  }
}

// What is there to be read is in sight: no column is cut.
async function columns(page, width) {
  const cut = () => {
    const found = [];
    for (const scroll of document.querySelectorAll("main .scroll:not(#raw-scroll), header .scroll")) {
      if (!scroll.checkVisibility() || scroll.scrollWidth <= scroll.clientWidth + 1) continue;
      found.push(`${scroll.getAttribute("aria-label")}: ${scroll.scrollWidth} pixels in ${scroll.clientWidth}`);
    }
    return found;
  };
  // Tables are fitted when the page has been laid out.
  for (let times = 0; times < 100 && (await page.evaluate(cut)).length; times += 1) await page.waitForTimeout(50);
  assert.deepEqual(await page.evaluate(cut), [], `columns at ${width} pixels`);
}

// Findings lead to sections that are there.
async function findings(page) {
  const more = page.locator("#findings summary");
  if (await more.count()) await more.click();
  const links = page.locator("#findings a");
  for (let at = 0; at < await links.count(); at += 1) {
    await links.nth(at).click();
    const target = page.locator(await links.nth(at).getAttribute("href"));
    await target.locator("h2").waitFor({ state: "visible" });
    assert(await target.evaluate((section) => section.getBoundingClientRect().top < innerHeight), "is scrolled to");
  }
}

async function drillDown(page) {
  const all = page.locator("#time-all");
  const into = all.locator("table a").first();
  const id = (await into.getAttribute("href")).slice(1);
  const inner = page.locator("#" + id);
  assert(await all.isVisible() && !(await inner.isVisible()), "begins with all libraries");
  // By the keys: the link, then back by the path, then back by Escape.
  await into.focus();
  await page.keyboard.press("Enter");
  await inner.waitFor({ state: "visible" });
  assert(!(await all.isVisible()), "shows one level at a time");
  await inner.locator("nav.crumbs a").focus();
  await page.keyboard.press("Enter");
  await all.waitFor({ state: "visible" });
  await into.focus();
  await page.keyboard.press("Enter");
  await inner.waitFor({ state: "visible" });
  await page.keyboard.press("Escape");
  await all.waitFor({ state: "visible" });
  // By the mouse, on a slice; and back by the browser's own button.
  await all.scrollIntoViewIfNeeded();
  const slice = all.locator(`.wide [data-key="${id}"] path`).first();
  await slice.scrollIntoViewIfNeeded();
  const point = await slice.evaluate((path) => {
    // A slice may be a ring: its middle may not be in it.
    const box = path.getBoundingClientRect();
    for (let y = box.top + 1; y < box.bottom; y += 3) {
      for (let x = box.left + 1; x < box.right; x += 3) {
        if (y > 5 && y < innerHeight - 5 && document.elementFromPoint(x, y) === path) return [x, y];
      }
    }
    return null;
  });
  assert(point, "a slice can be met");
  await page.mouse.click(...point);
  await inner.waitFor({ state: "visible" });
  await page.goBack();
  await all.waitFor({ state: "visible" });
}

// Of the functions of that page one was sampled.
async function marks(page) {
  const row = page.locator("#raw-rows tbody tr", { hasText: "malloc" }).first();
  const cells = (await row.locator("td").allTextContents()).join(" | ");
  assert.match(cells, /~18\.5 % \| ~1\.17 ms ± 9\.5 % \| ~1\.17 ms \| 2198 \|/);
  assert.match(cells, /≥ 1\.0/);
  const others = await page.locator("#raw-rows tbody tr", { hasText: "pthread_cond_wait" }).first().textContent();
  assert.doesNotMatch(others, /[~±≥≤]/, "an exact figure is marked");
}

async function rows(page) {
  const status = () => page.locator("#raw-status").textContent();
  const first = () => page.locator("#raw-rows tbody tr").first().textContent();
  const before = await page.locator("#raw-rows tbody tr").count();
  assert.doesNotMatch(await page.locator("#raw-rows").textContent(), /NaN|Infinity/);
  assert(before > 0, "has rows");
  const name = await page.locator("#raw-rows tbody th").first().textContent();
  await page.fill("#raw-search", name.slice(0, 40));
  assert.match(await status(), /of [\d]+ rows/);
  for (const text of await page.locator("#raw-rows tbody th").allTextContents()) {
    const words = name.slice(0, 40).toLowerCase().split(/\s+/).filter(Boolean);
    assert(words.every((word) => text.toLowerCase().includes(word)), `finds ${text}`);
  }
  await page.fill("#raw-search", "no function has this name");
  assert.equal(await page.locator("#raw-rows tbody tr").count(), 0);
  await page.fill("#raw-search", "");
  assert.equal(await page.locator("#raw-rows tbody tr").count(), before);

  // Sorting by the keys; the one who sorts keeps the focus.
  const calls = () => page.locator("#raw-rows thead button", { hasText: /^calls$/ });
  await calls().focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#raw-rows th[aria-sort=descending]").textContent(), "calls");
  const most = await first();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#raw-rows th[aria-sort=ascending]").textContent(), "calls");
  // Not where all have as many.
  const names = await page.locator("#raw-rows thead th").allTextContents();
  const cells = page.locator(`#raw-rows tbody tr > :nth-child(${names.indexOf("calls") + 1})`);
  if (new Set(await cells.allTextContents()).size > 1) assert.notEqual(await first(), most, "sorts the other way");

  await page.locator("#raw-columns summary").click();
  const columns = await page.locator("#raw-rows thead th").count();
  await page.locator("#raw-columns label", { hasText: /^ ?p99$/ }).click();
  assert.equal(await page.locator("#raw-rows thead th").count(), columns + 1);
  await page.locator("#raw-columns summary").click();

  await page.locator("#raw-copy").click();
  await page.waitForFunction(() => document.getElementById("raw-status").textContent.includes("copied"));
  const csv = await page.evaluate(() => navigator.clipboard.readText());
  assert(/^function,library,/.test(csv) && csv.split("\r\n").length >= before, csv.slice(0, 200));
  const tables = await page.locator("#raw-table option").count();
  for (let at = 0; at < tables; at += 1) {
    await page.selectOption("#raw-table", String(at));
    assert(await page.locator("#raw-rows tbody tr").count() > 0, `table ${at} has rows`);
  }
  await page.selectOption("#raw-table", "0");
}

// Zooming and searching in the flame graph: what inferno's own script does.
async function flame(page) {
  const frame = page.locator(".flame iframe").first();
  await frame.scrollIntoViewIfNeeded();
  const inside = frame.contentFrame();
  const boxes = inside.locator("#frames > g");
  assert(await boxes.count() > 1, "has boxes");
  const width = async (at) => (await boxes.nth(at).locator("rect").boundingBox()).width;
  const widths = await Promise.all([...Array(await boxes.count()).keys()].slice(0, 40).map(width));
  const narrow = widths.findIndex((w) => w > 8 && w < Math.max(...widths) * 0.9);
  if (narrow >= 0) {
    await boxes.nth(narrow).locator("rect").click({ force: true });
    assert(await width(narrow) > widths[narrow], "zooms");
    await inside.locator("#unzoom").click();
  }
  // A closed graph is laid out when it is opened.
  const closed = page.locator(".flame:not([open])").filter({ visible: true }).first();
  if (await closed.count()) {
    await closed.locator("summary").click();
    const second = page.locator(".flame[open]").filter({ visible: true }).nth(1);
    const rects = second.locator("iframe").contentFrame().locator("#frames > g rect");
    const widest = () => rects.evaluateAll((all) => Math.max(...all.map((rect) => rect.getBoundingClientRect().width)));
    for (let times = 0; times < 300 && !(await widest() > 1000); times += 1) await page.waitForTimeout(100);
    assert(await widest() > 1000, "a graph that was closed is laid out");
    await second.locator("summary").click();
    await frame.scrollIntoViewIfNeeded();
  }
  // The box of all is as quiet in the dark: its light text stands out from it.
  const colours = () => inside.locator("#frames > g:has(title:text-matches('^all '))").first().evaluate((box) =>
    ["rect", "text"].map((name) => getComputedStyle(box.querySelector(name)).fill.match(/\d+/g).reduce((sum, part) => sum + Number(part), 0)));
  const scheme = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  await page.emulateMedia({ colorScheme: "dark" });
  const [box, text] = await colours();
  assert(box < 200 && text > 500, "the box of all is dark in the dark");
  await page.emulateMedia({ colorScheme: scheme });
  page.once("dialog", (dialog) => dialog.accept("."));
  await inside.locator("#search").click();
  await inside.locator("#matched:not(.hide)").waitFor();
}

// Nothing is cut, overlaps or scrolls sideways but in its own box.
async function layout(page, where) {
  const wrong = await page.evaluate(() => {
    const found = [];
    const page = document.documentElement;
    if (page.scrollWidth > page.clientWidth) found.push(`the page is ${page.scrollWidth} pixels wide`);
    const closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
    if (page.scrollWidth > page.clientWidth) found.push(`all unfolded, the page is ${page.scrollWidth} pixels wide`);
    for (const fieldset of document.querySelectorAll(".tools fieldset")) {
      if (fieldset.scrollWidth > fieldset.clientWidth + 1) found.push(`${fieldset.textContent} needs ${fieldset.scrollWidth} pixels`);
    }
    for (const details of closed) details.open = false;
    for (const svg of document.querySelectorAll("figure svg")) {
      const box = svg.getBoundingClientRect();
      if (!box.width) continue;
      const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent.trim(), text.getBoundingClientRect()]);
      for (const [i, [name, a]] of texts.entries()) {
        if (a.left < box.left - 1 || a.right > box.right + 1 || a.bottom > box.bottom + 1) found.push(`cut: ${name}`);
        for (const [other, b] of texts.slice(i + 1)) {
          const apart = a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 3 || b.bottom <= a.top + 3;
          if (!apart) found.push(`overlap: ${name} | ${other}`);
        }
      }
      const size = box.width / svg.viewBox.baseVal.width * 120;
      if (size < 8) found.push(`text of ${size} pixels`);
    }
    return found.slice(0, 10);
  });
  assert.deepEqual(wrong, [], where);
}

async function accessible(page, where) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => axe.run(document, { iframes: false, resultTypes: ["violations"] }));
  const serious = result.violations.filter((v) => ["serious", "critical"].includes(v.impact));
  const shown = serious.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | ")}`);
  assert.deepEqual(shown, [], where);
}
