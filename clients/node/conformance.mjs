// Plays clients/conformance.yaml against a sidecar: node conformance.mjs SCRIPT TARGET [CA]. One line for each step; 1 if one differed.
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { Client, InterlockError } from "./index.mjs";

const [file, target, ca] = process.argv.slice(2);
const script = parse(readFileSync(file, "utf8"), { merge: true });
const client = new Client(target, { apiKey: "", ca: ca && readFileSync(ca) });
let differed = 0;

for (const { name, steps } of script.cases) {
  const known = { sessions: {}, delegations: {}, results: {} };
  for (const [number, step] of steps.entries()) {
    const problem = await play(known, step);
    if (problem) differed++;
    console.log(`${name}\t${number + 1}\t${problem}`);
  }
}
client.close();
process.exitCode = differed ? 1 : 0;

async function play(known, step) {
  const session = (known.sessions[step.session] ??= client
    .as(script.keys[step.key] ?? "")
    .session({ policy: step.policy, delegation: known.delegations[step.delegation] }));
  const before = session.id;
  const parts = [];
  try {
    return differs(step.expect, await call(known, session, step, parts), before, session.id, parts);
  } catch (error) {
    if (!(error instanceof InterlockError)) throw error;
    const heard = (step.expect.heard ?? "") === parts.join("");
    const expected = error.name === step.expect.error && error.reason === step.expect.reason && heard;
    return expected ? "" : `${error.name} ${error.message}`;
  }
}

async function call(known, session, step, parts) {
  if (step.call === "delegate") return (known.delegations[step.as] = await session.delegate(step.agent_type));
  if (step.call === "dag") return { text: await session.dag("text") };
  if (step.call === "terminate") return session.terminate();
  const trace = step.trace && { traceparent: `00-${step.trace}-00f067aa0ba902b7-01` };
  const results = (step.results ?? []).map((name) => known.results[name]);
  const messages = [{ role: "user", content: step.ask }];
  const request = { model: script.model, messages, facts: step.facts, results, trace };
  const answer = step.call === "stream" ? await streamed(session.stream(request), parts) : await session.chat(request);
  if (step.as) known.results[step.as] = answer.result;
  return answer;
}

async function streamed(stream, parts) {
  for await (const part of stream) parts.push(part);
  return stream.answer;
}

function differs(want, answer, before, after, parts) {
  if (parts.length < (want.parts ?? 0) || (want.parts && parts.join("") !== answer.text)) return `parts: ${JSON.stringify(parts)}`;
  if (want.error) return `answered, and was to be refused with ${want.reason}`;
  if (want.text && answer.text !== want.text) return `text: ${answer.text}`;
  if (want.contains && !answer.text.includes(want.contains)) return `text: ${answer.text}`;
  if (want.same_session && before !== after) return `another session: ${after}`;
  for (const [name, value] of Object.entries(want.headers ?? {})) {
    if (answer.headers[name] !== value) return `${name}: ${answer.headers[name]}`;
  }
  return "";
}
