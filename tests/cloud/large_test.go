// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

const (
	// largeCloud is the least number of hosts for these figures.
	largeCloud = 256
	// crowd is the number of reservations that start in the same second, with crowdHosts hosts each.
	crowd, crowdHosts = 50, 2
	// tooLate is the limit for the delay of a start whose hosts were prepared.
	tooLate = 5 * time.Second
	// aheadOf is how long before its start the crowd is booked.
	aheadOf = 5 * time.Minute
	// guests is the number of other servers on the cloud, and of servers of some reservations.
	guests = 32
)

// The test also measures the figures of docs/performance.md that need a real Nova.
//
//make:test-large
func TestOnALargeCloudFiftyReservationsOfTheSameSecondStartInTime(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_LARGE") == "" {
		t.Skip("make test-large runs it")
	}
	cloud := labtest.OpenStack(t)
	nova, placement := labtest.Interpose(t, cloud.Compute), labtest.Interpose(t, cloud.Placement)
	l := besideLargeCloud(t, "OS_NOVA__ENDPOINT_OVERRIDE="+nova.URL, "OS_PLACEMENT__ENDPOINT_OVERRIDE="+placement.URL)
	l.measureReadings()

	start := time.Now().Add(aheadOf).Truncate(time.Minute)
	ahead := l.bookCrowd("ahead", &start, crowd, crowdHosts)
	l.tellCosts("before the preparation")
	l.awaitPrepared(ahead, start.Add(-10*time.Second))
	l.tellCosts("after it")
	late := l.lateness(ahead, "active", start)
	l.tell("starts on prepared hosts", late)
	if most := slices.Max(late); most > tooLate {
		t.Errorf("a reservation became active %v after its time, want at most %v", most, tooLate)
	}
	calls := callsOfStarts(start, nova, placement)
	l.tellCalls(start, calls, nova, placement)
	alone := l.alone(calls)
	l.tell("starts' calls alone", alone)
	l.t.Logf("a start takes %.2f times as long as the calls alone at the median, and the last one %.2f times",
		quotient(medianTime(late), medianTime(alone)), quotient(slices.Max(late), slices.Max(alone)))

	l.tellCosts("after the starts")
	l.fill(ahead[:guests/crowdHosts])
	asked := time.Now()
	atOnce := l.bookCrowd("at-once", nil, crowd, crowdHosts)
	l.tell("starts at once, with nothing prepared", l.lateness(atOnce, "active", asked))

	end := time.Now().Add(15 * time.Second).Truncate(time.Second)
	for _, r := range ahead {
		if _, err := l.demo.almanac.ChangeReservation(t.Context(), r.ID, v1.ReservationChange{EndTime: &end}); err != nil {
			t.Fatal(err)
		}
	}
	l.tell("ends, a third with servers", l.lateness(ahead, "ended", end))
	l.tellCosts("at the end")
	for _, r := range atOnce {
		if err := l.demo.almanac.DeleteReservation(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
	}
	l.within(10*time.Minute, 5*time.Second, "the doctor finds nothing", l.sound)
}

// large is an almanacd, and perhaps other replicas, beside a large cloud with all hosts in the pool.
type large struct {
	*beside
	others []*built.Service
}

// besideLargeCloud starts one with the default configuration, except for what tests need.
func besideLargeCloud(t *testing.T, settings ...string) *large {
	t.Helper()
	l := &large{beside: besideOpenStack(t, append(settings, "OS_INVENTORY__REFRESH_INTERVAL=10")...)}
	if hosts := len(l.cloud.Hosts(t)); hosts < largeCloud {
		t.Fatalf("the lab has %d hosts, and these figures are about %d: COMPUTES=%d tests/openstack/lab up", hosts, largeCloud, largeCloud)
	}
	l.tellCosts("after the start")
	l.pool("cmp-*")
	return l
}

// measureReadings logs the first reading of the cloud, those after it, and those while servers
// are created.
func (l *large) measureReadings() {
	l.t.Helper()
	var all []reading
	readings := func(n int) func() bool {
		return func() bool {
			all = readingsOf(l.Service)
			return len(all) >= n
		}
	}
	l.await("the cloud is read again and again", readings(6))
	l.tellReadings("first reading", all[:1])
	l.tellReadings("when nothing has changed", all[1:])
	before := len(all)
	var ids []string
	for range guests {
		ids = append(ids, l.boot(l.demo2, "guest", tiny, ""))
	}
	l.run(ids)
	l.tellReadings(fmt.Sprintf("while %d servers are created", guests), readingsOf(l.Service)[before:])
}

// bookCrowd books reservations of that many hosts each. They start at start, or at once if it is nil.
func (l *large) bookCrowd(name string, start *time.Time, reservations, hosts int) (list []v1.Reservation) {
	l.t.Helper()
	var took []time.Duration
	for range reservations {
		sent := time.Now()
		r, err := l.demo.almanac.CreateReservation(l.t.Context(), v1.ReservationRequest{
			Name: name, StartTime: start, Duration: new(v1.Duration(3600)), Quantity: &hosts, OnEnd: "delete",
		}, client.CreateOptions{})
		if err != nil {
			l.t.Fatal(err)
		}
		list, took = append(list, r), append(took, time.Since(sent))
	}
	l.tell("bookings "+name, took)
	return list
}

// awaitPrepared waits until reservations have their aggregates, and logs the time from the
// first change on the cloud to the last.
func (l *large) awaitPrepared(list []v1.Reservation, until time.Time) {
	l.t.Helper()
	l.within(time.Until(until), 5*time.Second, "all reservations are prepared", func() bool {
		all := l.aggregates()
		return l.sound() && !slices.ContainsFunc(list, func(r v1.Reservation) bool {
			return len(all["almanac-reservation-"+r.ID]) != r.Quantity
		})
	})
	changes := l.changes(list[0].CreatedAt)
	l.t.Logf("preparing %d reservations: %d changes in %v%s", len(list), len(changes),
		changes[len(changes)-1].at.Sub(changes[0].at).Round(time.Second), load())
}

// fill creates servers in reservations, one on each of their hosts.
func (l *large) fill(list []v1.Reservation) {
	l.t.Helper()
	var ids []string
	for _, r := range list {
		for range crowdHosts {
			ids = append(ids, l.boot(l.demo, "own", r.ID, ""))
		}
	}
	l.run(ids)
}

// run waits until servers run. nova-scheduler takes a second for each.
func (l *large) run(ids []string) {
	l.t.Helper()
	l.within(20*time.Minute, 2*time.Second, "the servers run", func() bool {
		var list struct{ Servers []struct{ ID string } }
		l.admin.Must(http.MethodGet, "compute", "/servers?all_tenants=1&status=ACTIVE", nil, &list)
		running := map[string]bool{}
		for _, s := range list.Servers {
			running[s.ID] = true
		}
		return !slices.ContainsFunc(ids, func(id string) bool { return !running[id] })
	})
}

// lateness polls until reservations have a status. It returns how long after its time the owner
// first sees the status of each.
func (l *large) lateness(list []v1.Reservation, status string, since time.Time) []time.Duration {
	l.t.Helper()
	first := map[string]time.Time{}
	l.within(time.Until(since)+10*time.Minute, 200*time.Millisecond, "all reservations are "+status, func() bool {
		for r, err := range l.demo.almanac.ListReservations(l.t.Context(), client.ReservationFilter{Statuses: []string{status}}) {
			if err != nil {
				l.t.Fatal(err)
			}
			if _, seen := first[r.ID]; !seen {
				first[r.ID] = time.Now()
			}
		}
		return !slices.ContainsFunc(list, func(r v1.Reservation) bool { return first[r.ID].IsZero() })
	})
	var late []time.Duration
	for _, r := range list {
		late = append(late, first[r.ID].Sub(since))
	}
	return late
}
