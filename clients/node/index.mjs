// Governs the calls of an agent over gRPC: keeps the session and its token, delegates to sub-agents, tells refusals apart.
import { setTimeout as pause } from "node:timers/promises";
import grpc from "@grpc/grpc-js";
import { CHANNEL, definitions } from "./descriptors.mjs";
import { errorOf, SafetyHalt } from "./errors.mjs";

export * from "./errors.mjs";

const RETRIES = 2;
const LONGEST_PAUSE_MS = 30_000;

const { SidecarService } = grpc.loadPackageDefinition(definitions).interlock.api.sidecar.v1;

export class Client {
  #stub;
  #key;

  /** Connects to the gRPC front of a sidecar, HOST:PORT. Without `ca` (PEM) it is plain text, as a sidecar on loopback has it. */
  constructor(target, { apiKey = process.env.OPENAI_API_KEY ?? "", ca, _stub } = {}) {
    this.#key = apiKey;
    const credentials = ca ? grpc.credentials.createSsl(Buffer.from(ca)) : grpc.credentials.createInsecure();
    this.#stub = _stub ?? new SidecarService(target, credentials, CHANNEL);
  }

  /** The same connection with another agent's key. */
  as(apiKey) {
    return new Client("", { apiKey, _stub: this.#stub });
  }

  /** A new session; its first call starts it. */
  session(options = {}) {
    return new Session(this.#stub, this.#key, options);
  }

  /** Closes the connection. Sessions do not end with it. */
  close() {
    this.#stub.close();
  }
}

export class Session {
  #stub;
  #key;
  #policy;
  #first;
  #token = "";
  #id = "";
  #last = Promise.resolve();

  constructor(stub, key, { policy, delegation } = {}) {
    this.#stub = stub;
    this.#key = key;
    this.#policy = policy ? [policy] : [];
    this.#first = delegation?.headers ?? {};
  }

  /** The session's id; empty before its first call. */
  get id() {
    return this.#id;
  }

  /** A governed call after the latest one. Throws an InterlockError where there is no answer to release. */
  chat({ facts = [], results = [], trace, signal, ...body }) {
    return this.#next(async () => {
      const send = () =>
        this.#call("Dispatch", { chat_request: Buffer.from(JSON.stringify(body)), facts, sub_agent_results: results.map(named) }, { trace, signal });
      // The call before was charged, and its answer was lost on the way: go on with the newer token that the refusal brought.
      const { chat_response, outcome } = await send().catch((e) => (e.reason === "WINDOW_ALREADY_SETTLED" ? send() : Promise.reject(e)));
      return this.#answer(JSON.parse(chat_response.toString("utf8")), outcome);
    });
  }

  /**
   * The same call, of which each part is there once it was judged and put on record. Iterate over it for the text; then `answer` is
   * there. Iterating throws an InterlockError where there is no answer, or the rest of one may not leave. Other calls wait for its end.
   */
  stream({ facts = [], results = [], trace, signal, ...body }) {
    const request = { chat_request: Buffer.from(JSON.stringify(body)), facts, sub_agent_results: results.map(named) };
    const stream = { text: "", answer: undefined, [Symbol.asyncIterator]: () => this.#parts(stream, request, { trace, signal }) };
    return stream;
  }

  async *#parts(stream, dispatch, options) {
    let release;
    const before = this.#last;
    this.#last = new Promise((resolve) => (release = resolve));
    await before;
    let call;
    try {
      for (let attempt = 0, settled = false; ; attempt++) {
        const request = { dispatch: { ...dispatch, context: { session_token: this.#token, safety_policy: this.#policy } } };
        call = this.#stub.DispatchStream(request, this.#metadata(options.trace));
        const cancel = () => call.cancel();
        options.signal?.addEventListener("abort", cancel, { once: true });
        try {
          for await (const { part, whole } of call) {
            if (whole) {
              stream.answer = this.#answer(JSON.parse(whole.chat_response.toString("utf8")), whole.outcome);
            } else if (part.text) {
              stream.text += part.text;
              yield part.text;
            }
          }
          return;
        } catch (failed) {
          const refused = errorOf(failed);
          this.#learn(refused.headers);
          if (stream.text) throw refused; // what has left cannot be asked for again
          const lost = refused.reason === "WINDOW_ALREADY_SETTLED" && !settled;
          const waits = refused.retryAfterMs && attempt < RETRIES && !(refused instanceof SafetyHalt);
          if (!lost && !waits) throw refused;
          settled ||= lost;
          if (waits) await pause(Math.min(refused.retryAfterMs, LONGEST_PAUSE_MS), undefined, { signal: options.signal });
        } finally {
          options.signal?.removeEventListener("abort", cancel);
        }
      }
    } finally {
      call?.cancel();
      release();
    }
  }

  /** Governs a text that the caller already has. A halt is an answer here: read `outcome.decision`. */
  check(text, { facts = [], trace, signal } = {}) {
    return this.#next(async () => this.#answer(null, (await this.#call("Check", { text, facts }, { trace, signal })).outcome).outcome);
  }

  /** The right of one sub-agent to start one child session: send its headers along, over HTTP or as gRPC metadata. */
  delegate(agentType = "", { trace, signal } = {}) {
    return this.#next(async () => {
      const { headers, expires_at } = await this.#call("Delegate", { agent_type: agentType }, { trace, signal });
      return { headers: mapOf(headers), expiresAt: expires_at };
    });
  }

  /** The window DAG as text, mermaid, dot or json. */
  dag(format = "text", { tree = false } = {}) {
    return this.#next(async () => (await this.#call("GetDag", { session_token: this.#token, format, tree }, {}, false)).picture);
  }

  /** Ends the session for good; one without a call needs no end. */
  terminate() {
    return this.#next(async () => {
      if (this.#token) await this.#call("Terminate", { session_token: this.#token }, {}, false);
    });
  }

  #next(run) {
    const ended = this.#last.then(run);
    this.#last = ended.catch(() => {});
    return ended;
  }

  async #call(method, request, options, withContext = true) {
    for (let attempt = 0; ; attempt++) {
      const context = withContext ? { context: { session_token: this.#token, safety_policy: this.#policy } } : {};
      try {
        return await this.#send(method, { ...context, ...request }, options);
      } catch (failed) {
        const refused = errorOf(failed);
        this.#learn(refused.headers);
        if (!refused.retryAfterMs || attempt === RETRIES || refused instanceof SafetyHalt) throw refused;
        await pause(Math.min(refused.retryAfterMs, LONGEST_PAUSE_MS), undefined, { signal: options.signal });
      }
    }
  }

  #send(method, request, { trace, signal }) {
    return new Promise((resolve, reject) => {
      const call = this.#stub[method](request, this.#metadata(trace), (error, response) => (error ? reject(error) : resolve(response)));
      signal?.addEventListener("abort", () => call.cancel(), { once: true });
    });
  }

  #metadata(trace) {
    const metadata = new grpc.Metadata();
    if (this.#key) metadata.set("authorization", `Bearer ${this.#key}`);
    for (const [name, value] of Object.entries(this.#token ? {} : this.#first)) {
      if (name.toLowerCase() !== "crp-safety-policy" || !this.#policy.length) metadata.set(name.toLowerCase(), value);
    }
    for (const name of ["traceparent", "tracestate"]) if (trace?.[name]) metadata.set(name, trace[name]);
    return metadata;
  }

  #learn(headers) {
    const [set] = (headers["crp-set-session"] ?? "").split(";");
    if (set.trim().startsWith("token=")) this.#token = set.trim().slice("token=".length);
    this.#id = headers["crp-context-session-id"] ?? this.#id;
  }

  #answer(completion, outcome) {
    this.#token = outcome.session_token || this.#token;
    this.#id = outcome.session_id || this.#id;
    const headers = Object.fromEntries(Object.entries(mapOf(outcome.headers)).map(([name, value]) => [name.toLowerCase(), value]));
    const text = completion?.choices?.[0]?.message?.content ?? "";
    return { text, completion, headers, outcome: { ...outcome, headers }, result: { sessionId: this.#id, hmac: headers["crp-provenance-hmac"] } };
  }
}

function named({ sessionId, hmac, subQuery = "" }) {
  return { session_id: sessionId, hmac, sub_query: subQuery };
}

// A loader that reads descriptors gives a map as its entries; one that reads .proto files, as an object.
function mapOf(value) {
  return Array.isArray(value) ? Object.fromEntries(value.map(({ key, value: of }) => [key, of])) : value;
}
