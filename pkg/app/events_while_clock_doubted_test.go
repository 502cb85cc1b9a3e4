// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// looks lets the clock look at a database this number of times.
func (a *App) looks(t *testing.T, number int, db server) {
	t.Helper()
	for range number {
		if err := a.clock.set(t.Context(), db, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
}

// works does one step of a job and waits until what it began is done.
func (a *App) works(t *testing.T, name string) {
	t.Helper()
	i := slices.IndexFunc(a.jobs, func(w *watchedJob) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("there is no job %q", name)
	}
	if err := a.jobs[i].Step(t.Context()); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	a.bookings.Wait()
}

func TestAJumpOfTheDatabasesClockEndsNoReservationBeforeItIsBelieved(t *testing.T) {
	a := opened(t, nil)
	r, err := a.bookings.Book(t.Context(), booking.Caller{ProjectID: "demo", UserID: "u"}, reservation.Request{
		Terms: reservation.Terms{Name: "training", Kind: reservation.Hosts, Quantity: 1}, Duration: 3600,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	status := func() reservation.Status {
		found, live := a.bookings.Reservation(r.ID)
		if !live {
			return reservation.Ended
		}
		return found.Status
	}
	for _, step := range []struct {
		what  string
		looks int
		want  reservation.Status
	}{
		{"before the jump", 0, reservation.Active},
		{"one answer is two hours ahead", 1, reservation.Active},
		{"all but one that it takes are", clockLooks - 2, reservation.Active},
		{"all that it takes are", 1, reservation.Ended},
	} {
		a.looks(t, step.looks, ahead(2*time.Hour))
		a.works(t, "events")
		a.works(t, "presence")
		if got := status(); got != step.want {
			t.Errorf("%s: the reservation is %s, want %s", step.what, got, step.want)
		}
	}
}

// taking are leases that nobody else has, and an eventBookings; they count the calls.
type taking struct {
	eventBookings
	leases, events, takeovers int
}

func (f *taking) Take(context.Context, string, time.Duration) (job.Lease, bool, error) {
	f.leases++
	return job.Lease{}, true, nil
}

func (f *taking) CarryOut(context.Context) ([]booking.Happening, map[string]error) {
	f.events++
	return nil, nil
}

func (f *taking) TakeOver(context.Context, func(string) bool) error {
	f.takeovers++
	return nil
}

func TestWhileTheClockIsInDoubtWorkThatGoesByItIsLeftToOthers(t *testing.T) {
	var c clock
	asked := &taking{}
	bookings, leases := punctual{asked, &c}, punctualLeases{asked, &c}
	work := func(want int) {
		t.Helper()
		bookings.CarryOut(t.Context())
		if err := bookings.TakeOver(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if _, held, err := leases.Take(t.Context(), "preparation", time.Minute); held != (c.doubt() == "") || err != nil {
			t.Errorf("the lease is held: %t, %v", held, err)
		}
		if asked.events != want || asked.takeovers != want || asked.leases != want {
			t.Errorf("%d times events, %d takeovers, %d leases; want %d of each", asked.events, asked.takeovers, asked.leases, want)
		}
	}
	c.shown.Store(&shown{})
	work(1)
	c.shown.Store(&shown{doubt: "nobody knows what time it is"})
	work(1)
}
