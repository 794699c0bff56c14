// The Vercel AI SDK: generateText, or streamText with --stream; over chat completions, or its default API with --responses.
import { createOpenAI } from "@ai-sdk/openai";
import { Output, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { MODEL, converse, lookUp, parametersOf, schemaOf } from "./conversation.mjs";

const STREAM = process.argv.includes("--stream");

await converse((system, tools) => {
  const model = process.argv.includes("--responses") ? createOpenAI()(MODEL) : createOpenAI().chat(MODEL);
  const messages = [];
  const made = Object.fromEntries(
    Object.entries(tools).map(([name, one]) => [
      name,
      tool({
        description: one.description,
        inputSchema: jsonSchema(parametersOf(one)),
        execute: async (given) => lookUp(tools, name, given),
      }),
    ]),
  );

  return async (user, fields) => {
    const asked = { role: "user", content: user };
    const settings = {
      model,
      system,
      messages: [...messages, asked],
      tools: made,
      stopWhen: stepCountIs(8),
      ...(fields ? { output: Output.object({ schema: jsonSchema(schemaOf(fields)) }) } : {}),
    };
    let failed;
    const result = STREAM
      ? streamText({ ...settings, onError: ({ error }) => (failed = error) })
      : await generateText(settings);
    if (STREAM) await result.consumeStream();
    if (failed) throw failed;
    const text = await result.text;
    messages.push(asked, ...(await result.response).messages);
    return text;
  };
});
