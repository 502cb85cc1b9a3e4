// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// cloudPatience bounds every wait for a cloud. Its operations take seconds, and longer beside
// other tests.
const cloudPatience = 5 * time.Minute

// await waits until the condition holds.
func (b *beside) await(what string, holds func() bool) {
	b.t.Helper()
	b.within(cloudPatience, 200*time.Millisecond, what, holds)
}

// within waits until the condition holds, with this pause between two checks.
func (b *beside) within(limit, pause time.Duration, what string, holds func() bool) {
	b.t.Helper()
	if !labtest.Poll(limit, pause, holds) {
		b.t.Fatalf("after %v, still waiting until %s", limit, what)
	}
}

// as runs the command line as the user, fails the test if it fails, and returns its output.
func (b *beside) as(u labtest.User, arguments ...string) string {
	b.t.Helper()
	out, stderr, exit := built.Almanac(b.t, b.Folder, append(b.cloud.Environment(u), "ALMANAC_URL="+b.URL), arguments...)
	if exit != 0 {
		b.t.Fatalf("almanac %s as %s: exit code %d\n%s%s", strings.Join(arguments, " "), u.Name, exit, out, stderr)
	}
	return out
}

// pool adds hosts to the pool.
func (b *beside) pool(hosts ...string) {
	b.t.Helper()
	b.as(labtest.Admin, append([]string{"host", "set", "--reservable"}, hosts...)...)
}

// healthy fails the test unless the doctor has no findings.
func (b *beside) healthy() {
	b.t.Helper()
	out, stderr, exit := built.Almanac(b.t, b.Folder, append(b.cloud.Environment(labtest.Admin), "ALMANAC_URL="+b.URL), "doctor")
	if exit != 0 {
		b.t.Errorf("the doctor has findings: exit code %d\n%s%s", exit, out, stderr)
	}
}

// quiet waits until the doctor has no findings.
func (b *beside) quiet() {
	b.t.Helper()
	b.await("the doctor finds nothing", b.sound)
}

// sound reports whether the doctor has no findings.
func (b *beside) sound() bool {
	found, err := b.admin.almanac.Examine(b.t.Context())
	return err == nil && len(found.Findings) == 0
}

// show returns a reservation as an admin sees it.
func (b *beside) show(id string) v1.Reservation {
	b.t.Helper()
	r, err := b.admin.almanac.GetReservation(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// becomes waits until a reservation has the status.
func (b *beside) becomes(id, status string) (r v1.Reservation) {
	b.t.Helper()
	b.await("reservation "+id+" becomes "+status, func() bool {
		r = b.show(id)
		return r.Status == status
	})
	return r
}

// gone reports whether the call returns 404.
func (who *tenant) gone(service, path string) bool {
	return who.Do("GET", service, path, nil, nil) == http.StatusNotFound
}

// book books on the command line as the user and returns the reservation.
func (b *beside) book(u labtest.User, arguments ...string) (r v1.Reservation) {
	b.t.Helper()
	out := b.as(u, append([]string{"reservation", "create", "-f", "json"}, arguments...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.ID == "" {
		b.t.Fatalf("%v:\n%s", err, out)
	}
	return r
}

// told waits until there was a notification of that type about the reservation.
func (b *beside) told(id, event string) {
	b.t.Helper()
	b.await("a notification "+event+" of reservation "+id, func() bool {
		b.heard.Mu.Lock()
		defer b.heard.Mu.Unlock()
		return b.heard.Events[id+" "+event] > 0
	})
}

// soon returns a whole second that is at most seconds ahead.
func (b *beside) soon(seconds int) time.Time {
	return time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
}

// with returns the same almanacd for a part of the test that has its own hosts.
func (b *beside) with(t *testing.T) *beside {
	part := *b
	part.t = t
	part.admin, part.demo, part.demo2 = part.tenant(labtest.Admin), part.tenant(labtest.Demo), part.tenant(labtest.Demo2)
	return &part
}

// among returns a filter for these hosts.
func among(hosts ...string) json.RawMessage {
	words := []any{"in", "$name"}
	for _, host := range hosts {
		words = append(words, host)
	}
	text, _ := json.Marshal(words) // strings always marshal
	return text
}

// endsSoon makes reservations end in a moment, and returns before that.
func (b *beside) endsSoon(ids ...string) (end time.Time) {
	b.t.Helper()
	end = time.Now().Add(built.Ahead(2*time.Second, len(ids), func() { b.show(ids[0]) })).Truncate(time.Second)
	for _, id := range ids {
		if _, err := b.admin.almanac.ChangeReservation(b.t.Context(), id, v1.ReservationChange{EndTime: &end}); err != nil {
			b.t.Fatalf("let reservation %s end: %v", id, err)
		}
	}
	return end
}

// lastEvent returns the last event of the type in the log of a reservation.
func lastEvent(r v1.Reservation, eventType string) (found v1.Event) {
	for _, e := range r.Events {
		if e.Type == eventType {
			found = e
		}
	}
	return found
}

// putOff waits until an event of a reservation has failed and is due again, and returns the
// reason in its log.
func (b *beside) putOff(id, eventType string) (detail string) {
	b.t.Helper()
	b.await(eventType+" of reservation "+id+" is put off, with the reason", func() bool {
		e := lastEvent(b.show(id), eventType)
		detail = e.Detail
		return e.State != "done" && detail != ""
	})
	return detail
}
