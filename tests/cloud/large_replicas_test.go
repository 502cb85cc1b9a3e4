// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
)

const (
	// newcomers is the number of servers that are requested, perSecond of them each second.
	newcomers, perSecond = 100, 10
	// multitude is the number of reservations of one host each that start in the same second.
	multitude = 200
	// multitudeAhead is how long before their start they are booked: the lead time.
	multitudeAhead = 15 * time.Minute
)

// Three almanacd serve a large cloud in the place of nova-scheduler. The test also measures the
// figures of docs/performance.md that need one.
//
//make:test-large
func TestOnALargeCloudTheStartsOfAKilledReplicaAreTakenOver(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_LARGE") == "" {
		t.Skip("make test-large runs it")
	}
	l := besideLargeCloud(t, built.AtTopic(t, built.Replace, "")...)
	built.TakeTopic(t)
	for range 2 {
		l.others = append(l.others, built.Start(t, built.NewFolder(t, built.TenHosts), l.settings...))
	}
	t.Cleanup(func() { l.others[1].Stop(t) }) // one that was killed counts as running for some seconds
	l.measureNews()
	l.tellCosts("after the news")

	begin := time.Now().Add(multitudeAhead).Truncate(time.Second)
	list := l.bookCrowd("fence", &begin, multitude, 1)
	l.awaitPrepared(list, begin.Add(-5*time.Second))
	l.tellCosts("after the preparation")
	l.within(time.Until(begin)+5*time.Minute, 20*time.Millisecond, "some of the starts are done", func() bool { return l.count("active") > 0 })
	l.others[0].Kill()
	t.Logf("one of three replicas is killed when %d of %d reservations are active", l.count("active"), multitude)
	l.tell("starts while a replica is killed", l.lateness(list, "active", begin))
	l.tellCosts("after the starts")
	l.within(10*time.Minute, 5*time.Second, "the doctor finds nothing while all are active", l.sound)

	asked := time.Now()
	for _, r := range list {
		if err := l.demo.almanac.DeleteReservation(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
	}
	l.within(20*time.Minute, 5*time.Second, "nothing is left of the reservations, and the doctor finds nothing", func() bool {
		all := l.aggregates()
		return !slices.ContainsFunc(list, func(r v1.Reservation) bool { return all["almanac-reservation-"+r.ID] != nil }) && l.sound()
	})
	t.Logf("%d canceled reservations have left the cloud after %v%s", multitude, time.Since(asked).Round(time.Second), load())
	l.tellCosts("at the end")
}

// measureNews requests servers at a steady rate, and logs the readings meanwhile and how long after
// the last server ran Almanac knows all of them.
func (l *large) measureNews() {
	l.t.Helper()
	before, calls := len(readingsOf(l.Service)), l.calls()
	var ids []string
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	asked := time.Now()
	for range newcomers / perSecond {
		ids = append(ids, l.wishing(l.demo2, wish{name: "news", count: perSecond})...)
		<-tick.C
	}
	took := time.Since(asked)
	l.run(ids)
	ran := time.Now()
	l.within(cloudPatience, 100*time.Millisecond, "almanacd knows all servers", func() bool {
		all := readingsOf(l.Service)
		return len(all) > 0 && all[len(all)-1].instances >= newcomers
	})
	l.t.Logf("%d servers requested in %v run after %v; Almanac knows all of them after another %v and %.0f calls%s",
		newcomers, took.Round(time.Second), ran.Sub(asked).Round(time.Second), time.Since(ran).Round(100*time.Millisecond), l.calls()-calls, load())
	l.tellReadings(fmt.Sprintf("while %d servers a second are created", perSecond), readingsOf(l.Service)[before:])
	var list []server
	for _, id := range ids {
		list = append(list, server{ID: id})
	}
	l.remove(list...)
}

// calls returns the number of calls of the first almanacd to Nova and Placement so far.
func (l *large) calls() float64 {
	return l.metric(`almanac_cloud_calls_total{service="nova"}`) + l.metric(`almanac_cloud_calls_total{service="placement"}`)
}

// count returns the number of reservations with a status.
func (l *large) count(status string) (n int) {
	l.t.Helper()
	for _, err := range l.demo.almanac.ListReservations(l.t.Context(), client.ReservationFilter{Statuses: []string{status}}) {
		if err != nil {
			l.t.Fatal(err)
		}
		n++
	}
	return n
}

// changes returns the lines of all replicas about changes of the fence since an instant, in their
// order.
func (l *large) changes(since time.Time) (list []logLine) {
	for _, s := range append([]*built.Service{l.Service}, l.others...) {
		list = append(list, logged(s, "changed the fence in OpenStack")...)
	}
	slices.SortFunc(list, func(a, b logLine) int { return a.at.Compare(b.at) })
	return slices.DeleteFunc(list, func(line logLine) bool { return line.at.Before(since) })
}
