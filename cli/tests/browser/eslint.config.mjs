// What is checked of all scripts of the repository; see html/tests/script.rs, which runs it from the root.
import js from "@eslint/js";

const names = (text) => Object.fromEntries(text.trim().split(/\s+/).map((name) => [name, "readonly"]));
const page = names(`
  addEventListener clearTimeout cancelAnimationFrame devicePixelRatio dispatchEvent document Event getComputedStyle innerHeight
  innerWidth location matchMedia navigator Node requestAnimationFrame ResizeObserver setTimeout
`);
const node = names("process console URL Buffer");
const strict = {
  eqeqeq: "error",
  "no-var": "error",
  "prefer-const": "error",
  "no-unused-vars": ["error", { args: "after-used", caughtErrors: "all" }],
  "no-implicit-globals": "error",
  "no-eval": "error",
  "no-implied-eval": "error",
};

export default [
  js.configs.recommended,
  { rules: strict },
  { files: ["html/assets/script/**"], languageOptions: { globals: page }, rules: { "no-shadow": "error" } },
  { files: ["html/tests/script/**"], languageOptions: { globals: node } },
  // What is handed to a page is written where node's own names are known.
  { files: ["cli/tests/browser/**"], languageOptions: { globals: { ...node, ...page, axe: "readonly" } } },
];
