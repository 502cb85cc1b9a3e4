// SPDX-License-Identifier: Apache-2.0

// Package fault classifies errors by what the user can do about them.
//
// An error that reaches a user has a Kind. The kinds are mapped once to HTTP status codes
// (pkg/api) and once to exit codes (cmd/almanac). An error without a Kind is Internal: its text
// is for the log, not for the user.
package fault

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Kind is the class of an error.
type Kind string

// The kinds, each with the user's remedy.
const (
	Invalid       Kind = "invalid"       // correct the request
	Unauthorized  Kind = "unauthorized"  // authenticate
	Denied        Kind = "denied"        // ask someone with the right to do it
	NotFound      Kind = "not_found"     // it does not exist, or you may not see it
	Conflict      Kind = "conflict"      // the present state does not allow it
	Precondition  Kind = "precondition"  // it has changed since it was read; read it again
	Refused       Kind = "refused"       // no capacity, or a limit; the refusal explains it
	TooLarge      Kind = "too_large"     // send less
	Unprocessable Kind = "unprocessable" // the same idempotency key with another body
	TooMany       Kind = "too_many"      // send fewer requests
	Unavailable   Kind = "unavailable"   // try again later
	Internal      Kind = "internal"      // report the request id to the operator
)

// Error is an error with a Kind.
type Error struct {
	Kind Kind
	// Field names the invalid part of the request, in the request's own spelling, such as
	// "host_properties" or "claims[2].hosts"; or empty.
	Field string
	// Message is a sentence for the user.
	Message string
	// RetryAfter is how long to wait before the next attempt; Unavailable and TooMany only.
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

// New returns an error of kind without a field.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Field returns an Invalid error about field.
func Field(field, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Changed returns a Precondition error about what a client has read and somebody has changed since.
func Changed(what string) *Error {
	return New(Precondition, "the %s has changed since it was read: read it again, and decide again", what)
}

// Within returns an Invalid error unless the value of a field is from least to most, both included.
func Within[N int | int64 | float64](field string, value, least, most N) error {
	if value >= least && value <= most {
		return nil
	}
	return Field(field, "is %v; it must be from %s to %s", value, plain(least), plain(most))
}

// plain formats a bound without an exponent.
func plain[N int | int64 | float64](n N) string {
	if f := float64(n); f != math.Trunc(f) {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.0f", float64(n))
}

// While returns err with what was done when it occurred before its text, such as "read the images: …",
// or nil for nil.
func While(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// Of returns the fault in err's chain; an error without one becomes Internal. It returns nil
// for nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Message: "something went wrong inside Almanac", Err: err}
}

// Is reports whether err is of kind.
func Is(err error, kind Kind) bool { return err != nil && Of(err).Kind == kind }
