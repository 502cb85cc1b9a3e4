// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	source "github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// front is a proxy before a real service that can answer in its place.
type front struct {
	*httptest.Server
	mu      sync.Mutex
	instead func(w http.ResponseWriter, r *http.Request) bool // returns false to pass the request on
}

func newFront(t testing.TB, address string) *front {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	f := &front{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		instead := f.instead
		f.mu.Unlock()
		if instead == nil || !instead(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *front) answer(instead func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instead = instead
}

// scene is a source over the lab, with a front before Nova and one before Placement.
type scene struct {
	*source.Source
	fresh           func() // starts over with a new source
	board           *inventory.LiveState
	client          *placement.Client
	t               testing.TB
	compute         *front
	place           *front
	session, tenant *keystone.Session
	nova, placement string // their addresses
	clock           *clock
	log             *logbook
	prefix          string // of the names of everything that the test creates
}

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// logbook is a log that a test can read.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func login(t testing.TB, u labtest.User) *keystone.Session {
	t.Helper()
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.OpenStack(t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// setting holds what a scene may change from the defaults.
type setting struct {
	maxMicroversion string
	rule            inventory.PreemptibleRule
	fullEvery       int64
	records         inventory.InstanceRecords
}

func newScene(t testing.TB, s setting) *scene {
	t.Helper()
	sc := &scene{
		t: t, board: inventory.NewLiveState(), session: login(t, labtest.Almanac), tenant: login(t, labtest.Demo),
		clock: &clock{at: time.Now()}, log: &logbook{}, prefix: "reading-" + strings.ToLower(rand.Text())[:6],
	}
	find := func(kind string) string {
		address, err := sc.session.Endpoint(t.Context(), kind, "", []string{"public"})
		if err != nil {
			t.Fatal(err)
		}
		return address
	}
	sc.nova, sc.placement = strings.TrimRight(find("compute"), "/"), strings.TrimRight(find("placement"), "/")
	sc.compute, sc.place = newFront(t, sc.nova), newFront(t, sc.placement)
	inFront := func(f *front, address string) openstack.Options {
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return openstack.Options{
			Override: f.URL + parsed.Path, Wait: func(context.Context, time.Duration) error { return nil },
		}
	}
	computeOptions := inFront(sc.compute, sc.nova)
	computeOptions.MaxMicroversion = s.maxMicroversion
	compute, err := nova.New(sc.session, computeOptions)
	if err != nil {
		t.Fatal(err)
	}
	sc.client, err = placement.New(sc.session, inFront(sc.place, sc.placement))
	if err != nil {
		t.Fatal(err)
	}
	sc.fresh = func() {
		sc.Source = source.NewSource(compute, sc.client, source.Options{
			Preemptible: s.rule, Records: s.records, FullEvery: s.fullEvery, LiveState: sc.board, Now: sc.clock.now, Log: slog.New(slog.NewTextHandler(sc.log, nil)),
		})
	}
	sc.fresh()
	return sc
}

// must reads the hosts.
func (s *scene) must() []inventory.Host {
	s.t.Helper()
	hosts, err := s.Hosts(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return hosts
}

// where returns the hosts on which the source shows the instance, and the instance.
func where(hosts []inventory.Host, id string) (names []string, found inventory.Instance) {
	for _, h := range hosts {
		for _, i := range h.Instances {
			if i.ID == id {
				names, found = append(names, h.Name), i
			}
		}
	}
	return names, found
}

// await reads the hosts until wanted accepts them, one second of the test's clock apart.
func (s *scene) await(what string, wanted func(hosts []inventory.Host) bool) []inventory.Host {
	s.t.Helper()
	var hosts []inventory.Host
	if !labtest.Poll(patience, 100*time.Millisecond, func() bool {
		s.clock.advance(100 * time.Millisecond)
		hosts = s.must()
		return wanted(hosts)
	}) {
		s.t.Fatalf("after %v, still waiting until %s", patience, what)
	}
	return hosts
}
