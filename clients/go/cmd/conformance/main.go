// Command conformance plays clients/conformance.yaml against a sidecar: conformance SCRIPT TARGET [CA].
// It prints one line for each step and ends with 1 if one differed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	interlock "interlock.dev/clients/go"
)

type script struct {
	Model string
	Keys  map[string]string
	Cases []struct {
		Name  string
		Steps []step
	}
}

type step struct {
	Call, Session, Key, Policy, Ask, Delegation, As, Trace string
	AgentType                                              string `yaml:"agent_type"`
	Facts                                                  []interlock.Fact
	Results                                                []string
	Expect                                                 expectation
}

type expectation struct {
	Text, Contains, Error, Reason, Heard string
	Parts                                int
	SameSession                          string `yaml:"same_session"`
	Headers                              map[string]string
}

type player struct {
	client      *interlock.Client
	script      script
	sessions    map[string]*interlock.Session
	delegations map[string]*interlock.Delegation
	results     map[string]interlock.Result
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("usage: conformance SCRIPT TARGET [CA]")
	}
	text, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	var played script
	if err := yaml.Unmarshal(text, &played); err != nil {
		return err
	}
	var options []interlock.Option
	if len(arguments) > 2 {
		ca, err := os.ReadFile(arguments[2])
		if err != nil {
			return err
		}
		options = append(options, interlock.WithCA(ca))
	}
	client, err := interlock.Dial(arguments[1], options...)
	if err != nil {
		return err
	}
	defer client.Close()
	differed := 0
	for _, one := range played.Cases {
		p := &player{client, played, map[string]*interlock.Session{}, map[string]*interlock.Delegation{}, map[string]interlock.Result{}}
		for number, step := range one.Steps {
			problem := p.play(step)
			if problem != "" {
				differed++
			}
			fmt.Printf("%s\t%d\t%s\n", one.Name, number+1, problem)
		}
	}
	if differed > 0 {
		return fmt.Errorf("%d steps differed", differed)
	}
	return nil
}

func (p *player) play(s step) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.Trace != "" {
		ctx = interlock.WithTrace(ctx, interlock.Trace{Parent: "00-" + s.Trace + "-00f067aa0ba902b7-01"})
	}
	session := p.session(s)
	before := session.ID()
	var parts []string
	text, headers, err := p.call(ctx, session, s, &parts)
	heard := strings.Join(parts, "")
	if len(parts) < s.Expect.Parts || s.Expect.Parts > 0 && heard != text || s.Expect.Heard != "" && heard != s.Expect.Heard {
		return fmt.Sprintf("parts: %q", parts)
	}
	return differs(s.Expect, text, headers, err, before, session.ID())
}

func (p *player) session(s step) *interlock.Session {
	if found, ok := p.sessions[s.Session]; ok {
		return found
	}
	var options []interlock.SessionOption
	if s.Policy != "" {
		options = append(options, interlock.WithPolicy(s.Policy))
	}
	if s.Delegation != "" {
		options = append(options, interlock.WithDelegation(p.delegations[s.Delegation]))
	}
	made := p.client.As(p.script.Keys[s.Key]).Session(options...)
	p.sessions[s.Session] = made
	return made
}

func (p *player) call(ctx context.Context, session *interlock.Session, s step, parts *[]string) (string, map[string]string, error) {
	switch s.Call {
	case "chat", "stream":
		request := interlock.Request{Model: p.script.Model, Messages: interlock.User(s.Ask), Facts: s.Facts}
		for _, name := range s.Results {
			request.Results = append(request.Results, p.results[name])
		}
		ask := session.Chat
		if s.Call == "stream" {
			ask = func(ctx context.Context, request interlock.Request) (*interlock.Answer, error) {
				return session.Stream(ctx, request, func(text string) error { *parts = append(*parts, text); return nil })
			}
		}
		answer, err := ask(ctx, request)
		if err != nil {
			return "", nil, err
		}
		p.results[s.As] = answer.Result("")
		return answer.Text, answer.Headers, nil
	case "delegate":
		delegation, err := session.Delegate(ctx, s.AgentType)
		p.delegations[s.As] = delegation
		return "", nil, err
	case "dag":
		picture, err := session.Dag(ctx, "text", false)
		return picture, nil, err
	case "terminate":
		return "", nil, session.Terminate(ctx)
	}
	return "", nil, fmt.Errorf("no call %q", s.Call)
}

func differs(want expectation, text string, headers map[string]string, err error, before, after string) string {
	var refused *interlock.Error
	switch {
	case err != nil && !errors.As(err, &refused):
		return err.Error()
	case refused != nil && (string(refused.Kind) != want.Error || refused.Reason != want.Reason):
		return fmt.Sprintf("%s %s", refused.Kind, refused)
	case refused == nil && want.Error != "":
		return "answered, and was to be refused with " + want.Reason
	case want.Text != "" && text != want.Text, !strings.Contains(text, want.Contains):
		return "text: " + text
	case want.SameSession != "" && before != after:
		return "another session: " + after
	}
	for name, value := range want.Headers {
		if headers[name] != value {
			return fmt.Sprintf("%s: %q", name, headers[name])
		}
	}
	return ""
}
