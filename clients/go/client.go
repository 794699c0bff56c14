// Package interlock governs the calls of an agent: it keeps the session and its token, delegates to sub-agents, and tells refusals apart.
//
//	client, err := interlock.Dial("127.0.0.1:7071", interlock.WithAPIKey("key"))
//	session := client.Session(interlock.WithPolicy("halt-on HIGH"))
//	answer, err := session.Chat(ctx, interlock.Request{Model: "gpt-4o-mini", Messages: interlock.User("Say hello.")})
//	var refused *interlock.Error
//	if errors.As(err, &refused) && refused.Kind == interlock.SafetyHalt { ... }
package interlock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	commonv1 "interlock.dev/clients/go/gen/interlock/api/common/v1"
	sidecarv1 "interlock.dev/clients/go/gen/interlock/api/sidecar/v1"
)

const (
	retries      = 2
	longestPause = 30 * time.Second
	largest      = 64 << 20
)

// pings tell a line that died in silence within 15 seconds, with or without a call on it. Servers let a client ping twice as often.
var pings = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}

// Client is a connection to a sidecar, and the key of an agent. It is safe for concurrent use.
type Client struct {
	conn *grpc.ClientConn
	stub sidecarv1.SidecarServiceClient
	key  string
}

type dialing struct {
	key string
	tls credentials.TransportCredentials
	err error
}

// Option is a choice of Dial.
type Option func(*dialing)

// WithAPIKey gives the agent's key.
func WithAPIKey(key string) Option { return func(d *dialing) { d.key = key } }

// WithCA uses TLS, and checks the sidecar by these authorities (PEM).
func WithCA(pem []byte) Option {
	return func(d *dialing) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			d.err = errors.New("interlock: no certificate in the authorities")
		}
		d.tls = credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	}
}

// Dial connects to the gRPC front of a sidecar, HOST:PORT. Without WithCA it is plain text, as a sidecar on loopback has it.
func Dial(target string, options ...Option) (*Client, error) {
	chosen := dialing{tls: insecure.NewCredentials()}
	for _, option := range options {
		option(&chosen)
	}
	if chosen.err != nil {
		return nil, chosen.err
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(chosen.tls),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest)), grpc.WithKeepaliveParams(pings))
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, stub: sidecarv1.NewSidecarServiceClient(conn), key: chosen.key}, nil
}

// As is the same connection with another agent's key.
func (c *Client) As(key string) *Client { return &Client{conn: c.conn, stub: c.stub, key: key} }

// Close closes the connection. Sessions do not end with it: Terminate ends one.
func (c *Client) Close() error { return c.conn.Close() }

// Message is a message of the OpenAI API.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// User is one user message.
func User(text string) []Message { return []Message{{Role: "user", Content: text}} }

// Fact is what an answer may rest on.
type Fact struct {
	ID, Content string
	Importance  float64
}

// Result names a sub-agent's answer that a request is to be answered from.
type Result struct{ SessionID, HMAC, SubQuery string }

// Request is a chat request. Parameters are further fields of the OpenAI request.
type Request struct {
	Model      string
	Messages   []Message
	Parameters map[string]any
	Facts      []Fact
	Results    []Result
}

// Answer is a released answer.
type Answer struct {
	// Completion is the chat completion as the OpenAI API has it, JSON.
	Completion json.RawMessage
	// Text is the content of its first choice.
	Text string
	// Outcome has the decision and the report.
	Outcome *sidecarv1.Outcome
	// Headers are the CRP response headers, names in lower case.
	Headers map[string]string
}

// Result is the reference by which an orchestrator names this answer.
func (a *Answer) Result(subQuery string) Result {
	return Result{SessionID: a.Outcome.GetSessionId(), HMAC: a.Headers["crp-provenance-hmac"], SubQuery: subQuery}
}

// Session is one agent's session. It keeps the token; its calls run one after another.
type Session struct {
	client *Client
	policy []string
	first  map[string]string
	mu     sync.Mutex
	token  string
	id     string
}

// SessionOption is a choice of Session.
type SessionOption func(*Session)

// WithPolicy asks for a safety policy in every call; it may tighten what the deployment demands, and never relax it.
func WithPolicy(policy string) SessionOption { return func(s *Session) { s.policy = []string{policy} } }

// WithDelegation starts the session as the child that a delegation is for.
func WithDelegation(d *Delegation) SessionOption { return func(s *Session) { s.first = d.Headers } }

// Session is a new session; its first call starts it.
func (c *Client) Session(options ...SessionOption) *Session {
	s := &Session{client: c}
	for _, option := range options {
		option(s)
	}
	return s
}

// ID is the session's id; empty before its first call.
func (s *Session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Chat is a governed call after the latest one of the session. Its error is an *Error where there is no answer to release.
func (s *Session) Chat(ctx context.Context, request Request) (*Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := request.body()
	if err != nil {
		return nil, err
	}
	send := func(ctx context.Context, options ...grpc.CallOption) (*sidecarv1.DispatchResponse, error) {
		return s.client.stub.Dispatch(ctx, &sidecarv1.DispatchRequest{
			Context: s.context(), ChatRequest: body, Facts: request.facts(), SubAgentResults: request.results(),
		}, options...)
	}
	response, err := call(ctx, s, send)
	var refused *Error
	// The call before was charged, and its answer was lost on the way: go on with the newer token that the refusal brought.
	if errors.As(err, &refused) && refused.Reason == "WINDOW_ALREADY_SETTLED" {
		response, err = call(ctx, s, send)
	}
	if err != nil {
		return nil, err
	}
	outcome := response.GetOutcome()
	s.token, s.id = outcome.GetSessionToken(), outcome.GetSessionId()
	return answer(response.GetChatResponse(), outcome)
}

// Stream is the same call, of which each part is handed to part once it was judged and put on record. Its error is an *Error where
// there is no answer, or the rest of one may not leave: what was handed over stays with the caller. An error of part ends the call.
func (s *Session) Stream(ctx context.Context, request Request, part func(text string) error) (*Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := request.body()
	if err != nil {
		return nil, err
	}
	for attempt, settled := 0, false; ; attempt++ {
		dispatch := &sidecarv1.DispatchRequest{
			Context: s.context(), ChatRequest: body, Facts: request.facts(), SubAgentResults: request.results(),
		}
		begun, response, err := s.listen(ctx, dispatch, part)
		if err == nil {
			outcome := response.GetOutcome()
			s.token, s.id = outcome.GetSessionToken(), outcome.GetSessionId()
			return answer(response.GetChatResponse(), outcome)
		}
		var refused *Error
		if !errors.As(err, &refused) || begun { // what has left cannot be asked for again
			return nil, err
		}
		lost := refused.Reason == "WINDOW_ALREADY_SETTLED" && !settled
		waits := refused.RetryAfter > 0 && attempt < retries && refused.Kind != SafetyHalt
		if !lost && !waits {
			return nil, err
		}
		settled = settled || lost
		if waits {
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(min(refused.RetryAfter, longestPause)):
			}
		}
	}
}

// listen sends once and reads to the end; it tells whether a part was handed over.
func (s *Session) listen(
	ctx context.Context, dispatch *sidecarv1.DispatchRequest, part func(string) error,
) (bool, *sidecarv1.DispatchResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var trailer metadata.MD
	fail := func(err error) error {
		refused := refusal(err, trailer)
		s.learn(refused.Headers)
		return refused
	}
	stream, err := s.client.stub.DispatchStream(
		s.outgoing(ctx), &sidecarv1.DispatchStreamRequest{Dispatch: dispatch}, grpc.Trailer(&trailer))
	if err != nil {
		return false, nil, fail(err)
	}
	begun := false
	var whole *sidecarv1.DispatchResponse
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) && whole != nil {
			return begun, whole, nil
		}
		if err != nil {
			return begun, nil, fail(err)
		}
		if whole == nil {
			whole = message.GetWhole()
		}
		if text := message.GetPart().GetText(); text != "" {
			begun = true
			if err := part(text); err != nil {
				return begun, nil, err
			}
		}
	}
}

// Check governs a text that the caller already has. A halt is an answer here: read Outcome.
func (s *Session) Check(ctx context.Context, text string, facts []Fact) (*sidecarv1.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := Request{Facts: facts}
	response, err := call(ctx, s, func(ctx context.Context, options ...grpc.CallOption) (*sidecarv1.CheckResponse, error) {
		return s.client.stub.Check(ctx, &sidecarv1.CheckRequest{Context: s.context(), Text: text, Facts: request.facts()}, options...)
	})
	if err != nil {
		return nil, err
	}
	s.token, s.id = response.GetOutcome().GetSessionToken(), response.GetOutcome().GetSessionId()
	return response.GetOutcome(), nil
}

// Delegation is the right of one sub-agent to start one child session: send its Headers along, over HTTP or as gRPC metadata.
type Delegation struct {
	Headers   map[string]string
	ExpiresAt string
}

// Delegate asks for the delegation of one sub-agent; agentType may be empty for one that is not registered.
func (s *Session) Delegate(ctx context.Context, agentType string) (*Delegation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response, err := call(ctx, s, func(ctx context.Context, options ...grpc.CallOption) (*sidecarv1.DelegateResponse, error) {
		return s.client.stub.Delegate(ctx, &sidecarv1.DelegateRequest{Context: s.context(), AgentType: agentType}, options...)
	})
	if err != nil {
		return nil, err
	}
	return &Delegation{Headers: response.GetHeaders(), ExpiresAt: response.GetExpiresAt()}, nil
}

// Dag draws the window DAG as text, mermaid, dot or json, with the sessions below it where tree is set.
func (s *Session) Dag(ctx context.Context, format string, tree bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response, err := call(ctx, s, func(ctx context.Context, options ...grpc.CallOption) (*sidecarv1.GetDagResponse, error) {
		return s.client.stub.GetDag(ctx, &sidecarv1.GetDagRequest{SessionToken: s.token, Format: format, Tree: tree}, options...)
	})
	return response.GetPicture(), err
}

// Terminate ends the session for good; one without a call needs no end.
func (s *Session) Terminate(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" {
		return nil
	}
	_, err := call(ctx, s, func(ctx context.Context, options ...grpc.CallOption) (*sidecarv1.TerminateResponse, error) {
		return s.client.stub.Terminate(ctx, &sidecarv1.TerminateRequest{SessionToken: s.token}, options...)
	})
	return err
}

func (s *Session) context() *sidecarv1.CallContext {
	return &sidecarv1.CallContext{SessionToken: s.token, SafetyPolicy: s.policy}
}

// call sends once, and again where the server says that waiting helps. A refusal's token may be newer than ours.
func call[R any](ctx context.Context, s *Session, send func(context.Context, ...grpc.CallOption) (R, error)) (R, error) {
	for attempt := 0; ; attempt++ {
		var trailer metadata.MD
		response, err := send(s.outgoing(ctx), grpc.Trailer(&trailer))
		if err == nil {
			return response, nil
		}
		var none R
		refused := refusal(err, trailer)
		s.learn(refused.Headers)
		if refused.RetryAfter <= 0 || attempt == retries || refused.Kind == SafetyHalt {
			return none, refused
		}
		select {
		case <-ctx.Done():
			return none, refused
		case <-time.After(min(refused.RetryAfter, longestPause)):
		}
	}
}

func (s *Session) learn(headers map[string]string) {
	set, _, _ := strings.Cut(headers["crp-set-session"], ";")
	if token, ok := strings.CutPrefix(strings.TrimSpace(set), "token="); ok {
		s.token = token
	}
	if id := headers["crp-context-session-id"]; id != "" {
		s.id = id
	}
}

func (s *Session) outgoing(ctx context.Context) context.Context {
	var pairs []string
	if s.client.key != "" {
		pairs = append(pairs, "authorization", "Bearer "+s.client.key)
	}
	if s.token == "" {
		for name, value := range s.first {
			if !strings.EqualFold(name, "crp-safety-policy") || len(s.policy) == 0 {
				pairs = append(pairs, strings.ToLower(name), value)
			}
		}
	}
	pairs = append(pairs, traceOf(ctx).pairs()...)
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

func (r Request) body() ([]byte, error) {
	fields := map[string]any{}
	for name, value := range r.Parameters {
		fields[name] = value
	}
	fields["model"], fields["messages"] = r.Model, r.Messages
	return json.Marshal(fields)
}

func (r Request) facts() []*commonv1.Fact {
	var facts []*commonv1.Fact
	for _, fact := range r.Facts {
		facts = append(facts, &commonv1.Fact{Id: fact.ID, Content: fact.Content, Importance: fact.Importance})
	}
	return facts
}

func (r Request) results() []*sidecarv1.SubAgentResult {
	var results []*sidecarv1.SubAgentResult
	for _, one := range r.Results {
		results = append(results, &sidecarv1.SubAgentResult{SessionId: one.SessionID, Hmac: one.HMAC, SubQuery: one.SubQuery})
	}
	return results
}

func answer(body []byte, outcome *sidecarv1.Outcome) (*Answer, error) {
	var completion struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(body, &completion); err != nil {
		return nil, err
	}
	made := &Answer{Completion: body, Outcome: outcome, Headers: make(map[string]string, len(outcome.GetHeaders()))}
	for name, value := range outcome.GetHeaders() {
		made.Headers[strings.ToLower(name)] = value
	}
	if len(completion.Choices) > 0 {
		made.Text = completion.Choices[0].Message.Content
	}
	return made, nil
}
