// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A start and an end are due while Nova or Placement answers wrongly, in each possible way.
//
//make:test-cloud
func TestWrongAnswersMakeEventsLateAndNothingElse(t *testing.T) {
	labtest.Long(t)
	cloud := labtest.OpenStack(t)
	nova, placement := labtest.Interpose(t, cloud.Compute), labtest.Interpose(t, cloud.Placement)
	b := besideOpenStack(t, "OS_NOVA__ENDPOINT_OVERRIDE="+nova.URL, "OS_NOVA__TIMEOUT=3",
		"OS_PLACEMENT__ENDPOINT_OVERRIDE="+placement.URL, "OS_PLACEMENT__TIMEOUT=3")
	b.pool("cmp-*")
	next := b.active("first")
	services := map[string]*labtest.Meddler{"Nova": nova, "Placement": placement}
	for _, wrong := range []struct {
		service, name string
		answer        labtest.Wrong
	}{
		{"Nova", "500", labtest.Status(http.StatusInternalServerError)},
		{"Placement", "500", labtest.Status(http.StatusInternalServerError)},
		{"Nova", "503", labtest.Status(http.StatusServiceUnavailable)},
		{"Placement", "503", labtest.Status(http.StatusServiceUnavailable)},
		{"Nova", "a page", labtest.Text("<html>It works!</html>")},
		{"Placement", "half an answer", labtest.Text(`{"resource_providers": [{"uuid":`)},
		{"Nova", "nothing", labtest.Hang},
		{"Placement", "nothing", labtest.Hang},
		{"Nova", "a refusal of every token", labtest.Status(http.StatusUnauthorized)},
	} {
		t.Log(wrong.service, "answers with", wrong.name)
		ends := next
		services[wrong.service].Meddle("/", wrong.answer)
		b.endsSoon(ends.ID)
		next = b.reserve(b.demo, v1.ReservationRequest{Name: wrong.name, Duration: new(v1.Duration(3600))})
		for _, late := range []struct{ id, event string }{{next.ID, "start"}, {ends.ID, "end"}} {
			b.await("the log of the late "+late.event+" names "+wrong.service, func() bool { // a busy service may be named before
				why := b.putOff(late.id, late.event)
				if !discreet(why) {
					t.Errorf("the %s is late, and its log has %q", late.event, why)
				}
				return strings.Contains(strings.ToLower(why), strings.ToLower(wrong.service))
			})
		}
		services[wrong.service].Relent()
		b.becomes(ends.ID, "ended")
		b.traceless(ends.ID)
		next = b.becomes(next.ID, "active")
		b.traceOf(next.ID)
	}

	nova.MeddleTimes(1, "/", labtest.Status(http.StatusUnauthorized))
	placement.MeddleTimes(1, "/", labtest.Status(http.StatusUnauthorized))
	r := b.active("refused once")
	if e := lastEvent(r, "start"); e.DoneAt == nil || e.DoneAt.Sub(e.Time) > built.Patience {
		t.Errorf("with a new token the start is %+v", e)
	}
	b.quiet()
}

// discreet reports whether a sentence is fit for an owner: it has neither an address nor a token.
func discreet(sentence string) bool {
	return !strings.Contains(sentence, "://") && !strings.Contains(strings.ToLower(sentence), "gaaaa")
}

// active books a host for an hour and waits until the reservation is active.
func (b *beside) active(name string) v1.Reservation {
	b.t.Helper()
	r := b.reserve(b.demo, v1.ReservationRequest{Name: name, Duration: new(v1.Duration(3600))})
	return b.becomes(r.ID, "active")
}

// The real services stop. Placement starts again without the token that it knew, which Keystone
// has revoked.
func TestWhatIsDueWhileServicesAreStoppedIsMadeUpFor(t *testing.T) {
	b := besideOpenStack(t)
	b.pool("cmp-*")
	ends := b.active("ends")
	server := b.boot(b.demo, "server", ends.ID, "")
	b.settled(server)
	end := b.endsSoon(ends.ID)
	labtest.StopService(t, "nova-api")
	labtest.StopService(t, "placement")
	b.revoke()
	starts := b.reserve(b.demo2, v1.ReservationRequest{Name: "starts", Duration: new(v1.Duration(3600))})
	b.await("the end passes", func() bool { return time.Now().After(end) })
	b.putOff(ends.ID, "end")
	b.putOff(starts.ID, "start")
	labtest.StartService(t, "placement")
	labtest.StartService(t, "nova-api")
	b.becomes(ends.ID, "ended")
	b.becomes(starts.ID, "active")
	b.reach("", server)
	b.traceless(ends.ID)
	b.traceOf(starts.ID)
	b.quiet()
}

// revoke revokes all tokens of almanacd, as a new password does.
func (b *beside) revoke() {
	b.t.Helper()
	var found struct{ Users []struct{ ID string } }
	b.admin.Must(http.MethodGet, "identity", "/users?name="+b.self.Name, nil, &found)
	b.admin.Must(http.MethodPatch, "identity", "/users/"+found.Users[0].ID, map[string]any{"user": map[string]string{"password": b.self.Password}}, nil)
}

// The test deletes aggregates, flavor and trait of two reservations: one continues, and one ends
// at that time.
func TestThingsDeletedBehindAlmanacsBackComeBack(t *testing.T) {
	b := besideOpenStack(t)
	b.pool("cmp-*")
	stays, ends := b.active("stays"), b.active("ends")
	for _, r := range []v1.Reservation{stays, ends} {
		b.deleteAggregate("almanac-reservation-" + r.ID)
		b.admin.Must(http.MethodDelete, "compute", "/flavors/"+r.ID, nil, nil)
	}
	b.deleteAggregate("almanac-fence")
	b.endsSoon(ends.ID)
	b.becomes(ends.ID, "ended")
	b.traceless(ends.ID)
	b.quiet()
	b.traceOf(stays.ID)
	b.runOn(stays.Hosts, b.settled(b.boot(b.demo, "own", stays.ID, ""))...)
}

func (b *beside) deleteAggregate(name string) {
	b.t.Helper()
	for _, host := range b.aggregates()[name] {
		b.removeHost(name, host)
	}
	b.admin.Must(http.MethodDelete, "compute", fmt.Sprintf("/os-aggregates/%d", b.aggregateID(name)), nil, nil)
}
