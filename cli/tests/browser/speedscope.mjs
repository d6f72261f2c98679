// Checks documents against the JSON schema that speedscope publishes: node speedscope.mjs FILE...
import { readFileSync } from "node:fs";
import Ajv from "ajv";

const schema = JSON.parse(readFileSync("node_modules/speedscope/dist/release/file-format-schema.json"));
const validate = new Ajv({ strict: false }).compile(schema);
for (const file of process.argv.slice(2)) {
  const document = JSON.parse(readFileSync(file));
  if (!validate(document)) {
    console.error(file, validate.errors);
    process.exit(1);
  }
  for (const profile of document.profiles) {
    const known = document.shared.frames.length;
    const isSound = profile.samples.length === profile.weights.length &&
      profile.samples.every((stack) => stack.every((frame) => frame >= 0 && frame < known));
    if (!isSound) {
      console.error(file, profile.name, "refers to frames that are not there");
      process.exit(1);
    }
  }
  console.log(`${file}: ${document.profiles.length} profiles are as the schema says`);
}
