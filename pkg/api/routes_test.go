// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// everything are options with which every route exists.
func everything(o *api.Options) {
	o.FeedSecret, o.Demo, o.Dashboard, o.SignIn = "secret", demoCloud{}, http.NotFoundHandler(), door{&[]string{}}
}

// table returns the table of all routes.
func table() []api.Call {
	o := api.Options{Blazar: &leases.Options{}}
	everything(&o)
	return api.Calls(o)
}

func TestEveryRouteHasEveryColumn(t *testing.T) {
	for _, r := range table() {
		if !r.Whole {
			t.Errorf("a column is empty in %+v", r)
		}
	}
}

// TestTheTableHasTheRulesOfThePolicy compares the rules of the table with the calls that the policy lists for its rules.
func TestTheTableHasTheRulesOfThePolicy(t *testing.T) {
	listed := make(map[string][]string) // rules by call
	for _, rule := range policy.Defaults() {
		for _, o := range rule.Operations {
			listed[o.Method+" "+o.Path] = append(listed[o.Method+" "+o.Path], rule.Name)
		}
	}
	for _, r := range table() {
		call := r.Method + " " + asDocumented(r.Path)
		for _, rule := range r.Rules {
			if !slices.Contains(listed[call], rule) && !strings.HasPrefix(call, "GET /dashboard/") {
				t.Errorf("the policy does not list %s for its rule %s", call, rule)
			}
		}
		if len(r.Rules) == 0 && len(listed[call]) > 0 {
			t.Errorf("%s applies none of the rules %v", call, listed[call])
		}
	}
}

// parameter matches a parameter of a path.
var parameter = regexp.MustCompile(`:(\w+)`)

// asDocumented returns a path as OpenAPI writes it.
func asDocumented(path string) string { return parameter.ReplaceAllString(path, "{$1}") }

// ask sends a request without a connection, and does not check it against the document.
func (p caller) ask(t *testing.T, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if p.token != "" {
		r.Header.Set("X-Auth-Token", p.token)
	}
	w := httptest.NewRecorder()
	p.cloud.handler.ServeHTTP(w, r)
	return w
}

// called returns the path with values for its parameters.
func called(path string) string {
	return strings.NewReplacer(":id", "none", ":name", "A", ":project_id", "demo", ":file", "none.ics", "*file", "page.js").Replace(path)
}

// What a caller may see depends on its token, so no cache between may give the answer to others: the answers, and the
// errors, of every route that needs a token name it in Vary, and no shared cache may keep them.
func TestNoSharedCacheKeepsWhatBelongsToAProject(t *testing.T) {
	c := start(t, setup{adjust: everything})
	for _, r := range table() {
		a := c.demo.ask(t, r.Method, called(r.Path), "{}")
		header := a.Header()
		if diff := cmp.Diff(r.CacheControl, header.Get("Cache-Control")); diff != "" {
			t.Errorf("%s %s: Cache-Control (-table +answer):\n%s", r.Method, r.Path, diff)
		}
		private := header.Get("Cache-Control") == "no-store" || strings.Contains(header.Get("Cache-Control"), "private")
		if needs := strings.Contains(r.Caller, "a token"); needs && (!private || !slices.Contains(header.Values("Vary"), "X-Auth-Token, Cookie")) {
			t.Errorf("%s %s: %d, Cache-Control %q, Vary %q", r.Method, r.Path, a.Code, header.Get("Cache-Control"), header.Values("Vary"))
		}
		if !private && r.Caller != "everybody" {
			t.Errorf("%s %s is for %s, and caches may keep it", r.Method, r.Path, r.Caller)
		}
	}
}

// A link is as good as a token for its feed.
func TestNoSharedCacheKeepsAFeed(t *testing.T) {
	c := start(t, setup{adjust: everything})
	link := strings.TrimPrefix(want[struct{ URL string }](t, c.demo.get("/v1/feed"), http.StatusOK).URL, c.url)
	if a := c.nobody.get(link); a.status != http.StatusOK || a.header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("%d, Cache-Control %q", a.status, a.header.Get("Cache-Control"))
	}
}

// Large answers are computed in the project's turn, so that they leave a processor for other requests. While two other
// projects have theirs, they wait until their time is over; all other calls are answered. Only those that wait have
// little time: a call that is answered has as much as a slow machine needs.
func TestLargeAnswersWaitForTheTurnOfTheProject(t *testing.T) {
	var options api.Options
	c := start(t, setup{adjust: func(o *api.Options) { everything(o); options = *o }})
	patient := c.handler
	options.RequestTimeout, options.Registry = 100*time.Millisecond, prometheus.NewRegistry()
	hasty := api.New(options)
	link := strings.TrimPrefix(want[struct{ URL string }](t, c.demo.get("/v1/feed"), http.StatusOK).URL, c.url)
	lease := want[struct{ Lease struct{ ID string } }](t, c.demo.post("/v1/leases", `{"name": "l", "start_date": "now", "end_date": "2026-11-20 13:00", "reservations": []}`), http.StatusCreated).Lease.ID
	id, series := c.demo.bookAt("r", 3600).ID, c.demo.series("").ID
	asked := map[string][2]string{ // path and body, where they differ from those of the table
		"POST /v1/reservations":           {"/v1/reservations", `{"name": "r", "duration": 60}`},
		"PATCH /v1/reservations/:id":      {"/v1/reservations/" + id, `{"quantity": 2}`},
		"GET /v1/availability":            {"/v1/availability?duration=60"},
		"POST /v1/offers":                 {"/v1/offers", `{"duration": 60}`},
		"POST /v1/groups":                 {"/v1/groups", `{"name": "g", "duration": 60, "parts": [{}]}`},
		"PATCH /v1/groups/:id":            {"/v1/groups/" + id, `{"name": "x"}`},
		"POST /v1/series":                 {"/v1/series", weekly("")},
		"POST /v1/webhooks":               {"/v1/webhooks", `{"name": "w", "url": "https://192.0.2.1/"}`},
		"GET /v1/series/:id":              {"/v1/series/" + series},
		"PATCH /v1/series/:id":            {"/v1/series/" + series, `{"name": "x"}`},
		"POST /v1/leases":                 {"/v1/leases", `{"name": "l", "start_date": "now", "end_date": "2026-11-20 13:00", "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1}]}`},
		"PUT /v1/leases/:id":              {"/v1/leases/" + lease, `{"prolong_for": "1h"}`},
		"PATCH /v1/leases/:id":            {"/v1/leases/" + lease, `{"prolong_for": "1h"}`},
		"GET /v1/os-hosts/:id/allocation": {"/v1/os-hosts/1/allocation"},
		"GET /feeds/:project_id/:file":    {link},
		"GET /v1/preemptible/cost":        {"/v1/preemptible/cost?vcpus=1"},
	}
	ask := func() {
		for _, r := range table() {
			if r.Turn == "a stream" {
				continue
			}
			call, path, body := r.Method+" "+r.Path, r.Path, ""
			if a, other := asked[call]; other {
				path, body = a[0], a[1]
			}
			waits := r.Turn == "the project's turn"
			if c.handler = patient; waits {
				c.handler = hasty
			}
			a := c.admin.ask(t, r.Method, path, body)
			if answered := a.Code != http.StatusServiceUnavailable; answered == waits {
				t.Errorf("%s: its row has %s; in the turn of other projects it is answered with %d %s", call, r.Turn, a.Code, a.Body)
			}
		}
	}
	must(t, c.bookings.InTurn(t.Context(), "another", func() { must(t, c.bookings.InTurn(t.Context(), "a third", ask)) }))
}

// A member's requests wait in its project's line, those to the page's session too. While other requests of the project
// have all places, they wait until their time is over.
func TestTheRequestsOfAProjectWaitInItsLine(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		everything(o)
		o.RequestsAtOnce, o.RequestTimeout = 1, 100*time.Millisecond
	}})
	must(t, c.handler.HoldLine(t.Context(), "project demo"))
	for _, r := range table() {
		if r.Turn != "the project's turn" && r.Turn != "the project's line" || r.Caller == "the feed's link" {
			continue
		}
		if a := c.demo.ask(t, r.Method, called(r.Path), "{}"); a.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %s does not wait: %d %s", r.Method, r.Path, a.Code, a.Body)
		}
	}
}

// slowCollector is a collector that takes a while, and counts how many gather at once, and how often.
type slowCollector struct {
	inside, most, gathered atomic.Int64
	asked                  sync.WaitGroup // until all have asked
}

func (k *slowCollector) Describe(to chan<- *prometheus.Desc) {
	to <- prometheus.NewDesc("slow", "Takes a while.", nil, nil)
}

func (k *slowCollector) Collect(to chan<- prometheus.Metric) {
	now := k.inside.Add(1)
	defer k.inside.Add(-1)
	k.gathered.Add(1)
	for most := k.most.Load(); now > most && !k.most.CompareAndSwap(most, now); most = k.most.Load() {
	}
	k.asked.Wait()
	to <- prometheus.MustNewConstMetric(prometheus.NewDesc("slow", "Takes a while.", nil, nil), prometheus.GaugeValue, 1)
}

// The metrics need no token, so anybody may ask for them: they are gathered once a second, however many ask.
func TestMetricsAreGatheredOnceASecond(t *testing.T) {
	slow := &slowCollector{}
	c := start(t, setup{adjust: func(o *api.Options) { o.Registry.MustRegister(slow) }})
	ask := func(query, encoding string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics"+query, nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") == "" && !strings.Contains(w.Body.String(), "\nslow 1\n") {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
	var all sync.WaitGroup
	slow.asked.Add(100)
	for i := range 100 {
		all.Go(func() {
			slow.asked.Done()
			ask([]string{"", "?name[]=slow"}[i%2], []string{"gzip", ""}[i/2%2])
		})
	}
	all.Wait()
	if most, times := slow.most.Load(), slow.gathered.Load(); most > 1 || times > 2 {
		t.Errorf("%d were gathered at once and %d altogether, want 1 at once, and one for each of two encodings", most, times)
	}
	c.passed.Add(1)
	if ask("", ""); slow.gathered.Load() != 3 {
		t.Error("a second later, the metrics are not gathered again")
	}
}

// keystoneCalls counts what is asked of Keystone at once. Keystone answers when the test releases it.
type keystoneCalls struct {
	inside  atomic.Int64
	release chan struct{}
}

func (k *keystoneCalls) call() {
	k.inside.Add(1)
	defer k.inside.Add(-1)
	<-k.release
}

func (k *keystoneCalls) SignIn(_ context.Context, by keystone.SignInCredentials) (string, error) {
	k.call()
	return by.Token, nil
}

func (k *keystoneCalls) Projects(context.Context, string) ([]keystone.Project, error) {
	k.call()
	return nil, nil
}

func (k *keystoneCalls) AllProjects(context.Context, string) ([]keystone.Project, error) {
	return nil, nil
}

func (k *keystoneCalls) Revoke(context.Context, string) error { return nil }

// The session of the page asks Keystone at each request. A project may have as many of these requests at once as of
// others, and an address as many sign-ins.
func TestTheRequestsForTheSessionAreRequestsOfTheProject(t *testing.T) {
	for method, body := range map[string]string{http.MethodGet: "", http.MethodPatch: `{"project_id": "other"}`, http.MethodPost: `{"token": "demo/member"}`} {
		asked := &keystoneCalls{}
		c := start(t, setup{adjust: func(o *api.Options) {
			everything(o)
			o.SignIn, o.RequestsAtOnce = asked, 2
		}})
		by := c.demo
		if method == http.MethodPost {
			by = c.nobody
		}
		synctest.Test(t, func(t *testing.T) {
			asked.release = make(chan struct{})
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if a := by.ask(t, method, "/dashboard/session", body); a.Code >= http.StatusMultipleChoices {
						t.Errorf("%s: %d %s", method, a.Code, a.Body)
					}
				})
			}
			synctest.Wait()
			if inside := asked.inside.Load(); inside != 2 {
				t.Errorf("%s: Keystone is asked %d times at once, want 2", method, inside)
			}
			close(asked.release)
			all.Wait()
		})
	}
}

// HEAD is answered for every path of the table: the real ones of a lease and of a host too, and those of nothing.
func TestHeadIsGetWithoutABody(t *testing.T) {
	c := start(t, setup{adjust: everything})
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	paths := []string{"/v1/leases/" + l.ID, "/v1/hosts/A", "/v1/os-hosts/1", "/v1/nothing", "/v1/availability?duration=60"}
	for _, r := range table() {
		if r.Method == http.MethodGet && r.Path != "/healthcheck" && r.Path != "/v1/events" {
			paths = append(paths, r.Path)
		}
	}
	for _, path := range paths {
		for who, by := range map[string]caller{"admin": c.admin, "nobody": c.nobody} {
			get, head := by.ask(t, http.MethodGet, path, ""), by.ask(t, http.MethodHead, path, "")
			if head.Code != get.Code || head.Header().Get("Content-Type") != get.Header().Get("Content-Type") {
				t.Errorf("%s by %s: HEAD %d %v, GET %d %v", path, who, head.Code, head.Header(), get.Code, get.Header())
			}
		}
	}
	if _, head := c.demo.exchange("HEAD", "/v1/reservations", ""); head.status != http.StatusOK || len(head.body) > 0 {
		t.Errorf("over a connection: %v", head)
	}
}
