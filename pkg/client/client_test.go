// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// fake answers every request as answer does and keeps the requests.
type fake struct {
	*httptest.Server
	mu  sync.Mutex
	got []got
}

// requests returns the requests so far.
func (f *fake) requests() []got {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

type got struct {
	Line   string // method and address
	Body   string
	Header http.Header
}

func serve(t *testing.T, answer http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the body: %v", err)
		}
		f.mu.Lock()
		f.got = append(f.got, got{r.Method + " " + r.URL.RequestURI(), string(body), r.Header})
		f.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func say(status int, body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

// dial returns a client of f that never sleeps; waits receives how long it would have slept.
func dial(t *testing.T, f *fake, waits *[]time.Duration) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{
		URL:       f.URL,
		UserAgent: "reader/1",
		Token:     func(context.Context) (string, error) { return "t-1", nil },
		RequestID: func() string { return "req-1" },
		Wait: func(ctx context.Context, d time.Duration) error {
			if waits != nil {
				*waits = append(*waits, d)
			}
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.FixedZone("", 3600))

func TestEveryCallSendsWhatTheContractSays(t *testing.T) {
	tests := map[string]struct {
		call     func(context.Context, *client.Client) error
		wantLine string
		wantBody string
	}{
		"create": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.CreateReservation(ctx, v1.ReservationRequest{Name: "a", Quantity: new(2)}, client.CreateOptions{})
				return err
			},
			"POST /v1/reservations", `{"name":"a","quantity":2}`,
		},
		"offer": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.OfferReservation(ctx, v1.ReservationRequest{Name: "a"})
				return err
			},
			"POST /v1/reservations?dry_run=true", `{"name":"a"}`,
		},
		"list": {
			func(ctx context.Context, c *client.Client) error {
				return first(c.ListReservations(ctx, client.ReservationFilter{
					Statuses: []string{"active", "pending"}, LeaseID: "g1", Name: "a b", Kind: "host", AllProjects: true, PageSize: 7,
				}))
			},
			"GET /v1/reservations?all_projects=true&kind=host&lease_id=g1&limit=7&name=a+b&status=active%2Cpending", "",
		},
		"show": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.GetReservation(ctx, "a/b")
				return err
			},
			"GET /v1/reservations/a%2Fb", "",
		},
		"change": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.ChangeReservation(ctx, "r1", v1.ReservationChange{Quantity: new(3)})
				return err
			},
			"PATCH /v1/reservations/r1", `{"quantity":3}`,
		},
		"offer of a change": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.OfferChange(ctx, "r1", v1.ReservationChange{Quantity: new(3)})
				return err
			},
			"PATCH /v1/reservations/r1?dry_run=true", `{"quantity":3}`,
		},
		"delete": {
			func(ctx context.Context, c *client.Client) error { return c.DeleteReservation(ctx, "r1") },
			"DELETE /v1/reservations/r1", "",
		},
		"availability": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.Availability(ctx, client.AvailabilityQuery{
					Quantity: 2, Duration: 7200, Start: noon, HostProperties: `["=","$gpu","a100"]`,
					Together: &v1.TogetherWish{By: "rack", Rule: "spread", Values: 2, ApartFrom: []string{"a", "b"}},
				})
				return err
			},
			"GET /v1/availability?apart_from=a%2Cb&duration=7200&host_properties=%5B%22%3D%22%2C%22%24gpu%22%2C%22a100%22%5D&quantity=2&start=2026-12-01T11%3A00%3A00Z&together_by=rack&together_rule=spread&together_values=2", "",
		},
		"create a group": {
			func(ctx context.Context, c *client.Client) error { _, err := c.CreateGroup(ctx, cluster); return err },
			"POST /v1/groups", `{"name":"c","duration":3600,"parts":[{"quantity":{"min":1,"max":2}}]}`,
		},
		"offer of a group": {
			func(ctx context.Context, c *client.Client) error { _, err := c.OfferGroup(ctx, cluster); return err },
			"POST /v1/groups?dry_run=true", `{"name":"c","duration":3600,"parts":[{"quantity":{"min":1,"max":2}}]}`,
		},
		"list groups": {
			func(ctx context.Context, c *client.Client) error {
				return first(c.ListGroups(ctx, client.GroupFilter{Name: "a b", ProjectID: "p", AllProjects: true, PageSize: 7}))
			},
			"GET /v1/groups?all_projects=true&limit=7&name=a+b&project_id=p", "",
		},
		"show a group": {
			func(ctx context.Context, c *client.Client) error { _, err := c.GetGroup(ctx, "g1"); return err },
			"GET /v1/groups/g1", "",
		},
		"change a group": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.ChangeGroup(ctx, "g1", v1.GroupChange{Name: new("d")})
				return err
			},
			"PATCH /v1/groups/g1", `{"name":"d"}`,
		},
		"offer of a change of a group": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.OfferGroupChange(ctx, "g1", v1.GroupChange{Name: new("d")})
				return err
			},
			"PATCH /v1/groups/g1?dry_run=true", `{"name":"d"}`,
		},
		"delete a group": {
			func(ctx context.Context, c *client.Client) error { return c.DeleteGroup(ctx, "g1") },
			"DELETE /v1/groups/g1", "",
		},
		"what deleting a group would do": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.OfferGroupDeletion(ctx, "g1")
				return err
			},
			"DELETE /v1/groups/g1?dry_run=true", "",
		},
		"offers": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.Offers(ctx, v1.OffersRequest{
					Quantity: &v1.QuantityRange{Min: 2, Max: 8}, Duration: &v1.DurationRange{Min: 3600, Max: 7200}, Windows: []v1.OfferWindow{{Start: &noon}},
				})
				return err
			},
			"POST /v1/offers", `{"quantity":{"min":2,"max":8},"duration":{"min":3600,"max":7200},"windows":[{"start":"2026-12-01T12:00:00+01:00"}]}`,
		},
		"calendar": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.Calendar(ctx, client.CalendarQuery{End: noon, Hosts: []string{"n1", "n2"}, Filter: "true", Facts: true})
				return err
			},
			"GET /v1/calendar?end=2026-12-01T11%3A00%3A00Z&facts=true&filter=true&host=n1&host=n2", "",
		},
		"limits": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Limits(ctx, "p1"); return err },
			"GET /v1/limits?project_id=p1", "",
		},
		"usage": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.Usage(ctx, client.UsageQuery{Start: noon, By: "host", ProjectID: "p1"})
				return err
			},
			"GET /v1/usage?by=host&project_id=p1&start=2026-12-01T11%3A00%3A00Z", "",
		},
		"hosts": {
			func(ctx context.Context, c *client.Client) error {
				return first(c.Hosts(ctx, client.HostFilter{HostProperties: `true`}))
			},
			"GET /v1/hosts?host_properties=true", "",
		},
		"host": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Host(ctx, "n1"); return err },
			"GET /v1/hosts/n1", "",
		},
		"change a host": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.ChangeHost(ctx, "n1", v1.HostChange{Properties: map[string]any{"gpu": nil}})
				return err
			},
			"PATCH /v1/hosts/n1", `{"properties":{"gpu":null}}`,
		},
		"properties": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Properties(ctx); return err },
			"GET /v1/properties", "",
		},
		"change a property": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.ChangeProperty(ctx, "gpu", v1.PropertyChange{Hidden: new(true)})
				return err
			},
			"PATCH /v1/properties/gpu", `{"hidden":true}`,
		},
		"decisions": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Decisions(ctx, "req-1"); return err },
			"GET /v1/decisions/req-1", "",
		},
		"energy": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Energy(ctx); return err },
			"GET /v1/energy", "",
		},
		"change energy": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.ChangeEnergy(ctx, v1.EnergyChange{Mode: new(v1.EnergyMode("")), Hosts: map[string]v1.EnergyMode{"n1": "auto", "n2": ""}})
				return err
			},
			"PATCH /v1/energy", `{"mode":null,"hosts":{"n1":"auto","n2":null}}`,
		},
		"energy plan": {
			func(ctx context.Context, c *client.Client) error { _, err := c.EnergyPlan(ctx); return err },
			"GET /v1/energy/plan", "",
		},
		"approve an energy plan": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.ApproveEnergyPlan(ctx, "p-1")
				return err
			},
			"POST /v1/energy/plan", `{"approve":"p-1"}`,
		},
		"energy hosts": {
			func(ctx context.Context, c *client.Client) error {
				return first(c.EnergyHosts(ctx, client.EnergyFilter{Phases: []string{"asleep", "waking"}, PageSize: 7}))
			},
			"GET /v1/energy/hosts?limit=7&phase=asleep%2Cwaking", "",
		},
		"energy host": {
			func(ctx context.Context, c *client.Client) error { _, err := c.EnergyHost(ctx, "a/b"); return err },
			"GET /v1/energy/hosts/a%2Fb", "",
		},
		"order until a time": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.OrderPower(ctx, "n1", v1.EnergyOrder{Action: "off", Reason: "r", Until: &v1.Until{At: noon}})
				return err
			},
			"POST /v1/energy/hosts/n1", `{"action":"off","reason":"r","until":"2026-12-01T11:00:00Z"}`,
		},
		"order for a time": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.OrderPower(ctx, "n1", v1.EnergyOrder{Action: "on", Until: &v1.Until{In: 90}})
				return err
			},
			"POST /v1/energy/hosts/n1", `{"action":"on","until":90}`,
		},
		"order foreseen": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.ForeseePower(ctx, "a/b", v1.EnergyOrder{Action: "test"})
				return err
			},
			"POST /v1/energy/hosts/a%2Fb?dry_run=true", `{"action":"test"}`,
		},
		"energy audit": {
			func(ctx context.Context, c *client.Client) error { return first(c.EnergyAudit(ctx, "n1", 7)) },
			"GET /v1/energy/audit?host=n1&limit=7", "",
		},
		"energy demand": {
			func(ctx context.Context, c *client.Client) error { _, err := c.EnergyDemand(ctx, noon); return err },
			"GET /v1/energy/demand?from=2026-12-01T11%3A00%3A00Z", "",
		},
		"filter": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.FilterHosts(ctx, v1.FilterQuestion{Hosts: []string{"n1"}})
				return err
			},
			"POST /v1/scheduler/filter", `{"hosts":["n1"],"request":{"project_id":"","hints":null,"preemptible":false}}`,
		},
		"health": {
			func(ctx context.Context, c *client.Client) error { return c.Health(ctx) },
			"GET /healthcheck", "",
		},
		"readiness": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Readiness(ctx); return err },
			"GET /v1/readiness", "",
		},
		"examine": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Examine(ctx); return err },
			"GET /v1/doctor", "",
		},
		"fix": {
			func(ctx context.Context, c *client.Client) error {
				_, err := c.Fix(ctx, v1.Treatment{DryRun: true})
				return err
			},
			"POST /v1/doctor", `{"dry_run":true}`,
		},
		"feed": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Feed(ctx); return err },
			"GET /v1/feed", "",
		},
		"versions": {
			func(ctx context.Context, c *client.Client) error { _, err := c.Versions(ctx); return err },
			"GET /", "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := serve(t, say(http.StatusOK, map[string]string{}))
			if err := tc.call(t.Context(), dial(t, f, nil)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.wantLine, tc.wantBody}, []string{f.requests()[0].Line, f.requests()[0].Body}); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			for header, want := range map[string]string{
				"X-Openstack-Request-Id": "req-1", "X-Auth-Token": "t-1", "User-Agent": "reader/1", "Idempotency-Key": "",
			} {
				if got := f.requests()[0].Header.Get(header); got != want {
					t.Errorf("%s: got %q, want %q", header, got, want)
				}
			}
		})
	}
}

// first returns the error of the first element.
func first[T any](list func(func(T, error) bool)) error {
	for _, err := range list {
		return err
	}
	return nil
}

func TestTheTimeOfTheServiceIsThatOfItsAnswer(t *testing.T) {
	for date, want := range map[string]string{"Tue, 01 Dec 2026 09:00:00 GMT": "2026-12-01T09:00:00Z", "soon": ""} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", date) }))
		defer service.Close()
		c, err := client.New(client.Options{URL: service.URL})
		if err != nil {
			t.Fatal(err)
		}
		now, err := c.Now(t.Context())
		if want != "" && (err != nil || now.Format(time.RFC3339) != want) || want == "" && err == nil {
			t.Errorf("Date: %s: got %v, %v; want %s", date, now, err, want)
		}
	}
}

func TestAListFollowsItsPagesAsTheyAreNeeded(t *testing.T) {
	pages := map[string]v1.HostList{
		"":   {Hosts: []v1.Host{{Name: "n1"}, {Name: "n2"}}, Next: "n2"},
		"n2": {Hosts: []v1.Host{{Name: "n3"}}, Next: "n3"},
		"n3": {Hosts: []v1.Host{{Name: "n4"}}},
	}
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(http.StatusOK, pages[r.URL.Query().Get("marker")])(w, r)
	})
	hosts := dial(t, f, nil).Hosts(t.Context(), client.HostFilter{})
	for range 2 { // a list can be walked again
		var names []string
		for host, err := range hosts {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, host.Name)
		}
		if diff := cmp.Diff([]string{"n1", "n2", "n3", "n4"}, names); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	}
	before := len(f.requests())
	for host := range hosts {
		if host.Name == "n2" {
			break
		}
	}
	if asked := len(f.requests()) - before; asked != 1 {
		t.Errorf("fetched %d pages for what the first one has", asked)
	}
}

func TestTheAuditFollowsItsPagesByTheirLastEntry(t *testing.T) {
	f := serve(t, nil)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := v1.EnergyAudit{Entries: []v1.EnergyEntry{{ID: 9}, {ID: 8}}, Next: new(int64(8))}
		if r.URL.Query().Get("before") == "8" {
			page = v1.EnergyAudit{Entries: []v1.EnergyEntry{{ID: 7}}}
		}
		say(http.StatusOK, page)(w, r)
	})
	var ids []int64
	for e, err := range dial(t, f, nil).EnergyAudit(t.Context(), "", 2) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if diff := cmp.Diff([]int64{9, 8, 7}, ids); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestPropertiesThatNoHostHasAreTold(t *testing.T) {
	f := serve(t, say(http.StatusOK, v1.HostList{UnknownProperties: []string{"gpuu"}}))
	var told []string
	for range dial(t, f, nil).Hosts(t.Context(), client.HostFilter{Unknown: func(names []string) { told = names }}) {
		t.Error("got a host")
	}
	if diff := cmp.Diff([]string{"gpuu"}, told); diff != "" {
		t.Errorf("unknown properties (-want +got):\n%s", diff)
	}
}

func TestAListThatFollowsItselfEndsInAnError(t *testing.T) {
	f := serve(t, say(http.StatusOK, v1.HostList{Hosts: []v1.Host{{Name: "n1"}}, Next: "n1"}))
	var last error
	for _, err := range dial(t, f, nil).Hosts(t.Context(), client.HostFilter{}) {
		last = err
	}
	if last == nil {
		t.Error("got no error")
	}
}

func TestVersionsAreReadFromAMultipleChoicesAnswer(t *testing.T) {
	f := serve(t, say(http.StatusMultipleChoices, map[string]any{
		"versions": []map[string]any{{"id": "v1.0", "status": "CURRENT", "links": []string{}}},
	}))
	versions, err := dial(t, f, nil).Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]client.Version{{ID: "v1.0", Status: "CURRENT"}}, versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestAURLIsTakenWithAndWithoutTheVersion(t *testing.T) {
	f := serve(t, say(http.StatusOK, v1.Properties{}))
	for _, ending := range []string{"", "/", "/v1", "/v1/", "/reservation/v1"} {
		c, err := client.New(client.Options{URL: f.URL + ending})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Properties(t.Context()); err != nil {
			t.Error(err)
		}
	}
	var lines []string
	for _, g := range f.requests() {
		lines = append(lines, g.Line)
	}
	plain := "GET /v1/properties"
	if diff := cmp.Diff([]string{plain, plain, plain, plain, "GET /reservation/v1/properties"}, lines); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoURLIsRefusedAtOnce(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:1234", "ftp://here", "http://", "http://[::1"} {
		if _, err := client.New(client.Options{URL: address}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: got %v", address, err)
		}
	}
}

func TestANameCannotTurnACallIntoAnother(t *testing.T) {
	f := serve(t, say(http.StatusOK, v1.Reservations{}))
	c := dial(t, f, nil)
	for _, name := range []string{"", ".", ".."} {
		_, showErr := c.GetReservation(t.Context(), name)
		_, hostErr := c.Host(t.Context(), name)
		_, energyErr := c.EnergyHost(t.Context(), name)
		_, orderErr := c.OrderPower(t.Context(), name, v1.EnergyOrder{Action: "off"})
		for _, err := range []error{showErr, hostErr, energyErr, orderErr, c.DeleteReservation(t.Context(), name)} {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%q: got %v", name, err)
			}
		}
	}
	if len(f.requests()) != 0 {
		t.Errorf("sent %v", f.requests())
	}
}

func TestAFailingTokenSendsNothing(t *testing.T) {
	f := serve(t, say(http.StatusOK, nil))
	refused := errors.New("no password")
	c, err := client.New(client.Options{URL: f.URL, Token: func(context.Context) (string, error) { return "", refused }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Properties(t.Context()); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if len(f.requests()) != 0 {
		t.Errorf("sent %v", f.requests())
	}
}

var cluster = v1.GroupRequest{Name: "c", Duration: new(v1.Duration(3600)), Parts: []v1.GroupPart{{Quantity: &v1.QuantityRange{Min: 1, Max: 2}}}}
