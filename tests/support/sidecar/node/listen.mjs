// What the vendors' Node clients make of a streamed answer: node listen.mjs HTTP < {path, headers, more}, one JSON line for each.
import { createInterface } from "node:readline";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [http] = process.argv.slice(2);
const openai = new OpenAI({ baseURL: `${http}/v1`, apiKey: "sk-client", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: http, apiKey: "sk-client", maxRetries: 0 });
const messages = [{ role: "user", content: "What is it?" }];

const fronts = {
  "/v1/chat/completions": {
    open: (more, options) => openai.chat.completions.create({ model: "m", messages, ...more, stream: true }, options),
    read: (heard, { choices }) => choices.forEach((choice) => choiceOf(heard, choice)),
  },
  "/v1/completions": {
    open: (more, options) => openai.completions.create({ model: "m", prompt: "What is it?", ...more, stream: true }, options),
    read: (heard, { choices }) => {
      for (const choice of choices) {
        heard.text += choice.text;
        heard.ended = choice.finish_reason ?? heard.ended;
      }
    },
  },
  "/v1/responses": {
    open: (more, options) => openai.responses.create({ model: "m", input: "What is it?", ...more, stream: true }, options),
    read: (heard, event) => {
      if (event.type === "response.output_text.delta") heard.text += event.delta;
      if (event.type === "response.reasoning_text.delta") heard.thought += event.delta;
      if (event.type === "response.function_call_arguments.delta") heard.arguments += event.delta;
      if (/^response\.(completed|incomplete|failed)$/.test(event.type)) heard.ended = event.type.slice("response.".length);
    },
  },
  "/v1/messages": {
    open: (more, options) => anthropic.messages.create({ model: "m", max_tokens: 100, messages, ...more, stream: true }, options),
    read: (heard, event) => {
      if (event.type === "content_block_delta") {
        heard.text += event.delta.text ?? "";
        heard.thought += event.delta.thinking ?? "";
        heard.arguments += event.delta.partial_json ?? "";
      }
      if (event.type === "message_delta") heard.ended = event.delta.stop_reason;
    },
  },
};

function choiceOf(heard, { delta, finish_reason: finish }) {
  heard.text += delta.content ?? "";
  heard.thought += delta.reasoning_content ?? "";
  for (const call of delta.tool_calls ?? []) heard.arguments += call.function?.arguments ?? "";
  heard.ended = finish ?? heard.ended;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { path, headers, more } = JSON.parse(line);
  const heard = { text: "", thought: "", arguments: "", ended: null, error: null };
  const { open, read } = fronts[path];
  try {
    for await (const event of await open(more, { headers })) {
      read(heard, event);
      if (heard.text) console.log(JSON.stringify({ said: heard.text }));
    }
  } catch (error) {
    if (!(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError)) throw error;
    heard.error = error.constructor.name;
  }
  console.log(JSON.stringify(heard));
}
