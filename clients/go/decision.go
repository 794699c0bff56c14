package interlock

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"math/big"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	decisionv1 "interlock.dev/clients/go/gen/interlock/api/decision/v1"
)

const (
	firstAgentPause   = 50 * time.Millisecond
	longestAgentPause = 5 * time.Second
	longestMargin     = 100 * time.Millisecond
)

// DecisionSignal is an observation. Source, Timestamp and ID are empty in what an agent emits.
type DecisionSignal struct {
	ID, Type, Source string
	Timestamp        float64 // Seconds since the epoch; 0: now.
	Payload          map[string]any
	Confidence       float64 // From 0 to 1.
}

// DecisionProposal is what an agent wants done, and why.
type DecisionProposal struct {
	ID, ActionType, Target, ExpectedEffect string
	Rationale                              string // Why; mandatory.
	Risk                                   string // LOW, MEDIUM, HIGH or CRITICAL; empty: LOW.
	Parameters                             map[string]any
	Confidence                             float64 // From 0 to 1.
	SignalsUsed                            []string
}

// DecisionAgent observes and proposes.
type DecisionAgent interface {
	// Name is the name that it was registered by.
	Name() string
	// Process is given the snapshot and the signals that the agent declared. ctx ends at the deadline. With an error nothing is
	// answered, and the rules of its role speak for it.
	Process(ctx context.Context, state map[string]any, signals []DecisionSignal) ([]DecisionSignal, []DecisionProposal, error)
}

// RunDecisionAgent serves an agent until ctx ends. It pulls its tasks over one stream and connects again; it returns an error where no
// other try can help. An empty target or ticket is that of INTERLOCK_DECISION_AT or INTERLOCK_DECISION_TICKET.
func RunDecisionAgent(ctx context.Context, agent DecisionAgent, target, ticket string, options ...Option) error {
	chosen := dialing{tls: insecure.NewCredentials()}
	for _, option := range options {
		option(&chosen)
	}
	if chosen.err != nil {
		return chosen.err
	}
	target, ticket = orEnvironment(target, "INTERLOCK_DECISION_AT"), orEnvironment(ticket, "INTERLOCK_DECISION_TICKET")
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(chosen.tls),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest)), grpc.WithKeepaliveParams(pings))
	if err != nil {
		return err
	}
	defer conn.Close()
	serving := servedAgent{agent: agent, stub: decisionv1.NewDecisionServiceClient(conn), ticket: ticket}
	for pause := firstAgentPause; ctx.Err() == nil; pause = min(pause*2, longestAgentPause) {
		worked, err := serving.work(ctx)
		if refused := refusal(err, nil); ctx.Err() == nil && lasting(refused) {
			return refused
		}
		if worked {
			pause = firstAgentPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(spread(pause)):
		}
	}
	return ctx.Err()
}

type servedAgent struct {
	agent  DecisionAgent
	stub   decisionv1.DecisionServiceClient
	ticket string
}

// work answers tasks until the stream ends, and tells whether there was one.
func (s servedAgent) work(ctx context.Context) (worked bool, err error) {
	stream, err := s.stub.Work(ctx, &decisionv1.WorkRequest{Ticket: s.ticket})
	if err != nil {
		return false, err
	}
	for {
		task, err := stream.Recv()
		if err != nil {
			return worked, err
		}
		worked = true
		if err := s.answer(ctx, task); err != nil {
			log.Printf("no answer to cycle %d: %v", task.Cycle, err)
		}
	}
}

func (s servedAgent) answer(ctx context.Context, task *decisionv1.WorkResponse) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the agent panicked: %v", panicked)
		}
	}()
	whole := time.Duration(task.DeadlineMs) * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, whole-min(longestMargin, whole/10))
	defer cancel()
	var state map[string]any
	if err := json.Unmarshal([]byte(task.SnapshotJson), &state); err != nil {
		return err
	}
	heard := make([]DecisionSignal, len(task.Signals))
	for i, one := range task.Signals {
		heard[i] = DecisionSignal{ID: one.Id, Type: one.Type, Source: one.Source, Timestamp: one.Timestamp, Confidence: one.Confidence}
		if err := json.Unmarshal([]byte(one.PayloadJson), &heard[i].Payload); err != nil {
			return err
		}
	}
	signals, proposals, err := s.agent.Process(ctx, state, heard)
	if err != nil {
		return err
	}
	answer := &decisionv1.AnswerRequest{Ticket: s.ticket, TaskId: task.TaskId, SnapshotHash: task.SnapshotHash}
	for _, one := range signals {
		message, err := s.signal(one)
		if err != nil {
			return err
		}
		answer.Signals = append(answer.Signals, message)
	}
	for _, one := range proposals {
		message, err := s.proposal(one)
		if err != nil {
			return err
		}
		answer.Proposals = append(answer.Proposals, message)
	}
	_, err = s.stub.Answer(ctx, answer)
	return err
}

func (s servedAgent) signal(one DecisionSignal) (*decisionv1.Signal, error) {
	payload, err := object(one.Payload)
	if one.Timestamp == 0 {
		one.Timestamp = float64(time.Now().UnixMicro()) / 1e6
	}
	return &decisionv1.Signal{Type: one.Type, Source: s.agent.Name(), Timestamp: one.Timestamp, PayloadJson: payload, Confidence: one.Confidence}, err
}

func (s servedAgent) proposal(one DecisionProposal) (*decisionv1.Proposal, error) {
	parameters, err := object(one.Parameters)
	if one.Risk == "" {
		one.Risk = "LOW"
	}
	return &decisionv1.Proposal{
		Id: one.ID, Agent: s.agent.Name(), ActionType: one.ActionType, Target: one.Target, ParametersJson: parameters,
		ExpectedEffect: one.ExpectedEffect, RiskLevel: one.Risk, Confidence: one.Confidence, Rationale: one.Rationale,
		SignalsUsed: one.SignalsUsed,
	}, err
}

func object(value map[string]any) (string, error) {
	if value == nil {
		return "{}", nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// lasting tells whether another try does not mend a refusal.
func lasting(refused *Error) bool {
	switch status.Code(refused) {
	case codes.Unauthenticated, codes.NotFound, codes.PermissionDenied, codes.InvalidArgument, codes.Unimplemented:
		return true
	}
	return refused.Reason == "DECISION_AGENT_REPLACED"
}

func spread(pause time.Duration) time.Duration {
	part, err := rand.Int(rand.Reader, big.NewInt(int64(pause/2)))
	if err != nil {
		return pause
	}
	return pause/2 + time.Duration(part.Int64())
}

func orEnvironment(value, name string) string {
	if value != "" {
		return value
	}
	return os.Getenv(name)
}
