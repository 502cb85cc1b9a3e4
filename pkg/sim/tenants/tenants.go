// SPDX-License-Identifier: Apache-2.0

// Package tenants simulates the users of a demo: they book hosts, start servers in their
// reservations and beside them, queue work, cancel and delete, through the API like everybody.
package tenants

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// Bookings makes and cancels reservations.
type Bookings interface {
	CreateReservation(ctx context.Context, r v1.ReservationRequest, o client.CreateOptions) (v1.Reservation, error)
	GetReservation(ctx context.Context, id string) (v1.Reservation, error)
	DeleteReservation(ctx context.Context, id string) error
}

// Servers makes and deletes servers.
type Servers interface {
	CreateDemoServer(ctx context.Context, r v1.DemoServerRequest) (v1.DemoServer, error)
	DeleteDemoServer(ctx context.Context, id string) error
}

// Queue accepts and cancels best-effort work.
type Queue interface {
	SubmitBestEffort(ctx context.Context, r v1.BestEffortRequest, o client.CreateOptions) (v1.BestEffort, error)
	CancelBestEffort(ctx context.Context, id string) error
}

// Options are the dependencies and settings of Live.
type Options struct {
	Bookings Bookings
	Servers  Servers
	Queue    Queue
	Seed     uint64        // determines what the tenants do
	Pace     time.Duration // mean time between two requests
	Stretch  int           // what the times in the requests are multiplied by; 0 is 1
	Now      func() time.Time
	Wait     func(ctx context.Context, d time.Duration) error
	Log      *slog.Logger
}

// These numbers bound what the tenants have at once. Beyond them, the tenants release the oldest.
const mostReservations, mostServers, mostWork = 12, 24, 4

// names begin the names of what the tenants make.
var names = []string{"astro", "bio", "chem", "film", "web"}

// life is what the tenants have made.
type life struct {
	Options
	chance       *rand.Rand
	made         int
	reservations []string // ids, the oldest first
	servers      []string
	work         []string
}

// Live makes requests until ctx ends. A refusal is part of life: it is logged, and the tenants go on.
func Live(ctx context.Context, o Options) {
	o.Stretch = max(1, o.Stretch)
	l := &life{Options: o, chance: sim.Chance(o.Seed, "tenants")}
	for {
		if err := o.Wait(ctx, time.Duration(l.chance.ExpFloat64()*float64(o.Pace))); err != nil {
			return
		}
		what, err := l.act(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.Log.InfoContext(ctx, "a simulated tenant was refused", "request", what, "error", err)
		default:
			o.Log.DebugContext(ctx, "a simulated tenant made a request", "request", what)
		}
	}
}

// act makes one request.
func (l *life) act(ctx context.Context) (what string, err error) {
	switch n := l.chance.IntN(100); {
	case n < 25:
		return "book", l.book(ctx)
	case n < 45:
		return "server in a reservation", l.join(ctx)
	case n < 60:
		return "server", l.start(ctx, v1.DemoServerRequest{})
	case n < 75:
		return "preemptible server", l.start(ctx, v1.DemoServerRequest{Preemptible: true})
	case n < 83:
		return "work", l.submit(ctx)
	case n < 90:
		return "cancel", take(ctx, &l.reservations, l.chance, l.Bookings.DeleteReservation)
	default:
		return "delete", take(ctx, &l.servers, l.chance, l.Servers.DeleteDemoServer)
	}
}

// name returns a new name.
func (l *life) name() string {
	l.made++
	return fmt.Sprintf("%s-%d", names[l.chance.IntN(len(names))], l.made)
}

func (l *life) book(ctx context.Context) error {
	quantity, duration := 1+l.chance.IntN(3), v1.Duration(l.Stretch*(120+60*l.chance.IntN(15)))
	r := v1.ReservationRequest{Name: l.name(), Quantity: &quantity, Duration: &duration}
	if l.chance.IntN(3) > 0 {
		start := l.Now().Add(time.Duration(l.Stretch*(1+l.chance.IntN(25))) * time.Minute)
		r.StartTime = &start
	}
	if l.chance.IntN(4) == 0 {
		r.Image = "cuda-12"
	}
	made, err := l.Bookings.CreateReservation(ctx, r, client.CreateOptions{})
	if err == nil {
		err = keep(ctx, &l.reservations, made.ID, mostReservations, l.Bookings.DeleteReservation)
	}
	return err
}

// join starts a server in one of the reservations that have begun.
func (l *life) join(ctx context.Context) error {
	if len(l.reservations) == 0 {
		return nil
	}
	r, err := l.Bookings.GetReservation(ctx, l.reservations[l.chance.IntN(len(l.reservations))])
	if err != nil || r.Status != "active" {
		return err
	}
	return l.start(ctx, v1.DemoServerRequest{Hints: map[string]string{"reservation": r.ID}})
}

// start creates a server and deletes the oldest one if there are more than mostServers.
func (l *life) start(ctx context.Context, r v1.DemoServerRequest) error {
	r.Name, r.Image = l.name(), "debian-13"
	r.Flavor = []string{"small", "medium", "large"}[l.chance.IntN(3)]
	made, err := l.Servers.CreateDemoServer(ctx, r)
	if err == nil {
		err = keep(ctx, &l.servers, made.ID, mostServers, l.Servers.DeleteDemoServer)
	}
	if err == nil && made.Fault != "" {
		err = errors.New(made.Fault)
	}
	return err
}

// submit submits best-effort work and cancels the oldest if there is more than mostWork.
func (l *life) submit(ctx context.Context) error {
	vms, duration := 1+l.chance.IntN(4), v1.Duration(l.Stretch*(60+60*l.chance.IntN(8)))
	made, err := l.Queue.SubmitBestEffort(ctx, v1.BestEffortRequest{
		Name: l.name(), VMs: &vms, Flavor: "medium", Image: "debian-13", Duration: &duration,
	}, client.CreateOptions{})
	if err == nil {
		err = keep(ctx, &l.work, made.ID, mostWork, l.Queue.CancelBestEffort)
	}
	return err
}

// keep adds an id. If there are more than most, it releases the oldest.
func keep(ctx context.Context, ids *[]string, id string, most int, release func(context.Context, string) error) error {
	if *ids = append(*ids, id); len(*ids) <= most {
		return nil
	}
	oldest := (*ids)[0]
	*ids = (*ids)[1:]
	return gone(release(ctx, oldest))
}

// take releases one of the ids, if there is one.
func take(ctx context.Context, ids *[]string, chance *rand.Rand, release func(context.Context, string) error) error {
	if len(*ids) == 0 {
		return nil
	}
	i := chance.IntN(len(*ids))
	id := (*ids)[i]
	*ids = append((*ids)[:i:i], (*ids)[i+1:]...)
	return gone(release(ctx, id))
}

// gone returns err unless it states that the thing is gone or over already.
func gone(err error) error {
	if failed, ok := errors.AsType[*client.Error](err); ok && (failed.Status == 404 || failed.Status == 409) {
		return nil
	}
	return err
}
