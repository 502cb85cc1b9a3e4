// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// demoCloud is a simulated cloud with one server. It stores the last request in asked, unless that is
// nil.
type demoCloud struct{ asked *v1.DemoServerRequest }

func (demoCloud) server() v1.DemoServer {
	return v1.DemoServer{ID: "s1", Name: "web", ProjectID: "p", Status: "BUILD", Task: "spawning", Host: "n1", Flavor: "small", Image: "debian"}
}

func (d demoCloud) Servers(context.Context) (v1.DemoServers, error) {
	return v1.DemoServers{Servers: []v1.DemoServer{d.server()}, Flavors: []string{"small"}, Images: []string{"debian"}}, nil
}

func (d demoCloud) Create(_ context.Context, _ string, r v1.DemoServerRequest) (v1.DemoServer, error) {
	if r.Flavor != "small" {
		return v1.DemoServer{}, fault.Field("flavor", "there is no flavor %q", r.Flavor)
	}
	if d.asked != nil {
		*d.asked = r
	}
	return d.server(), nil
}

func (demoCloud) Delete(_ context.Context, id string) error {
	if id != "s1" {
		return fault.New(fault.NotFound, "there is no server %s", id)
	}
	return nil
}

func TestTheServersOfASimulatedCloudAreMadeListedAndDeleted(t *testing.T) {
	var asked v1.DemoServerRequest
	c := start(t, setup{adjust: func(o *api.Options) { o.Demo = demoCloud{&asked} }})
	for _, step := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/demo/servers", "", http.StatusOK},
		{"POST", "/v1/demo/servers", `{"name": "web", "flavor": "small", "image": "debian", "hints": {"reservation": "r"}, "preemptible": true}`, http.StatusCreated},
		{"POST", "/v1/demo/servers", `{"name": "web", "flavor": "huge", "image": "debian"}`, http.StatusBadRequest},
		{"DELETE", "/v1/demo/servers/s1", "", http.StatusNoContent},
		{"DELETE", "/v1/demo/servers/s2", "", http.StatusNotFound},
	} {
		if a := c.admin.send(step.method, step.path, step.body); a.status != step.status {
			t.Errorf("%s %s %s: %v", step.method, step.path, step.body, a)
		}
		if a := c.demo.send(step.method, step.path, step.body); a.status != http.StatusForbidden {
			t.Errorf("%s %s by a member of a project: %v", step.method, step.path, a)
		}
	}
	if !asked.Preemptible || asked.Hints["reservation"] != "r" || asked.ProjectID == "" {
		t.Errorf("the cloud is asked for %+v", asked)
	}
}

func TestACloudThatIsSimulatedIsCalledSo(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Demo = demoCloud{} }})
	if a := c.nobody.get("/healthcheck"); string(a.body) != "OK\nthe cloud is simulated\n" {
		t.Errorf("the health check answers %v", a)
	}
	if a := c.nobody.send("GET", "/healthcheck", "", "Accept", "application/json"); a.status != http.StatusOK {
		t.Errorf("the health check answers %v", a)
	}
	var versions struct {
		Simulated bool
		Speed     int
	}
	must(t, json.Unmarshal(c.nobody.get("/").body, &versions))
	if !versions.Simulated || versions.Speed != 1 {
		t.Errorf("the list of versions tells %+v", versions)
	}
	for simulated, change := range map[bool]func(*api.Options){true: func(o *api.Options) { o.Demo = demoCloud{} }, false: func(*api.Options) {}} {
		if v, _ := startDoor(t, change); v.session().Simulated != simulated {
			t.Errorf("the page does not learn that the cloud is simulated: %v", simulated)
		}
	}
}

func TestEveryAnswerHasTheServicesTimeAndThePageLearnsHowFastItPasses(t *testing.T) {
	date := time.Unix(1_900_000_000, 0).UTC().Format(http.TimeFormat)
	fast := func(o *api.Options) {
		o.Demo, o.Speed = demoCloud{}, 60
		o.Now = func() span.Instant { return 1_900_000_000 }
	}
	c := start(t, setup{adjust: fast})
	for _, path := range []string{"/", "/v1", "/healthcheck", "/v1/hosts", "/v1/nothing"} {
		if a := c.admin.get(path); a.header.Get("Date") != date {
			t.Errorf("%s is dated %q, want %q", path, a.header.Get("Date"), date)
		}
	}
	if v, _ := startDoor(t, fast); v.session().Speed != 60 {
		t.Error("the page does not learn how fast the time passes")
	}
}

func TestWithoutASimulatedCloudItsCallsDoNotExist(t *testing.T) {
	c := start(t, setup{})
	if a := c.admin.get("/v1/demo/servers"); a.status != http.StatusNotFound {
		t.Errorf("got %v", a)
	}
}
