package interlock

import (
	"context"
	"net/http"
)

// Trace is a W3C trace context: what came with the request that an agent answers, and goes on with its governed calls.
type Trace struct{ Parent, State string }

type traceKey struct{}

// WithTrace returns a context whose calls belong to a trace.
func WithTrace(ctx context.Context, trace Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, trace)
}

// TraceFrom reads the trace of an incoming HTTP request.
func TraceFrom(header http.Header) Trace {
	return Trace{Parent: header.Get("traceparent"), State: header.Get("tracestate")}
}

// Inject writes the trace into the headers of a request that the agent sends.
func (t Trace) Inject(header http.Header) {
	for i, pairs := 0, t.pairs(); i < len(pairs); i += 2 {
		header.Set(pairs[i], pairs[i+1])
	}
}

func traceOf(ctx context.Context) Trace {
	trace, _ := ctx.Value(traceKey{}).(Trace)
	return trace
}

func (t Trace) pairs() []string {
	var pairs []string
	if t.Parent != "" {
		pairs = append(pairs, "traceparent", t.Parent)
		if t.State != "" {
			pairs = append(pairs, "tracestate", t.State)
		}
	}
	return pairs
}
