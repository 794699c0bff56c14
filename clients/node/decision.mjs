// Serves an agent of the decision protocol: it pulls its tasks over one stream, answers each before its deadline, and connects again.
import { setTimeout as pause } from "node:timers/promises";
import grpc from "@grpc/grpc-js";
import { errorOf } from "./errors.mjs";
import { CHANNEL, definitions } from "./descriptors.mjs";

const { DecisionService } = grpc.loadPackageDefinition(definitions).interlock.api.decision.v1;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
const { UNAUTHENTICATED, NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT, UNIMPLEMENTED } = grpc.status;
const LASTING = new Set([UNAUTHENTICATED, NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT, UNIMPLEMENTED]);

/**
 * Serves `agent` until `signal` aborts. Rejects where no other try can help, such as DECISION_AGENT_REPLACED.
 *
 * `agent.name` is the name that it was registered by. `agent.process(state, signals, { cycle, deadline, signal })` returns
 * `{ signals, proposals }`, or a promise of it. What it throws is logged and answers nothing: the rules of its role speak for it.
 */
export async function runAgent(
  agent,
  { at = process.env.INTERLOCK_DECISION_AT ?? "127.0.0.1:7086", ticket = process.env.INTERLOCK_DECISION_TICKET ?? "", ca, signal } = {},
) {
  const credentials = ca ? grpc.credentials.createSsl(Buffer.from(ca)) : grpc.credentials.createInsecure();
  const stub = new DecisionService(at, credentials, CHANNEL);
  try {
    for (let wait = FIRST_PAUSE_MS; !signal?.aborted; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
      if (await work(stub, agent, ticket, signal)) wait = FIRST_PAUSE_MS;
      await pause(wait * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
    }
  } finally {
    stub.close();
  }
}

// Answers tasks until the stream ends; returns whether there was one.
async function work(stub, agent, ticket, signal) {
  const stream = stub.Work({ ticket });
  const cancel = () => stream.cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  let worked = false;
  try {
    for await (const task of stream) {
      worked = true;
      await answer(stub, agent, ticket, task);
    }
  } catch (failed) {
    const refused = errorOf(failed);
    if (!signal?.aborted && (LASTING.has(failed.code) || refused.reason === "DECISION_AGENT_REPLACED")) throw refused;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
  return worked;
}

async function answer(stub, agent, ticket, task) {
  const late = new AbortController();
  const left = task.deadline_ms - Math.min(100, task.deadline_ms / 10);
  const timer = setTimeout(() => late.abort(), left);
  try {
    const state = JSON.parse(task.snapshot_json, (_, value) => (typeof value === "object" ? Object.freeze(value) : value));
    const heard = task.signals.map(({ payload_json, ...one }) => ({ ...one, payload: JSON.parse(payload_json) }));
    const told = { cycle: task.cycle, deadline: Date.now() + left, signal: late.signal };
    const { signals = [], proposals = [] } = await Promise.race([agent.process(state, heard, told), deadline(late.signal)]);
    await call(stub, {
      ticket,
      task_id: task.task_id,
      snapshot_hash: task.snapshot_hash,
      signals: signals.map((one) => signalOf(agent.name, one)),
      proposals: proposals.map((one) => proposalOf(agent.name, one)),
    });
  } catch (failed) {
    console.error(`no answer to cycle ${task.cycle}:`, failed.message);
  } finally {
    clearTimeout(timer);
  }
}

function deadline(signal) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("its deadline passed")), { once: true }));
}

function call(stub, request) {
  return new Promise((resolve, reject) => stub.Answer(request, (error, response) => (error ? reject(error) : resolve(response))));
}

function signalOf(name, { type, payload = {}, confidence, timestamp = Date.now() / 1000 }) {
  return { type, source: name, timestamp, payload_json: JSON.stringify(payload), confidence };
}

function proposalOf(name, { actionType, target = "", parameters = {}, expectedEffect = "", riskLevel = "LOW", confidence, rationale, signalsUsed = [], id = "" }) {
  return {
    id,
    agent: name,
    action_type: actionType,
    target,
    parameters_json: JSON.stringify(parameters),
    expected_effect: expectedEffect,
    risk_level: riskLevel,
    confidence,
    rationale,
    signals_used: signalsUsed,
  };
}
