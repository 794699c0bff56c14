// An agent of the ml profile in Node: it proposes another sampler when the metric stands still. `interlock decision certify` runs it.
import { runAgent } from "./decision.mjs";

const LEAST = 0.5;

await runAgent({
  name: "protocol",
  process(state, signals) {
    const flat = signals.find(({ type, confidence }) => type === "metric_plateau" && confidence >= LEAST);
    const { sampler, samplers = [] } = state.search ?? {};
    if (!flat || state.trial_active || !Array.isArray(samplers)) return {};
    const next = samplers[samplers.indexOf(sampler) + 1];
    if (!next) return {};
    return {
      proposals: [
        {
          actionType: "SWITCH_HPO",
          target: "search",
          parameters: { sampler: next },
          expectedEffect: `${next} proposes trials elsewhere.`,
          confidence: flat.confidence,
          rationale: `The metric stands still under ${sampler}.`,
          signalsUsed: [flat.id],
        },
      ],
    };
  },
});
