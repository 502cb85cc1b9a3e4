// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

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
	fault.Refused:       http.StatusConflict,
	fault.TooLarge:      http.StatusRequestEntityTooLarge,
	fault.Unprocessable: http.StatusUnprocessableEntity,
	fault.TooMany:       http.StatusTooManyRequests,
	fault.Unavailable:   http.StatusServiceUnavailable,
	fault.Internal:      http.StatusInternalServerError,
}

// overloaded is the Retry-After in the answer to a request that took too long.
const overloaded = 5 * time.Second

// json returns the handler of a call: it sends the answer as JSON, or the error. A call sets a
// status other than 200 itself; one that answers nil has no content.
func (s *server) json(call func(c *gin.Context) (answer any, err error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		answer, err := call(c)
		compute, is := answer.(later)
		if !is || err != nil {
			s.answer(c, answer, err)
			return
		}
		err = s.inItsTurn(c, func() {
			answer, err := compute()
			s.answer(c, answer, err)
		})
		if err != nil {
			s.fail(c, err)
		}
	}
}

func (s *server) answer(c *gin.Context, answer any, err error) {
	switch {
	case err != nil:
		s.fail(c, err)
	case answer == nil:
		c.Status(http.StatusNoContent)
	default:
		send(c, c.Writer.Status(), answer)
	}
}

// fail sends err as the answer and ends the request.
func (s *server) fail(c *gin.Context, err error) {
	if refusal, ok := errors.AsType[*reservation.Refusal](err); ok {
		s.refuse(c, refusal)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) && fault.Is(err, fault.Internal) {
		err = &fault.Error{Kind: fault.Unavailable, Message: "this took too long; try again", RetryAfter: overloaded, Err: err}
	}
	if errors.Is(err, context.Canceled) && fault.Is(err, fault.Internal) {
		err = &fault.Error{Kind: fault.Unavailable, Message: "the client has gone", RetryAfter: overloaded, Err: err}
	}
	s.failWith(c, statuses[fault.Of(err).Kind], err)
}

func (s *server) failWith(c *gin.Context, status int, err error) {
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
	sendError(c, status, v1.ErrorAnswer{Error: v1.Error{
		Kind: string(f.Kind), Field: f.Field, Message: message, RequestID: id,
	}})
}

func retryAfter(c *gin.Context, f *fault.Error) {
	c.Header("Retry-After", strconv.Itoa(max(1, int(math.Ceil(f.RetryAfter.Seconds())))))
}

// refuse sends a refusal as the answer to a valid request.
func (s *server) refuse(c *gin.Context, r *reservation.Refusal) {
	s.metrics.refusals.WithLabelValues(string(r.Constraint)).Inc()
	answer := v1.ErrorAnswer{
		Error: v1.Error{Kind: string(fault.Refused), Message: refusedText(c, r), RequestID: c.GetString(requestIDKey)},
		Refusal: &v1.Refusal{
			Constraint: string(r.Constraint), Matched: r.Matched, Free: r.Free,
			BlockedBy: make([]v1.Block, len(r.BlockedBy)), LargestQuantity: r.LargestQuantity,
		},
	}
	for i, b := range r.BlockedBy {
		answer.Refusal.BlockedBy[i] = v1.Block{Host: b.Host, Start: b.Span.Start.Time(), End: b.Span.End.Time()}
	}
	if !inBlazarsForm(c) && len(r.BlockedBy) > 0 {
		if err := s.inItsTurn(c, func() { s.nameBlockers(answer.Refusal.BlockedBy, r, c) }); err != nil {
			s.fail(c, err)
			return
		}
	}
	if r.EarliestStart != 0 {
		at := r.EarliestStart.Time()
		answer.Refusal.EarliestStart = &at
	}
	if r.LatestEnd != 0 {
		answer.Refusal.LatestEnd = new(r.LatestEnd.Time())
		answer.Error.Field = "end_time"
		if inBlazarsForm(c) {
			answer.Error.Field = "end_date"
		}
	}
	sendError(c, refusedStatus(c, r), answer)
}

// mostBlockers is the largest number of reservations that a block names.
const mostBlockers = 10

// nameBlockers adds to each block of a refusal the first reservations that hold its host in the requested
// time, as far as the caller may learn which hosts they have. The reservation that the request would
// change blocks nothing.
func (s *server) nameBlockers(shown []v1.Block, r *reservation.Refusal, c *gin.Context) {
	by, changed := asking(c), ""
	if own, is := c.Get(reservationKey); is {
		changed = own.(reservation.Reservation).ID
	}
	at := make(map[string][]int) // indexes of blocks, by host
	for i, b := range r.BlockedBy {
		at[b.Host] = append(at[b.Host], i)
	}
	for _, holder := range s.Booking.Live(r.Wanted) {
		if holder.ID == changed {
			continue
		}
		one := v1.Blocker{ID: holder.ID, Name: holder.Name, ProjectID: holder.ProjectID}
		for _, c := range holder.Claims {
			for _, i := range at[c.Host] {
				named := &shown[i].Reservations
				if c.Span.Overlaps(r.BlockedBy[i].Span) && c.Span.Overlaps(r.Wanted) && len(*named) < mostBlockers && !slices.Contains(*named, one) && knows(by, &holder) {
					*named = append(*named, one)
				}
			}
		}
	}
}

// challenge returns the WWW-Authenticate header that refers a caller without a token to Keystone,
// as keystonemiddleware does (auth_token/__init__.py, _reject_auth_headers).
func (s *server) challenge() string {
	if s.KeystoneURI == "" {
		return "Keystone"
	}
	return fmt.Sprintf("Keystone uri=%q", s.KeystoneURI)
}
