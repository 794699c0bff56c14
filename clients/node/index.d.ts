/** A W3C trace context: what came with the request that an agent answers. */
export interface Trace { traceparent: string; tracestate?: string }
export interface Fact { id: string; content: string; importance?: number }
/** A reference to a sub-agent's answer. */
export interface Result { sessionId: string; hmac: string; subQuery?: string }
/** The right of one sub-agent to start one child session. */
export interface Delegation { headers: Record<string, string>; expiresAt?: string }
export interface Message { role: string; content: unknown; [field: string]: unknown }
export interface ChatRequest {
  model: string;
  messages: Message[];
  facts?: Fact[];
  results?: Result[];
  trace?: Trace;
  signal?: AbortSignal;
  /** Further fields of the OpenAI chat request. */
  [parameter: string]: unknown;
}
/** How a call was decided: interlock.api.sidecar.v1.Outcome with its fields as the protos name them. */
export interface Outcome {
  session_id: string;
  window_id: string;
  safety_budget_micros: number;
  headers: Record<string, string>;
  decision: { [field: string]: unknown } | null;
  report: { [field: string]: unknown } | null;
  [field: string]: unknown;
}
export interface Answer {
  text: string;
  completion: { [field: string]: unknown };
  /** CRP response headers, names in lower case. */
  headers: Record<string, string>;
  outcome: Outcome;
  /** The reference by which an orchestrator names this answer. */
  result: Result;
}
/** An answer in parts: iterate over it for its text. */
export interface AnswerStream extends AsyncIterable<string> {
  /** What was released so far. */
  readonly text: string;
  /** The whole answer, once all its parts are there. */
  readonly answer: Answer | undefined;
}
export interface CallOptions { trace?: Trace; signal?: AbortSignal }

export class Client {
  constructor(target: string, options?: { apiKey?: string; ca?: string | Uint8Array });
  as(apiKey: string): Client;
  session(options?: { policy?: string; delegation?: Delegation }): Session;
  close(): void;
}
export class Session {
  private constructor();
  readonly id: string;
  chat(request: ChatRequest): Promise<Answer>;
  stream(request: ChatRequest): AnswerStream;
  check(text: string, options?: CallOptions & { facts?: Fact[] }): Promise<Outcome>;
  delegate(agentType?: string, options?: CallOptions): Promise<Delegation>;
  dag(format?: "text" | "mermaid" | "dot" | "json", options?: { tree?: boolean }): Promise<string>;
  terminate(): Promise<void>;
}

/** A call without an answer. Branch on the class and on `reason`. */
export class InterlockError extends Error {
  readonly reason: string;
  readonly metadata: Record<string, string>;
  readonly headers: Record<string, string>;
  /** Time after which a retry may help; 0: none does. */
  readonly retryAfterMs: number;
  readonly code: number;
}
export class BadRequest extends InterlockError {}
export class Unauthenticated extends InterlockError {}
export class Forbidden extends InterlockError {}
export class NotFound extends InterlockError {}
export class Conflict extends InterlockError {}
export class SafetyHalt extends InterlockError {}
export class Unavailable extends InterlockError {}
