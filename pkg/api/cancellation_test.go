// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// party is the instances of every reservation; it counts the calls.
type party struct {
	guests []inventory.Instance
	err    error
	asked  int
}

func (p *party) Of(context.Context, reservation.Reservation) ([]inventory.Instance, error) {
	p.asked++
	return p.guests, p.err
}

func TestADryRunOfADeletionSaysWhatBecomesOfTheServers(t *testing.T) {
	for onEnd, becomes := range map[string]string{"delete": "deleted", "shelve": "shelved", "stop": "stopped", "leave": "left"} {
		p := &party{guests: []inventory.Instance{{ID: "s-1", Name: "node-1", Status: "ACTIVE"}, {ID: "s-2", Name: "node-2", Status: "SHUTOFF"}}}
		c := start(t, setup{adjust: func(o *api.Options) { o.Instances = p }})
		r := c.demo.book(`{"name": "training", "duration": 3600, "on_end": "` + onEnd + `"}`)
		c.bookings.CarryOut(t.Context())
		path := "/v1/reservations/" + r.ID
		got := want[v1.CancellationAnswer](t, c.demo.delete(path+"?dry_run=true"), http.StatusOK).Cancellation
		wanted := v1.Cancellation{ID: r.ID, Name: "training", Status: "active", Servers: []v1.CanceledServer{
			{ID: "s-1", Name: "node-1", Status: "ACTIVE", Becomes: becomes}, {ID: "s-2", Name: "node-2", Status: "SHUTOFF", Becomes: becomes},
		}}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("on_end %s (-want +got):\n%s", onEnd, diff)
		}
		if now := want[v1.Reservation](t, c.demo.get(path), http.StatusOK); now.Status != "active" {
			t.Errorf("after the dry run the status is %s", now.Status)
		}
		wantStatus(t, c.demo.delete(path), http.StatusNoContent)
		wantStatus(t, c.demo.delete(path+"?dry_run=true"), http.StatusConflict)
	}
}

func TestAReservationThatHasNotBegunHasNoServers(t *testing.T) {
	p := &party{guests: []inventory.Instance{{ID: "s-1"}}}
	c := start(t, setup{adjust: func(o *api.Options) { o.Instances = p }})
	r := c.demo.book(`{"name": "r", "start_time": "` + at(3600) + `", "duration": 3600}`)
	got := want[v1.CancellationAnswer](t, c.demo.delete("/v1/reservations/"+r.ID+"?dry_run=true"), http.StatusOK).Cancellation
	if len(got.Servers) > 0 || p.asked > 0 {
		t.Errorf("servers %v, the cloud was asked %d times", got.Servers, p.asked)
	}
}

func TestWhereTheCloudDoesNotAnswerADryRunOfADeletionFails(t *testing.T) {
	p := &party{err: fault.New(fault.Unavailable, "Nova does not answer")}
	c := start(t, setup{adjust: func(o *api.Options) { o.Instances = p }})
	r := c.demo.book(`{"name": "r", "duration": 3600}`)
	c.bookings.CarryOut(t.Context())
	wantStatus(t, c.demo.delete("/v1/reservations/"+r.ID+"?dry_run=true"), http.StatusServiceUnavailable)
	wantStatus(t, c.other.delete("/v1/reservations/"+r.ID+"?dry_run=true"), http.StatusNotFound)
}

func wantStatus(t *testing.T, a answer, status int) {
	t.Helper()
	if a.status != status {
		t.Errorf("want status %d, got %v", status, a)
	}
}
