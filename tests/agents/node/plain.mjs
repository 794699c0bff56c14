// A loop over the plain `openai` package: ask, run the tools, ask again.
import OpenAI from "openai";
import { MODEL, converse, lookUp, parametersOf, schemaOf } from "./conversation.mjs";

const STEPS = 8;

await converse((system, tools) => {
  const client = new OpenAI();
  const messages = [{ role: "system", content: system }];
  const declared = Object.entries(tools).map(([name, tool]) => ({
    type: "function",
    function: { name, description: tool.description, parameters: parametersOf(tool) },
  }));

  return async (user, fields) => {
    messages.push({ role: "user", content: user });
    const format = fields && {
      response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema: schemaOf(fields) } },
    };
    for (let step = 0; step < STEPS; step++) {
      const answer = await client.chat.completions.create({
        model: MODEL,
        messages,
        ...(declared.length ? { tools: declared } : {}),
        ...format,
      });
      const message = answer.choices[0].message;
      messages.push(message);
      if (!message.tool_calls?.length) return message.content;
      for (const call of message.tool_calls) {
        const content = lookUp(tools, call.function.name, JSON.parse(call.function.arguments));
        messages.push({ role: "tool", tool_call_id: call.id, content });
      }
    }
    throw new Error("too many steps");
  };
});
