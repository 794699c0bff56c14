// What the Node agents of the suite share: the user's turns on standard input, one line per turn on output. Nothing here knows of
// Interlock: the agents are told where the model is by OPENAI_BASE_URL and OPENAI_API_KEY.
import { text } from "node:stream/consumers";

export const MODEL = "gpt-4.1-mini";

export function lookUp(tools, name, args) {
  for (const row of tools[name].results) {
    const met = Object.entries(row.when ?? {}).every(
      ([key, value]) => String(args[key] ?? "").toLowerCase() === String(value).toLowerCase(),
    );
    if (met) return typeof row.result === "string" ? row.result : JSON.stringify(row.result);
  }
  return "No results.";
}

export function parametersOf(tool) {
  const properties = Object.fromEntries(
    Object.entries(tool.parameters).map(([key, [type, description]]) => [key, { type, description }]),
  );
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

export function schemaOf(fields) {
  const properties = Object.fromEntries(Object.entries(fields).map(([name, type]) => [name, { type }]));
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

export async function converse(make) {
  const given = JSON.parse(await text(process.stdin));
  const say = make(given.system, given.tools);
  for (const turn of given.turns) {
    let told;
    try {
      told = { text: await say(turn.user, turn.fields) };
    } catch (error) {
      told = { error: error.name, detail: String(error.message).slice(0, 300) };
    }
    console.log(JSON.stringify({ turn: turn.number, ...told }));
  }
}
