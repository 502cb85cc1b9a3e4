// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// anything is a cloud that has every flavor and image and trusts every user.
type anything struct{}

func (anything) Flavor(_ context.Context, _ requests.Caller, named string) (state.Named, resource.Vector, error) {
	return state.Named{ID: named, Name: named}, resource.Vector{VCPUs: 1, MemoryMB: 64}, nil
}

func (anything) Image(_ context.Context, _ requests.Caller, named string) (state.Named, error) {
	return state.Named{ID: named, Name: named}, nil
}

func (anything) Make(context.Context, requests.Caller) (string, error) { return "trust", nil }
func (anything) End(context.Context, string) error                     { return nil }

// bestEffort returns the API of a queue whose requests nothing starts.
func bestEffort(c *cloud, hosts *inventory.SnapshotCache) *requests.API {
	return &requests.API{
		Store: c.store, Catalogue: anything{}, Trusts: anything{}, Changed: func() {}, Now: c.now, NewID: uuid.NewString,
		View: func() state.ClusterView {
			return state.ClusterView{Hosts: hosts.Snapshot(), Live: c.bookings.Live(span.Always)}
		}, Planner: besteffort.Rules{Backfilling: besteffort.Aggressive},
		Log: slog.New(slog.DiscardHandler),
	}
}

// submitted stores a request of project demo with this id.
func submitted(c *cloud, id string) {
	c.t.Helper()
	_, err := c.store.AddBestEffort(c.t.Context(), state.Request{
		ID: id, ProjectID: "demo", Name: "render", Created: noon, Duration: 60, Networks: []string{"none"},
		VMs: []state.VM{{ID: uuid.NewString(), Phase: besteffort.Running, Node: "A", Server: "s", Since: noon}},
	}, "", 0)
	must(c.t, err)
}

func TestWorkIsQueuedShownAndCanceled(t *testing.T) {
	c := start(t, setup{})
	body := `{"name": "render", "flavor": "tiny", "image": "cirros", "duration": "1h30m", "vms": 2, "networks": "none"}`
	made := c.demo.send("POST", "/v1/besteffort", body, "Idempotency-Key", "k")
	again := c.demo.send("POST", "/v1/besteffort", body, "Idempotency-Key", "k")
	var first, second v1.BestEffort
	must(t, json.Unmarshal(made.body, &first))
	must(t, json.Unmarshal(again.body, &second))
	if made.status != http.StatusCreated || first.Status != "waiting" || len(first.VMs) != 2 || first.Duration != 5400 || second.ID != first.ID {
		t.Fatalf("got %v, then %v", made, again)
	}
	if first.Position == nil || *first.Position != 1 || first.ExpectedStart == nil {
		t.Errorf("its place in the queue is %v, its start %v", first.Position, first.ExpectedStart)
	}
	for range 2 {
		if a := c.demo.delete("/v1/besteffort/" + first.ID); a.status != http.StatusNoContent {
			t.Errorf("cancel: %v", a)
		}
	}
	var shown v1.BestEffort
	must(t, json.Unmarshal(c.demo.send("GET", "/v1/besteffort/"+first.ID, "").body, &shown))
	if shown.Status != "canceled" {
		t.Errorf("the status is %s", shown.Status)
	}
}

func TestHostsOfBestEffortWorkAreForAdmins(t *testing.T) {
	c := start(t, setup{})
	submitted(c, "e676c1d3-656b-4b0e-8bd4-b053d2acfa83")
	for who, want := range map[*caller]string{&c.demo: "", &c.admin: "A"} {
		var shown v1.BestEffort
		must(t, json.Unmarshal(who.send("GET", "/v1/besteffort/e676c1d3-656b-4b0e-8bd4-b053d2acfa83", "").body, &shown))
		if len(shown.VMs) != 1 || shown.VMs[0].Host != want {
			t.Errorf("shown is %+v, want the host %q", shown.VMs, want)
		}
	}
}

func TestWithoutACloudThereIsNoBestEffortWork(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.BestEffort = nil }})
	for _, path := range []string{"/v1/besteffort", "/v1/besteffort/x"} {
		wantError(t, c.demo.send("GET", path, ""), http.StatusConflict)
	}
	wantError(t, c.demo.send("POST", "/v1/besteffort", `{"name": "x", "flavor": "tiny", "image": "cirros", "duration": 60}`), http.StatusConflict)
}
