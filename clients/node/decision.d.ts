export interface DecisionSignal {
  id?: string;
  type: string;
  source?: string;
  /** Seconds since the epoch; absent in what is emitted: now. */
  timestamp?: number;
  payload: Readonly<Record<string, unknown>>;
  /** From 0 to 1. */
  confidence: number;
}

export interface DecisionProposal {
  actionType: string;
  target?: string;
  parameters?: Record<string, unknown>;
  expectedEffect?: string;
  riskLevel?: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
  /** From 0 to 1. */
  confidence: number;
  /** Why; mandatory. */
  rationale: string;
  signalsUsed?: string[];
  id?: string;
}

export interface DecisionTask {
  cycle: number;
  /** Milliseconds since the epoch; an answer after it counts for nothing. */
  deadline: number;
  /** Aborts at the deadline. */
  signal: AbortSignal;
}

export interface Processed {
  signals?: DecisionSignal[];
  proposals?: DecisionProposal[];
}

export interface DecisionAgent {
  /** The name that it was registered by. */
  name: string;
  process(state: Readonly<Record<string, any>>, signals: DecisionSignal[], task: DecisionTask): Processed | Promise<Processed>;
}

/** Serves an agent until `signal` aborts. `at` and `ticket` come from INTERLOCK_DECISION_AT and INTERLOCK_DECISION_TICKET. */
export function runAgent(agent: DecisionAgent, options?: { at?: string; ticket?: string; ca?: string; signal?: AbortSignal }): Promise<void>;
