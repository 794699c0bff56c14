package interlock

import (
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Kind says what sort of refusal an Error is. The names are those of the Python client's classes.
type Kind string

// The kinds of refusals.
const (
	// BadRequest: the request is malformed, or too large.
	BadRequest Kind = "BadRequest"
	// Unauthenticated: the key, the token or the grant is missing, forged, expired or someone else's.
	Unauthenticated Kind = "Unauthenticated"
	// Forbidden: a policy was relaxed, a limit was reached, or the agent may not do this.
	Forbidden Kind = "Forbidden"
	// NotFound: this caller has no such resource.
	NotFound Kind = "NotFound"
	// Conflict: a race was lost, or a token was used before.
	Conflict Kind = "Conflict"
	// SafetyHalt: the answer was halted or is held, or the budget is spent.
	SafetyHalt Kind = "SafetyHalt"
	// Unavailable: a resource for the answer is not available now.
	Unavailable Kind = "Unavailable"
)

var kinds = map[codes.Code]Kind{
	codes.InvalidArgument:    BadRequest,
	codes.Unauthenticated:    Unauthenticated,
	codes.PermissionDenied:   Forbidden,
	codes.NotFound:           NotFound,
	codes.Aborted:            Conflict,
	codes.FailedPrecondition: SafetyHalt,
}

// Error is a call without an answer. Branch on Kind and Reason; the text is for people.
type Error struct {
	Kind Kind
	// Reason is a constant name in capitals, part of the API, such as SAFETY_HALT; the code's name where the server gave none.
	Reason string
	// Metadata is detail for programs, such as the limit that was reached.
	Metadata map[string]string
	// Headers are the CRP response headers of the refusal, names in lower case.
	Headers map[string]string
	// RetryAfter is the time after which a retry may help; 0: none does.
	RetryAfter time.Duration
	status     *status.Status
}

// Error tells the reason and the server's text.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Reason, e.status.Message()) }

// GRPCStatus lets status.FromError and status.Code read the refusal.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// refusal returns the typed error of a failed call, whose trailer has the response headers.
func refusal(err error, trailer metadata.MD) *Error {
	found := status.Convert(err)
	kind, known := kinds[found.Code()]
	if !known {
		kind = Unavailable
	}
	e := &Error{Kind: kind, Reason: "GRPC_" + found.Code().String(), Headers: headersOf(trailer), status: found}
	for _, detail := range found.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			e.Reason, e.Metadata = d.GetReason(), d.GetMetadata()
		case *errdetails.RetryInfo:
			e.RetryAfter = d.GetRetryDelay().AsDuration()
		}
	}
	return e
}

func headersOf(md metadata.MD) map[string]string {
	headers := make(map[string]string, md.Len())
	for name, values := range md {
		if len(values) > 0 {
			headers[name] = values[0]
		}
	}
	return headers
}
