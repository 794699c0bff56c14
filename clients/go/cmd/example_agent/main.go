// Command example_agent is an agent of the ml profile in Go: it proposes another sampler when the metric stands still.
// `interlock decision certify` runs it.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	interlock "interlock.dev/clients/go"
)

const least = 0.5

type protocol struct{}

func (protocol) Name() string { return "protocol" }

func (protocol) Process(_ context.Context, state map[string]any, signals []interlock.DecisionSignal) ([]interlock.DecisionSignal, []interlock.DecisionProposal, error) {
	search, _ := state["search"].(map[string]any)
	samplers, _ := search["samplers"].([]any)
	next := slices.Index(samplers, search["sampler"]) + 1
	if active, _ := state["trial_active"].(bool); active || next >= len(samplers) {
		return nil, nil, nil
	}
	for _, one := range signals {
		if one.Type != "metric_plateau" || one.Confidence < least {
			continue
		}
		return nil, []interlock.DecisionProposal{{
			ActionType: "SWITCH_HPO", Target: "search", Parameters: map[string]any{"sampler": samplers[next]},
			ExpectedEffect: "Another sampler proposes trials elsewhere.", Confidence: one.Confidence,
			Rationale: fmt.Sprintf("The metric stands still under %v.", search["sampler"]), SignalsUsed: []string{one.ID},
		}}, nil
	}
	return nil, nil, nil
}

func main() {
	if err := interlock.RunDecisionAgent(context.Background(), protocol{}, "", ""); err != nil {
		log.Fatal(err)
	}
}
