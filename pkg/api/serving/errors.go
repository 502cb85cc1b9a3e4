// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// statuses maps the kinds of faults to HTTP statuses.
var statuses = map[fault.Kind]int{
	fault.Invalid:       http.StatusBadRequest,
	fault.Unauthorized:  http.StatusUnauthorized,
	fault.Denied:        http.StatusForbidden,
	fault.NotFound:      http.StatusNotFound,
	fault.Conflict:      http.StatusConflict,
	fault.Precondition:  http.StatusPreconditionFailed,
	fault.Refused:       http.StatusConflict,
	fault.TooLarge:      http.StatusRequestEntityTooLarge,
	fault.Unprocessable: http.StatusUnprocessableEntity,
	fault.TooMany:       http.StatusTooManyRequests,
	fault.Unavailable:   http.StatusServiceUnavailable,
	fault.Internal:      http.StatusInternalServerError,
}

// Overloaded is the Retry-After in the answer to a request that took too long.
const Overloaded = 5 * time.Second

// Fail sends err as the answer and ends the request.
func (c *Call) Fail(err error) {
	if refusal, ok := errors.AsType[*reservation.Refusal](err); ok {
		c.refuse(refusal)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) && fault.Is(err, fault.Internal) {
		err = &fault.Error{Kind: fault.Unavailable, Message: "this took too long; try again", RetryAfter: Overloaded, Err: err}
	}
	if errors.Is(err, context.Canceled) && fault.Is(err, fault.Internal) {
		err = &fault.Error{Kind: fault.Unavailable, Message: "the client has gone", RetryAfter: Overloaded, Err: err}
	}
	c.FailWith(statuses[fault.Of(err).Kind], err)
}

// FailWith sends err with another status than that of its kind.
func (c *Call) FailWith(status int, err error) {
	s := c.server
	f, id := fault.Of(err), c.GetString(requestIDKey)
	message := f.Message
	switch f.Kind {
	case fault.Internal:
		s.Log.ErrorContext(c.Request.Context(), "request failed", "error", err)
		message += "; report the request id to your operator"
	case fault.Unavailable:
		s.Log.InfoContext(c.Request.Context(), "could not serve a request", "error", err)
		retryAfter(c, f)
	case fault.TooMany:
		retryAfter(c, f)
	case fault.Unauthorized:
		c.Header("WWW-Authenticate", s.challenge())
	}
	c.sendError(status, v1.ErrorAnswer{Error: v1.Error{
		Kind: string(f.Kind), Field: f.Field, Message: message, RequestID: id,
	}})
}

func retryAfter(c *Call, f *fault.Error) {
	c.Header("Retry-After", strconv.Itoa(max(1, int(math.Ceil(f.RetryAfter.Seconds())))))
}

// challenge returns the WWW-Authenticate header that refers a caller without a token to Keystone,
// as keystonemiddleware does (auth_token/__init__.py, _reject_auth_headers).
func (s *Server) challenge() string {
	if s.KeystoneURI == "" {
		return "Keystone"
	}
	return fmt.Sprintf("Keystone uri=%q", s.KeystoneURI)
}

// InDoubt adds the advice to an error after which it is unknown whether a change was stored; see
// booking.Records.
func InDoubt(err error, advice string) error {
	if !Doubtful(err) {
		return err
	}
	f := *fault.Of(err)
	if f.Kind == fault.Internal {
		f = fault.Error{Kind: fault.Unavailable, Message: "this took too long", RetryAfter: Overloaded}
	}
	f.Message, f.Err = f.Message+"; "+advice, err
	return &f
}

// Doubtful reports whether it is unknown, after an error, whether a change was stored.
func Doubtful(err error) bool {
	return (fault.Is(err, fault.Unavailable) || errors.Is(err, context.DeadlineExceeded)) && !errors.Is(err, reservation.ErrStale)
}
