// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

// Store has the webhooks, and what waits for them.
type Store interface {
	Filler
	Sender
}

// Filler stores deliveries.
type Filler interface {
	// Unhooked returns the changes whose deliveries are not stored yet, in order, at most limit.
	Unhooked(ctx context.Context, limit int) ([]reservation.Change, error)
	// WebhooksOf returns the webhooks of projects, and those that are told of all projects.
	WebhooksOf(ctx context.Context, projects []string) ([]webhook.Webhook, error)
	// Hook stores deliveries, and in the same step that this was done for changes. Of each webhook it keeps at most most
	// deliveries, the last ones, and returns how many it dropped.
	Hook(ctx context.Context, lease job.Lease, places []int64, deliveries []webhook.Delivery, now span.Instant, most int) (dropped int, err error)
}

// Sender finds what to send, and stores what came of it.
type Sender interface {
	// DueWebhooks returns webhooks with a delivery to try at now, at most limit of those that are failing and of the others,
	// those that have waited longest.
	DueWebhooks(ctx context.Context, now span.Instant, limit int) ([]webhook.Due, error)
	// NextDelivery returns a webhook and the change of its first delivery, whose place is 0 if none waits.
	NextDelivery(ctx context.Context, id string) (webhook.Webhook, reservation.Change, error)
	// Tried stores what came of a try, and returns how many deliveries were given up.
	Tried(ctx context.Context, lease job.Lease, t webhook.Try) (givenUp int, err error)
}

const (
	// every is the interval of both jobs.
	every = time.Second
	// leaseTTL is for how long a replica has a job after it has stopped answering.
	leaseTTL = 15 * time.Second
	// fillBatch is how many changes are taken from the log in one transaction.
	fillBatch = 100
	// turn is for how many seconds one step takes on deliveries, so that it ends also if there are always more.
	turn = 10
	// MostWaiting is the largest number of deliveries that wait for a webhook.
	MostWaiting = 1000
	// atOnce is how many requests are in progress at the same time.
	atOnce = 16
	// looked is how many webhooks are read to choose from: more than a few projects can have, which may be in progress with a
	// quarter of the requests each.
	looked = 32 * atOnce
)

// Options are what the deliveries need.
type Options struct {
	Store  Store
	Leases job.Leases
	// Post sends a message once.
	Post func(ctx context.Context, m Message) webhook.Answer
	// Source is the source of the CloudEvents.
	Source string
	// GiveUpAfter is for how many seconds a delivery is tried.
	GiveUpAfter int64
	// Chance returns a number in [0, 1).
	Chance func() float64
	Now    func() span.Instant
	// Count is called with the outcome of each try and of each delivery that is given up; see Outcomes.
	Count func(outcome string, n int)
	Log   *slog.Logger
}

// The outcomes that are counted.
const (
	Delivered = "delivered" // the receiver has accepted it
	Failed    = "failed"    // a try
	GivenUp   = "given_up"  // it was too old, or the receiver refuses its content
	Dropped   = "dropped"   // too many others waited
)

// Outcomes are all outcomes that are counted.
var Outcomes = []string{Delivered, Failed, GivenUp, Dropped}

// Deliveries tells webhooks of changes.
type Deliveries struct{ Options }

// Jobs returns the job that stores deliveries, and the one that sends them. One replica at a time does each.
func (d Deliveries) Jobs() []job.Job {
	return []job.Job{
		{Name: "webhooks", Every: every, Step: job.Leased(d.Leases, "webhooks", leaseTTL, d.fill)},
		{Name: "webhook deliveries", Every: every, Step: job.Leased(d.Leases, "webhook deliveries", leaseTTL, d.send)},
	}
}

// fill stores the deliveries of all changes that have none yet.
func (d Deliveries) fill(ctx context.Context, held *job.Held) error {
	for {
		more, err := d.fillBatch(ctx, held.Lease)
		if err != nil || !more {
			return err
		}
		if err := held.Ensure(ctx); err != nil {
			return err
		}
	}
}

func (d Deliveries) fillBatch(ctx context.Context, lease job.Lease) (more bool, err error) {
	changes, err := d.Store.Unhooked(ctx, fillBatch)
	if err != nil || len(changes) == 0 {
		return false, err
	}
	var projects []string
	places := make([]int64, len(changes))
	for i := range changes {
		places[i] = changes[i].Place
		projects = append(projects, changes[i].Reservation.Projects()...)
	}
	slices.Sort(projects)
	hooks, err := d.Store.WebhooksOf(ctx, slices.Compact(projects))
	if err != nil {
		return false, err
	}
	dropped, err := d.Store.Hook(ctx, lease, places, Match(changes, hooks), d.Now(), MostWaiting)
	d.count(Dropped, dropped)
	return len(changes) == fillBatch, err
}

// Match returns the deliveries of changes: one for each webhook that wants it.
func Match(changes []reservation.Change, hooks []webhook.Webhook) (list []webhook.Delivery) {
	for i := range changes {
		c := &changes[i]
		eventType, told := notice.TypeOf(*c)
		for j := range hooks {
			if told && hooks[j].Wants(eventType, &c.Reservation) {
				list = append(list, webhook.Delivery{WebhookID: hooks[j].ID, Place: c.Place, Changed: c.At})
			}
		}
	}
	return list
}

// send sends until nothing is due or its turn is over, and nothing is in progress.
func (d Deliveries) send(ctx context.Context, held *job.Held) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	done := make(chan finished, atOnce)
	var busy []webhook.Due
	for over := d.Now().Add(turn); ; {
		due, err := d.Store.DueWebhooks(ctx, d.Now(), looked)
		if err != nil {
			return err
		}
		if d.Now() >= over {
			due = nil
		}
		for _, next := range webhook.Choose(due, busy, atOnce) {
			busy = append(busy, next)
			running.Go(func() { done <- finished{next.ID, d.try(ctx, held.Lease, next.ID)} })
		}
		if len(busy) == 0 {
			return nil
		}
		if busy, err = d.await(ctx, done, busy); err != nil {
			return err
		}
		if err := held.Ensure(ctx); err != nil {
			return err
		}
	}
}

// finished is the end of a try.
type finished struct {
	id  string
	err error
}

// await waits until a try ends, but no longer than until others may be due, and returns those that are still in progress.
func (d Deliveries) await(ctx context.Context, done <-chan finished, busy []webhook.Due) ([]webhook.Due, error) {
	waiting, enough := context.WithTimeout(ctx, every)
	defer enough()
	for {
		select {
		case f := <-done:
			busy = slices.DeleteFunc(busy, func(b webhook.Due) bool { return b.ID == f.id })
			if f.err != nil {
				return busy, f.err
			}
			enough() // others that have ended are taken too
		case <-waiting.Done():
			if len(done) == 0 {
				return busy, ctx.Err()
			}
		}
	}
}

// try sends the first delivery of a webhook once.
func (d Deliveries) try(ctx context.Context, lease job.Lease, id string) error {
	hook, change, err := d.Store.NextDelivery(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	t := webhook.Try{WebhookID: id, Place: change.Place, Before: d.Now().Add(-d.GiveUpAfter)}
	if change.At < t.Before {
		t.Verdict = webhook.Verdict{Done: true, Failures: hook.Failures}
	} else if t.Verdict, err = d.tell(ctx, &hook, change); err != nil {
		return err
	}
	t.At = d.Now()
	givenUp, err := d.Store.Tried(ctx, lease, t)
	d.count(GivenUp, givenUp)
	return err
}

// tell sends a change to a webhook.
func (d Deliveries) tell(ctx context.Context, hook *webhook.Webhook, change reservation.Change) (webhook.Verdict, error) {
	id, body, err := notice.CloudEventOf(change, d.Source, notice.Sight{Hosts: hook.AllProjects || notice.HostsAreFinal(&change.Reservation)})
	if err != nil {
		return webhook.Verdict{}, err
	}
	answer := d.Post(ctx, Message{ID: id, URL: hook.URL, Secret: hook.Secret, Body: body})
	if ctx.Err() != nil { // the replica stops, or another one has the job
		return webhook.Verdict{}, context.Cause(ctx)
	}
	v := webhook.Judge(hook.Failures, answer, d.Chance())
	if v.Delivered {
		d.count(Delivered, 1)
		return v, nil
	}
	d.count(Failed, 1)
	d.Log.InfoContext(ctx, "a webhook was not told of a change", "webhook", hook.ID, "project", hook.ProjectID, "event", id, "failures", v.Failures, "reason", v.Error)
	return v, nil
}

func (d Deliveries) count(outcome string, n int) {
	if n > 0 {
		d.Count(outcome, n)
	}
}
