// Package fault sorts errors by what the user can do about them.
//
// An error that reaches a user has a Kind; the kinds are mapped once to HTTP
// status codes (pkg/api) and once to exit codes (cmd/almanac). An error without
// a Kind is Internal: its text is for the log, not for the user.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the class of an error.
type Kind string

// The kinds, with what each tells the user.
const (
	Invalid       Kind = "invalid"       // correct the request
	Unauthorized  Kind = "unauthorized"  // say who you are
	Denied        Kind = "denied"        // ask someone who may
	NotFound      Kind = "not_found"     // there is no such thing for you
	Conflict      Kind = "conflict"      // the state of things does not allow it
	Refused       Kind = "refused"       // no capacity, or a limit: see the refusal
	TooLarge      Kind = "too_large"     // send less
	Unprocessable Kind = "unprocessable" // the same idempotency key with another body
	TooMany       Kind = "too_many"      // send fewer requests
	Unavailable   Kind = "unavailable"   // try again later
	Internal      Kind = "internal"      // tell the operator the request id
)

// Error is an error with a Kind.
type Error struct {
	Kind Kind
	// Field names the part of the request that is at fault, in the request's
	// own spelling, such as "host_properties" or "claims[2].hosts"; or nothing.
	Field string
	// Message is a sentence for the user.
	Message string
	// RetryAfter is how long to wait before trying again; Unavailable and
	// TooMany only.
	RetryAfter time.Duration
	// Err is the cause, for the log.
	Err error
}

func (e *Error) Error() string {
	text := e.Message
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// New gives an error of kind about no particular field.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Field gives an Invalid error about field.
func Field(field, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Of gives the fault in err's chain; an error without one becomes Internal.
// It gives nil for nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Message: "something went wrong inside Almanac", Err: err}
}

// Is says whether err is of kind.
func Is(err error, kind Kind) bool { return err != nil && Of(err).Kind == kind }
