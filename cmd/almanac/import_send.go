// SPDX-License-Identifier: Apache-2.0

package main

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

// sender requests one reservation from Almanac for each row of a file.
type sender struct {
	almanac *client.Client
	load    load
	shift   int64 // seconds
	policy  string
	dryRun  bool
	answers []answer // one for each row
}

// send sends the rows in their order, with a number of concurrent requests, and fills answers.
// It stops with an error if the other rows would fail too: Almanac does not answer or denies
// access, or the context ends.
func (s *sender) send(ctx context.Context, workers int, p progress) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.answers = make([]answer, len(s.load.rows))
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
				p.add(1)
			}
		})
	}
	for i, r := range s.load.rows {
		if r.problem == "" {
			next <- i
		}
	}
	close(next)
	group.Wait()
	p.finish()
	return context.Cause(ctx)
}

// sendRow requests row i and stores the answer.
func (s *sender) sendRow(ctx context.Context, i int) error {
	message, err := s.ask(ctx, s.load.rows[i])
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
func (s *sender) ask(ctx context.Context, r row) (string, error) {
	if s.dryRun {
		_, err := s.almanac.OfferReservation(ctx, s.request(r))
		return "offer", err
	}
	key := fmt.Sprintf("import-%s-%d-%d", s.load.digest, r.Line, s.shift)
	made, err := s.almanac.CreateReservation(ctx, s.request(r), client.CreateOptions{IdempotencyKey: key})
	return made.ID, err
}

// request returns the request for a row, moved by the shift.
func (s *sender) request(r row) v1.ReservationRequest {
	start := time.Unix(r.Begin()+s.shift, 0).UTC()
	end := start.Add(time.Duration(r.Booked()) * time.Second)
	name := r.Name
	switch {
	case name == "" && r.ID != "":
		name = "job-" + r.ID
	case name == "":
		name = fmt.Sprintf("line-%d", r.Line)
	}
	return v1.ReservationRequest{
		Name: name, Quantity: &r.Size, StartTime: &start, EndTime: &end, HostProperties: json.RawMessage(r.Properties), Policy: s.policy,
	}
}

// hopeless reports whether all further rows would fail in the same way.
func hopeless(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && (e.Status == 0 || e.Kind == fault.Unauthorized || e.Kind == fault.Denied)
}
