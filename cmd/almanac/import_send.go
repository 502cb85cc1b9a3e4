package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// verdict is how a row of an import was answered.
type verdict string

const (
	unsent   verdict = "not sent"
	accepted verdict = "accepted"
	refused  verdict = "refused"
	failed   verdict = "failed" // neither accepted nor refused
)

// answer is what came back for a row.
type answer struct {
	verdict    verdict
	constraint string // of a refusal
	message    string // the id of what was booked, or why it was not
}

// sender asks Almanac for the rows of a workload.
type sender struct {
	almanac *client.Client
	load    workload
	shift   int64 // seconds
	policy  string
	dryRun  bool
	answers []answer // one for each row
}

// send sends the rows in their order, so many at once, and fills answers. It
// fails, and leaves the rest unsent, where going on is of no use: Almanac does
// not answer or does not let the caller in, or the context ends.
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
				p.step()
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

// sendRow asks for row i and keeps the answer.
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

// ask books a row, or asks for an offer, and gives what to tell of it.
func (s *sender) ask(ctx context.Context, r row) (string, error) {
	if s.dryRun {
		_, err := s.almanac.OfferReservation(ctx, s.request(r))
		return "offer", err
	}
	key := fmt.Sprintf("import-%s-%s-%d", s.load.digest, r.id, s.shift)
	made, err := s.almanac.CreateReservation(ctx, s.request(r), client.CreateOptions{IdempotencyKey: key})
	return made.ID, err
}

// request asks for a row, moved.
func (s *sender) request(r row) v1.ReservationRequest {
	start, end := time.Unix(r.start+s.shift, 0).UTC(), time.Unix(r.end+s.shift, 0).UTC()
	return v1.ReservationRequest{
		Name: r.name, Quantity: &r.quantity, StartTime: &start, EndTime: &end,
		HostProperties: r.properties, Policy: s.policy,
	}
}

// hopeless says that the next row would end as this one did.
func hopeless(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && (e.Status == 0 || e.Kind == fault.Unauthorized || e.Kind == fault.Denied)
}
