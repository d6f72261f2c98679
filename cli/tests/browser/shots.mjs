// Pictures of pages, to be looked at: node shots.mjs DIR PAGE... Wide and narrow, light and dark, and as printed, as PDF and as a picture.
import { chromium } from "playwright-core";
import path from "node:path";
import { launch } from "./browser.mjs";

const [directory, ...pages] = process.argv.slice(2);
const { context, close } = await launch(chromium);
for (const file of pages) {
  for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [400, "light"], [400, "dark"]]) {
    const page = await context.newPage();
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await page.goto("file://" + path.resolve(file));
    // Frames are painted once they are in the window.
    await page.setViewportSize({ width, height: await page.evaluate("document.documentElement.scrollHeight") });
    await page.waitForTimeout(400);
    const name = `${path.basename(file, ".html")}-${width}-${scheme}.png`;
    await page.screenshot({ path: path.join(directory, name), fullPage: true });
    await page.close();
  }
  // A4 at 96 pixels an inch, without its margins.
  const page = await context.newPage();
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 703, height: 1032 });
  await page.goto("file://" + path.resolve(file));
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.waitForTimeout(400);
  const name = path.join(directory, `${path.basename(file, ".html")}-printed`);
  await page.screenshot({ path: `${name}.png`, fullPage: true });
  await page.pdf({ path: `${name}.pdf`, preferCSSPageSize: true });
  await page.close();
}
await close();
