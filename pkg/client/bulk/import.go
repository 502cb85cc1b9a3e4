// SPDX-License-Identifier: Apache-2.0

// Package bulk books the reservations of a file through the API, one request for each line.
package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// verdict is the answer to a row of an import.
type verdict string

const (
	unsent   verdict = "not sent"
	accepted verdict = "accepted"
	refused  verdict = "refused"
	failed   verdict = "failed" // neither accepted nor refused
)

// answer is Almanac's answer for a row.
type answer struct {
	verdict    verdict
	constraint string // of a refusal
	message    string // the id of the reservation, or why there is none
}

// Import requests one reservation from Almanac for each row of a file.
type Import struct {
	Almanac *client.Client
	File    File
	Shift   int64  // added to all starts, in seconds
	Policy  string // how to choose among the possible starts; empty is Almanac's default
	DryRun  bool   // only offers are requested

	answers []answer // one for each row
}

// Send sends the rows in their order, with a number of concurrent requests, and calls answered after
// each. It stops with an error if the other rows would fail too: Almanac does not answer or
// denies access, or the context ends.
func (s *Import) Send(ctx context.Context, workers int, answered func()) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.answers = make([]answer, len(s.File.rows))
	for i := range s.answers {
		s.answers[i].verdict = unsent
	}
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					continue
				}
				if err := s.sendRow(ctx, i); hopeless(err) {
					stop(err)
				}
				answered()
			}
		})
	}
	for i, r := range s.File.rows {
		if r.problem == "" {
			next <- i
		}
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

// sendRow requests row i and stores the answer.
func (s *Import) sendRow(ctx context.Context, i int) error {
	message, err := s.ask(ctx, s.File.rows[i])
	s.answers[i] = answer{verdict: accepted, message: message}
	if err != nil {
		s.answers[i] = answer{verdict: failed, message: err.Error()}
	}
	if e, ok := errors.AsType[*client.Error](err); ok && e.Refusal != nil {
		s.answers[i] = answer{verdict: refused, constraint: e.Refusal.Constraint, message: e.Message}
	}
	return err
}

// ask books a row, or requests an offer, and returns the message for the report.
func (s *Import) ask(ctx context.Context, r row) (string, error) {
	if s.DryRun {
		_, err := s.Almanac.OfferReservation(ctx, s.request(r))
		return "offer", err
	}
	key := fmt.Sprintf("import-%s-%d-%d", s.File.digest, r.Line, s.Shift)
	made, err := s.Almanac.CreateReservation(ctx, s.request(r), client.CreateOptions{IdempotencyKey: key})
	return made.ID, err
}

// request returns the request for a row, moved by the shift.
func (s *Import) request(r row) v1.ReservationRequest {
	start := time.Unix(r.Begin()+s.Shift, 0).UTC()
	end := start.Add(time.Duration(r.Booked()) * time.Second)
	name := r.Name
	switch {
	case name == "" && r.ID != "":
		name = "job-" + r.ID
	case name == "":
		name = fmt.Sprintf("line-%d", r.Line)
	}
	return v1.ReservationRequest{
		Name: name, Quantity: &r.Size, StartTime: &start, EndTime: &end, HostProperties: json.RawMessage(r.Properties), Policy: s.Policy,
	}
}

// hopeless reports whether all further rows would fail in the same way.
func hopeless(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && (e.Status == 0 || e.Kind == fault.Unauthorized || e.Kind == fault.Denied)
}
