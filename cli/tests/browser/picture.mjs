// The first screen of a page as a picture: node picture.mjs PAGE FILE.png
import path from "node:path";
import { chromium } from "playwright-core";
import { launch } from "./browser.mjs";

const [file, picture] = process.argv.slice(2);
const { context, close } = await launch(chromium);
const page = await context.newPage();
await page.setViewportSize({ width: 1100, height: 760 });
await page.goto("file://" + path.resolve(file));
await page.waitForTimeout(300);
await page.screenshot({ path: picture });
await close();
