// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/enforcement/remote"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// question is a request that the usage service received.
type question struct {
	verb string
	body map[string]any
}

func (q question) lease() map[string]any { return q.body["lease"].(map[string]any) }

// usageService is a site's usage service. It allows what answer, by verb, does not answer otherwise.
type usageService struct {
	t       *testing.T
	url     string
	checker *enforcement.Checker

	mu     sync.Mutex
	heard  []question
	answer map[string]func(w http.ResponseWriter)
}

// enforced starts an Almanac whose bookings a usage service must allow, except those of project
// other. It counts in two phases.
func enforced(t *testing.T, rules enforcement.Rules) (*cloud, *usageService) {
	t.Helper()
	s := &usageService{t: t, answer: map[string]func(http.ResponseWriter){}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	client, err := remote.New(remote.Options{
		Base: s.url + "/", CommitCreate: s.url + "/create", CommitUpdate: s.url + "/update", Timeout: time.Hour,
		Measure: func(enforcement.Verb, remote.Outcome, time.Duration) {}, Elapsed: func() time.Duration { return 0 },
	})
	must(t, err)
	rules.Enabled, rules.ServiceExempt = enforcement.Names, []string{"other"}
	c := start(t, setup{checks: func(c *cloud, hosts func() *inventory.Snapshot) *enforcement.Checker {
		s.checker = enforcement.New(enforcement.Options{
			Rules: rules, Service: client, Records: c.store, Hosts: hosts, Now: c.now, Log: slog.New(slog.NewTextHandler(c.log, nil)),
			AuthURL: "http://keystone.test/v3", Region: "RegionOne",
		})
		return s.checker
	}})
	return c, s
}

// ServeHTTP records a request and answers it.
func (s *usageService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	q := question{verb: strings.TrimPrefix(r.URL.Path, "/")}
	if err := json.Unmarshal(text, &q.body); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.heard = append(s.heard, q)
	answer := s.answer[q.verb]
	s.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w)
}

// on sets the answer to a verb; nil allows it.
func (s *usageService) on(verb string, answer func(w http.ResponseWriter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer[verb] = answer
}

// told returns what the service was told since the last call of told.
func (s *usageService) told() (heard []question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard, s.heard = s.heard, nil
	return heard
}

// wantVerbs checks what the service was asked since the last call of told.
func (s *usageService) wantVerbs(verbs ...string) []question {
	s.t.Helper()
	heard := s.told()
	var got []string
	for _, q := range heard {
		got = append(got, q.verb)
	}
	if d := cmp.Diff(verbs, got); d != "" {
		s.t.Errorf("the usage service was asked (-want +got):\n%s", d)
	}
	return heard
}

// tellOfEnds runs the job that tells the service of ends.
func (s *usageService) tellOfEnds() {
	s.t.Helper()
	must(s.t, s.checker.TellOfEnds(s.t.Context(), func(ctx context.Context) error { return ctx.Err() }))
}

func status(code int, body string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const (
	hourOnOneHost  = `{"name": "x", "quantity": 1, "start_time": "2026-11-20T13:00:00Z", "end_time": "2026-11-20T14:00:00Z"}`
	hourOnTwoHosts = `{"name": "x", "quantity": 2, "start_time": "2026-11-20T13:00:00Z", "end_time": "2026-11-20T14:00:00Z"}`
)

// take books hosts of that hour for project other, which is exempt.
func (s *usageService) take(c *cloud, quantity int, filter string) {
	_, err := c.bookings.Book(s.t.Context(), booking.Caller{ProjectID: "other", UserID: "u"}, reservation.Request{
		Terms: reservation.Terms{Kind: reservation.Hosts, Quantity: quantity, HostProperties: filter}, Start: noon.Add(3600), End: noon.Add(7200),
	}, nil)
	if err != nil {
		s.t.Error(err)
	}
}

// flatHost is host A as Blazar shows it.
func flatHost(id, name string) map[string]any {
	return map[string]any{
		"id": id, "hypervisor_hostname": name, "service_name": name, "hypervisor_type": "", "hypervisor_version": 0.0, "vcpus": 8.0,
		"memory_mb": 32768.0, "local_gb": 100.0, "cpu_info": "", "status": nil, "availability_zone": "", "trust_id": nil, "reservable": true,
		"created_at": nil, "updated_at": nil,
	}
}

func TestANativeReservationIsALeaseForTheUsageService(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	r := c.demo.book(hourOnTwoHosts)
	heard := usage.wantVerbs("check-create", "create")
	if d := cmp.Diff(heard[0].body, heard[1].body); d != "" {
		t.Errorf("the two phases differ:\n%s", d)
	}
	want := map[string]any{
		"context": map[string]any{"user_id": r.UserID, "project_id": "demo", "auth_url": "http://keystone.test/v3", "region_name": "RegionOne"},
		"lease": map[string]any{
			"id": r.ID, "name": "x", "user_id": r.UserID, "project_id": "demo", "trust_id": nil, "status": "PENDING", "degraded": false,
			"start_date": "2026-11-20T13:00:00", "end_date": "2026-11-20T14:00:00", "before_end_date": "2026-11-20T13:30:00",
			"created_at": "2026-11-20 12:00:00", "updated_at": "2026-11-20 12:00:00", "events": heard[0].lease()["events"],
			"resource_requests": map[string]any{"VCPU": 16.0, "MEMORY_MB": 65536.0, "DISK_GB": 200.0},
			"reservations": []any{map[string]any{
				"id": r.ID, "lease_id": r.ID, "resource_id": r.ID, "resource_type": "physical:host", "status": "pending",
				"missing_resources": false, "resources_changed": false, "created_at": "2026-11-20 12:00:00", "updated_at": "2026-11-20 12:00:00",
				"resource_properties": "", "hypervisor_properties": "", "before_end": "", "min": 2.0, "max": 2.0,
				"allocations": []any{flatHost("1", "A"), flatHost("2", "B")},
			}},
		},
	}
	if d := cmp.Diff(want, heard[0].body); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestInstancesAreCountedBySizeAndAffinityIsText(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	c.demo.book(`{"name": "x", "kind": "instance", "quantity": 3, "duration": 3600, "resources": {"vcpus": 2, "memory_mb": 512}, "affinity": "different"}`)
	lease := usage.wantVerbs("check-create", "create")[0].lease()
	if d := cmp.Diff(map[string]any{"VCPU": 6.0, "MEMORY_MB": 1536.0}, lease["resource_requests"]); d != "" {
		t.Errorf("amounts (-want +got):\n%s", d)
	}
	got := lease["reservations"].([]any)[0].(map[string]any)
	if _, has := got["resource_properties"]; got["affinity"] != "False" || got["resource_type"] != "virtual:instance" || has || len(got["allocations"].([]any)) != 3 {
		t.Errorf("got %v", got)
	}
}

func TestAChangeOfTimesOrAmountsIsAskedWithBothLeases(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	r := c.demo.book(hourOnTwoHosts)
	usage.told()
	want[v1.Reservation](t, c.demo.patch("/v1/reservations/"+r.ID, `{"name": "y"}`), 200)
	usage.wantVerbs()
	want[v1.Reservation](t, c.demo.patch("/v1/reservations/"+r.ID, `{"quantity": 3, "end_time": "2026-11-20T15:00:00Z"}`), 200)
	heard := usage.wantVerbs("check-update", "update")
	before, after := heard[0].body["current_lease"].(map[string]any), heard[0].lease()
	for key, pair := range map[string][2]any{
		"id": {r.ID, r.ID}, "name": {"y", "y"}, "start_date": {"2026-11-20T13:00:00", "2026-11-20T13:00:00"}, "end_date": {"2026-11-20T14:00:00", "2026-11-20T15:00:00"},
		"resource_requests": {map[string]any{"VCPU": 16.0, "MEMORY_MB": 65536.0, "DISK_GB": 200.0}, map[string]any{"VCPU": 24.0, "MEMORY_MB": 98304.0, "DISK_GB": 300.0}},
	} {
		if d := cmp.Diff(pair, [2]any{before[key], after[key]}); d != "" {
			t.Errorf("%s (-want +got):\n%s", key, d)
		}
	}
}

func TestOffersAndAvailabilityAskNobody(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	r := c.demo.book(hourOnTwoHosts)
	usage.told()
	want[v1.OfferAnswer](t, c.demo.post("/v1/reservations?dry_run=true", hourOnOneHost), 200)
	want[v1.OfferAnswer](t, c.demo.patch("/v1/reservations/"+r.ID+"?dry_run=true", `{"quantity": 3}`), 200)
	want[map[string]any](t, c.demo.get("/v1/availability?quantity=1&duration=3600"), 200)
	usage.wantVerbs()
}

func TestARefusedBookingOrChangeStoresNothing(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	r := c.demo.book(hourOnTwoHosts)
	usage.told()
	was := c.stored()
	const lease = `{"name": "l", "start_date": "2026-11-20 13:00", "end_date": "2026-11-20 14:00", "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1, ` +
		`"hypervisor_properties": "", "resource_properties": ""}]}`
	for name, answer := range map[string]struct {
		answer func(w http.ResponseWriter)
		text   string
	}{
		"refused": {status(403, `{"message": "no hours left"}`), "no hours left"},
		"500":     {status(500, "secret"), "external usage service"},
		"garbage": {status(200, "<html>secret"), "external usage service"},
	} {
		for _, call := range []struct {
			method, path, body string
			refusing           string
			asked              []string
		}{
			{"POST", "/v1/reservations", hourOnOneHost, "check-create", []string{"check-create"}},
			{"POST", "/v1/leases", lease, "check-create", []string{"check-create"}},
			{"PATCH", "/v1/reservations/" + r.ID, `{"quantity": 3}`, "check-update", []string{"check-update"}},
			{"PUT", "/v1/leases/" + r.ID, `{"end_date": "2026-11-20 15:00"}`, "check-update", []string{"check-update"}},
			{"PATCH", "/v1/reservations/" + r.ID, `{"quantity": 3}`, "update", []string{"check-update", "update"}},
			{"POST", "/v1/reservations", hourOnOneHost, "create", []string{"check-create", "create"}},
		} {
			t.Run(name+" "+call.refusing+" "+call.method+" "+call.path[:8], func(t *testing.T) {
				usage.on(call.refusing, answer.answer)
				defer usage.on(call.refusing, nil)
				a := c.demo.send(call.method, call.path, call.body)
				if a.status != 403 || !strings.Contains(string(a.body), answer.text) || strings.Contains(string(a.body), "secret") {
					t.Errorf("got %v, want 403 with %q", a, answer.text)
				}
				if name != "refused" && call.refusing == "update" { // and back, since it may have counted
					call.asked = append(call.asked, "update")
				}
				usage.wantVerbs(call.asked...)
				if d := cmp.Diff(was, c.stored()); d != "" {
					t.Errorf("something was stored:\n%s", d)
				}
			})
		}
	}
	usage.tellOfEnds()
	heard := usage.told()
	for _, q := range heard {
		if q.verb != "on-end" || q.lease()["id"] == r.ID {
			t.Errorf("it heard %v", q)
		}
	}
	if len(heard) != 2 { // after 500 and garbage to create, which may have counted the lease
		t.Errorf("it heard of %d ends, want 2", len(heard))
	}
}

func TestALeaseWhoseHostsAreGoneAfterTheAnswerEndsForTheService(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	usage.on("create", func(w http.ResponseWriter) {
		usage.take(c, 3, "")
		w.WriteHeader(http.StatusNoContent)
	})
	want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", hourOnTwoHosts), 409)
	asked := usage.wantVerbs("check-create", "create")[0].lease()["id"]
	usage.tellOfEnds()
	if got := usage.wantVerbs("on-end")[0].lease()["id"]; got != asked {
		t.Errorf("lease %v ended, want %v", got, asked)
	}
	usage.tellOfEnds()
	usage.wantVerbs()
}

func TestAChangeWhoseHostsAreGoneAfterTheAnswerIsTakenBack(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	r := c.demo.book(hourOnTwoHosts)
	usage.told()
	usage.on("update", func(w http.ResponseWriter) {
		usage.on("update", nil)
		usage.take(c, 1, "")
		w.WriteHeader(http.StatusNoContent)
	})
	want[v1.ErrorAnswer](t, c.demo.patch("/v1/reservations/"+r.ID, `{"quantity": 3}`), 409)
	heard := usage.wantVerbs("check-update", "update", "update")
	if d := cmp.Diff(heard[0].body["current_lease"], heard[2].body["lease"]); d != "" {
		t.Errorf("the lease at last (-before +got):\n%s", d)
	}
}

func TestOtherHostsOfOtherSizesAreAskedAgain(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	once := sync.OnceFunc(func() { usage.take(c, 2, `["in", "$name", "A", "B"]`) })
	usage.on("create", func(w http.ResponseWriter) { once(); w.WriteHeader(http.StatusNoContent) })
	l, err := c.bookings.BookLease(t.Context(), booking.Caller{ProjectID: "demo", UserID: "u"}, reservation.LeaseRequest{
		Name: "l", Start: noon.Add(3600), End: noon.Add(7200),
		Members: []reservation.MemberRequest{{Terms: reservation.Terms{Kind: reservation.Hosts}, Membership: reservation.Membership{Min: 1, Max: 2}}},
	})
	must(t, err)
	heard := usage.wantVerbs("check-create", "create", "check-create", "create")
	if first, last := heard[1].lease(), heard[3].lease(); first["id"] == last["id"] || last["id"] != l.ID || len(last["resource_requests"].(map[string]any)) == 0 ||
		cmp.Equal(first["resource_requests"], last["resource_requests"]) {
		t.Errorf("asked about %v, then about %v; booked %s", first, last, l.ID)
	}
	usage.tellOfEnds()
	if got := usage.wantVerbs("on-end")[0].lease()["id"]; got != heard[1].lease()["id"] {
		t.Errorf("lease %v ended, want the first one", got)
	}
}

func TestTheServiceHearsOnceOfEachEnd(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	pending, ends := c.demo.book(hourOnTwoHosts), c.demo.book(`{"name": "x", "quantity": 1, "duration": 600}`)
	foreign := c.other.book(`{"name": "x", "quantity": 1, "start_time": "2026-11-20T15:00:00Z", "duration": 600}`)
	usage.told()
	usage.tellOfEnds()
	usage.wantVerbs()
	for _, r := range []v1.Reservation{pending, foreign} {
		if a := c.admin.delete("/v1/reservations/" + r.ID); a.status >= 300 {
			t.Fatal(a)
		}
	}
	usage.tellOfEnds()
	got := usage.wantVerbs("on-end")[0].lease()
	if d := cmp.Diff([]any{pending.ID, map[string]any{"VCPU": 16.0, "MEMORY_MB": 65536.0, "DISK_GB": 200.0}}, []any{got["id"], got["resource_requests"]}); d != "" {
		t.Errorf("the deleted one (-want +got):\n%s", d)
	}
	c.wait(600)
	usage.tellOfEnds()
	if got := usage.wantVerbs("on-end")[0].lease()["id"]; got != ends.ID {
		t.Errorf("got %v, want %s", got, ends.ID)
	}
	usage.tellOfEnds()
	usage.wantVerbs()
}

func TestALeaseEndsWithItsLastReservation(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	caller := booking.Caller{ProjectID: "demo", UserID: "u"}
	member := reservation.MemberRequest{Terms: reservation.Terms{Kind: reservation.Hosts}, Membership: reservation.Membership{Min: 1, Max: 1}}
	l, err := c.bookings.BookLease(t.Context(), caller, reservation.LeaseRequest{
		Name: "l", Start: noon.Add(3600), End: noon.Add(7200), Members: []reservation.MemberRequest{member, member},
	})
	must(t, err)
	heard := usage.wantVerbs("check-create", "create")
	if got := heard[1].lease(); got["id"] != l.ID || len(got["reservations"].([]any)) != 2 {
		t.Errorf("asked about %v, booked %+v", got, l)
	}
	_, err = c.bookings.ChangeLease(t.Context(), caller, l.ID, reservation.LeaseChange{End: new(noon.Add(10_800))})
	must(t, err)
	if got := usage.wantVerbs("check-update", "update")[1].lease(); got["end_date"] != "2026-11-20T15:00:00" || len(got["reservations"].([]any)) != 2 {
		t.Errorf("asked about %v", got)
	}
	_, err = c.bookings.Change(t.Context(), caller, l.Reservations[0].ID, planning.Change{Quantity: new(2)})
	must(t, err)
	if got := usage.wantVerbs("check-update", "update")[1].lease(); got["id"] != l.ID || len(got["reservations"].([]any)) != 2 {
		t.Errorf("a member's quantity: asked about %v", got)
	}
	_, err = c.bookings.CancelLease(t.Context(), caller, l.ID)
	must(t, err)
	usage.tellOfEnds()
	if got := usage.wantVerbs("on-end")[0].lease()["id"]; got != l.ID {
		t.Errorf("got %v, want %s", got, l.ID)
	}
}

func TestALeaseWithoutReservationsIsNotAskedAbout(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	want[map[string]any](t, c.demo.post("/v1/leases", `{"name": "l", "start_date": "now", "end_date": "2026-11-20 13:00"}`), 201)
	usage.wantVerbs()
}

func TestAnEndWithoutAnAnswerIsToldAtMostTenTimes(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	r := c.demo.book(hourOnTwoHosts)
	usage.on("on-end", status(500, ""))
	c.demo.delete("/v1/reservations/" + r.ID)
	usage.told()
	var at []int64
	for range 24 * 60 {
		usage.tellOfEnds()
		if len(usage.told()) > 0 {
			at = append(at, int64(c.now()-noon))
		}
		c.wait(30)
	}
	if d := cmp.Diff([]int64{0, 30, 90, 210, 450, 930, 1890, 3690, 5490, 7290}, at); d != "" {
		t.Errorf("seconds (-want +got):\n%s", d)
	}
	if !strings.Contains(c.log.String(), "correct its accounts by hand") {
		t.Error("the log does not tell that it was given up")
	}
}

func TestARepeatedRequestIsAskedOnce(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	for range 2 {
		want[v1.Reservation](t, c.demo.send("POST", "/v1/reservations", hourOnTwoHosts, "Idempotency-Key", "k"), 201)
	}
	usage.wantVerbs("check-create", "create")
}

func TestASlowServiceDelaysNobodyElse(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: -1})
	const slow = 10
	arrived, release := make(chan struct{}, slow), make(chan struct{})
	usage.on("check-create", func(w http.ResponseWriter) {
		arrived <- struct{}{}
		<-release
		w.WriteHeader(http.StatusNoContent)
	})
	var waiting sync.WaitGroup
	for i := range slow {
		waiting.Go(func() {
			_, err := c.bookings.Book(t.Context(), booking.Caller{ProjectID: "demo", UserID: "u"}, reservation.Request{
				Terms: reservation.Terms{Quantity: 1}, Start: noon.Add(int64(i+10) * 3600), Duration: 3600,
			}, nil)
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range slow {
		<-arrived
	}
	mine := c.other.book(hourOnTwoHosts)
	c.other.patch("/v1/reservations/"+mine.ID, `{"quantity": 3}`)
	if got := c.other.delete("/v1/reservations/" + mine.ID); got.status >= 300 {
		t.Error(got)
	}
	if n := len(c.stored()); n != 1 {
		t.Errorf("%d reservations are stored while the service thinks", n)
	}
	close(release)
	waiting.Wait()
	if n := len(slices.DeleteFunc(c.stored(), func(r reservation.Reservation) bool { return r.ProjectID != "demo" })); n != slow {
		t.Errorf("%d are stored, want %d", n, slow)
	}
}

func TestTheMaximumDurationOfLeasesHasExemptProjects(t *testing.T) {
	c, usage := enforced(t, enforcement.Rules{MaxDuration: 3600, MaxDurationExempt: []string{"other"}})
	const text = "Lease duration of 3601 seconds must be less than or equal to the maximum lease duration of 3600 seconds."
	refused := func(a answer) {
		t.Helper()
		if got := want[v1.ErrorAnswer](t, a, 403).Error.Message; got != text {
			t.Errorf("got %q", got)
		}
	}
	refused(c.demo.post("/v1/reservations", `{"name": "x", "quantity": 1, "duration": 3601}`))
	usage.wantVerbs()
	r := c.demo.book(`{"name": "x", "quantity": 1, "duration": 3600}`)
	usage.told()
	refused(c.demo.patch("/v1/reservations/"+r.ID, fmt.Sprintf(`{"end_time": %q}`, at(3601))))
	c.other.book(`{"name": "x", "quantity": 1, "duration": 3601}`)
	usage.wantVerbs()
}
