// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/api/webhooks"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/admission"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/reservation/webhook"
	"github.com/almanac-cloud/almanac/reservation/webhook/delivery"
)

// noon is when every test begins.
var noon = span.At(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

// setup is how a test's cloud differs from three equal hosts A, B and C without limits.
type setup struct {
	hosts  []inventory.Host
	limits planning.Limits
	fence  filters.Fence
	// busy is how long a write waits for another; 0 means two minutes.
	busy time.Duration
	// checks returns what must allow bookings; nil means that nothing must.
	checks func(c *cloud, hosts func() *inventory.Snapshot) *enforcement.Checker
	// enrolled is true if only hosts that were added to the pool are in it.
	enrolled bool
	// poolChanged is leases.Options.PoolChanged.
	poolChanged func(context.Context)
	// carries does the work of events; nil means that there is no cloud.
	carries booking.Cloud
	// file is the database; empty for a new one.
	file string
	// connection is a database of a server, instead of a file.
	connection string
	// began is when the test begins; 0 means noon.
	began span.Instant
	// adjust changes the options of the API.
	adjust func(*api.Options)
}

// reporter is the part of *testing.T and *rapid.T that the harness uses.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
	Context() context.Context
}

// cloud is an Almanac in a test: the API over a database file, with a clock that only the test
// moves.
type cloud struct {
	t        reporter
	handler  *api.Server
	url      string
	file     string
	store    *store.Store
	bookings *booking.Service
	contract *contract
	log      *lockedBuffer
	seconds  atomic.Int64
	// passed are seconds in which only durations grow.
	passed atomic.Int64

	// The callers: an admin, a member and a reader of project demo, a member of project other,
	// and one without a token.
	admin, demo, reader, other, nobody caller
}

func start(t testing.TB, s setup) *cloud {
	t.Helper()
	c := &cloud{t: t, contract: openContract(t), log: &lockedBuffer{}, file: cmp.Or(s.file, filepath.Join(t.TempDir(), "almanac.db"))}
	c.seconds.Store(int64(cmp.Or(s.began, noon)))
	c.admin, c.demo, c.reader = caller{c, "demo/admin"}, caller{c, "demo/member"}, caller{c, "demo/reader"}
	c.other, c.nobody = caller{c, "other/member"}, caller{c, ""}

	var err error
	at := store.Options{Connection: "file:" + c.file, BusyTimeout: cmp.Or(s.busy, 2*time.Minute)}
	if s.connection != "" {
		at = server(s.connection)
	}
	c.store, err = store.Open(t.Context(), at)
	must(t, err)
	t.Cleanup(func() { _ = c.store.Close() })
	_, err = c.store.Migrate(t.Context())
	must(t, err)
	if s.hosts == nil {
		s.hosts = []inventory.Host{machine("A"), machine("B"), machine("C")}
	}
	keeper, err := inventory.OpenSnapshotCache(t.Context(), hostList(s.hosts), inventory.SnapshotCacheOptions{
		Hosts: c.store, Properties: c.store, Numbers: c.store, OnlyEnrolled: s.enrolled, Now: c.now, Log: slog.New(slog.DiscardHandler),
		Published: func(s *inventory.Snapshot) { c.bookings.Observe(s) },
	})
	must(t, err)
	var checks *enforcement.Checker
	if s.checks != nil {
		checks = s.checks(c, keeper.Snapshot)
	}
	c.bookings, err = booking.Open(t.Context(), booking.Options{
		Enforcement: checks, Cloud: s.carries, Addresses: c.store,
		Records: c.store, Keys: c.store, Reader: c.store, Limits: s.limits,
		Defaults: planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		LeadTime: 900, Now: c.now, NewID: uuid.NewString,
	}, keeper.Snapshot())
	must(t, err)
	if s.fence == "" {
		s.fence = filters.FenceAlways
	}
	options := api.Options{
		Booking: c.bookings, Reader: c.store, Leases: c.store, Series: c.store, NewID: uuid.NewString, History: c.store, Inventory: keeper,
		Authenticator: api.Keystone{Tokens: legible{}}, KeystoneURI: "http://keystone.test/v3", Policy: rules(t, ""), Ping: c.store.Ping, BeforeEnd: 3600, MaxBodyBytes: 1 << 20, Version: "1.2.3",
		Now: c.now, Monotonic: c.elapsed,
		NewRequestID: func() string { return "req-" + uuid.NewString() },
		Log:          slog.New(serving.LogHandler(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))), Registry: prometheus.NewRegistry(),
	}
	options.Decisions = c.store
	options.Streams.Longest = time.Millisecond // the tests of streams let them last longer
	options.Blazar = &leases.Options{BeforeEnd: 3600, ListAllForAdmin: true, OnlyEnrolled: s.enrolled, PoolChanged: s.poolChanged, Addresses: c.store, Neutron: outside{}}
	options.Energy = &controller.Admin{
		Records: c.store, Settings: c.store, History: c.store, Reports: c.store, Inventory: keeper, Promises: c.bookings,
		Admission: energy.Admission{Property: "energy_managed"}, Rules: energy.Rules{Horizon: 900}, Configured: energy.ModeOff, StaleAfter: 180, Now: c.now,
	}
	options.Packing = packing(c)
	options.Webhooks = webhooks.API{
		Store: c.store, MostPerProject: 100, Check: receivers(t, "192.0.2.0/24").Check,
		NewSecret: func() webhook.Secret { return webhook.NewSecret(make([]byte, webhook.SecretBytes)) },
	}
	options.BestEffort = bestEffort(c, keeper)
	options.Admission = admission.Admission{
		Promises: filters.Reservation{Promises: c.bookings, Fence: s.fence, LeadTime: 900}, Records: c.store, Log: options.Log,
	}
	options.Doctor = &upkeep.Doctor{
		Promises: c.bookings, Records: c.store, Snapshot: keeper.Snapshot, Untrusted: func() string { return "" }, Canceler: c.bookings, Now: c.now,
	}
	if s.adjust != nil {
		s.adjust(&options)
	}
	c.handler = api.New(options)
	server := httptest.NewServer(c.handler)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// receivers sends to the allowed receivers.
func receivers(t testing.TB, allowed ...string) *delivery.Poster {
	t.Helper()
	list, err := webhook.ParseAllowed(allowed)
	must(t, err)
	return delivery.NewPoster(list, "1.2.3", nil)
}

// restart stops the cloud and returns it as an almanacd that starts now makes it, with the setup s.
func (c *cloud) restart(t *testing.T, s setup) *cloud {
	t.Helper()
	must(t, c.store.Close())
	s.file, s.began = c.file, c.now()
	return start(t, s)
}

func (c *cloud) now() span.Instant { return span.Instant(c.seconds.Load()) }

// elapsed returns the time since noon.
func (c *cloud) elapsed() time.Duration {
	return time.Duration(int64(c.now()-noon)+c.passed.Load()) * time.Second
}

// wait advances the clock and carries out what is due.
func (c *cloud) wait(seconds int64) {
	c.t.Helper()
	c.seconds.Add(seconds)
	if _, failed := c.bookings.CarryOut(c.t.Context()); len(failed) > 0 {
		c.t.Fatalf("carry out events: %v", failed)
	}
}

// at formats the time that is seconds after noon.
func at(seconds int64) string { return noon.Add(seconds).String() }

// stored returns all reservations of the database, including the canceled.
func (c *cloud) stored() []reservation.Reservation {
	c.t.Helper()
	list, err := c.store.List(c.t.Context(), reservation.Query{Statuses: reservation.Statuses})
	must(c.t, err)
	return list
}

// machine is a host with eight vCPUs and four times as many GiB of memory.
func machine(name string) inventory.Host {
	h := inventory.Host{Name: name, Reservable: true, Power: inventory.PowerOn}
	h.Capacity.VCPUs, h.Capacity.MemoryMB, h.Capacity.DiskGB = 8, 32768, 100
	return h
}

// caller sends requests, with a token unless it is empty.
type caller struct {
	cloud *cloud
	token string
}

// answer is an answer of the server. allowed reports whether the document allows the request,
// closed whether the server closed the connection.
type answer struct {
	status          int
	header          http.Header
	body            []byte
	allowed, closed bool
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// send sends a request and checks it and its answer against the document. header alternates
// names and values.
func (p caller) send(method, path, body string, header ...string) answer {
	t := p.cloud.t
	t.Helper()
	request, a := p.exchange(method, path, body, header...)
	a.allowed = p.cloud.contract.hold(t, request, body, a)
	if health := strings.HasPrefix(path, "/healthcheck") || strings.HasPrefix(path, "/v1/readiness"); a.status >= 400 && !(health && a.status == 503) {
		holdError(t, a)
	}
	return a
}

// exchange sends a request and returns it with its answer, unchecked.
func (p caller) exchange(method, path, body string, header ...string) (*http.Request, answer) {
	t := p.cloud.t
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.cloud.url+path, strings.NewReader(body))
	must(t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if p.token != "" {
		request.Header.Set("X-Auth-Token", p.token)
	}
	for pair := range slices.Chunk(header, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header, closed: response.Close}
	a.body, err = io.ReadAll(response.Body)
	must(t, err)
	return request, a
}

// holdError checks what holds for every error.
func holdError(t reporter, a answer) {
	t.Helper()
	e := decode[v1.ErrorAnswer](t, a)
	if !slices.Contains(kinds[a.status], e.Error.Kind) {
		t.Errorf("an error of kind %q is answered with %d", e.Error.Kind, a.status)
	}
	if id := a.header.Get("X-Openstack-Request-Id"); e.Error.RequestID != id {
		t.Errorf("the error has request id %q, the header %q", e.Error.RequestID, id)
	}
	if isRefusal := e.Error.Kind == "refused"; isRefusal != (e.Refusal != nil) {
		t.Errorf("an error of kind %q has the refusal %v", e.Error.Kind, e.Refusal)
	}
}

func (p caller) get(path string) answer        { p.cloud.t.Helper(); return p.send("GET", path, "") }
func (p caller) post(path, body string) answer { p.cloud.t.Helper(); return p.send("POST", path, body) }
func (p caller) patch(path, body string) answer {
	p.cloud.t.Helper()
	return p.send("PATCH", path, body)
}
func (p caller) delete(path string) answer { p.cloud.t.Helper(); return p.send("DELETE", path, "") }

// book makes a reservation.
func (p caller) book(body string) v1.Reservation {
	p.cloud.t.Helper()
	return want[v1.Reservation](p.cloud.t, p.post("/v1/reservations", body), http.StatusCreated)
}

// want returns the body of an answer that must have this status.
func want[T any](t reporter, a answer, status int) T {
	t.Helper()
	if a.status != status {
		t.Fatalf("want status %d, got %v", status, a)
	}
	return decode[T](t, a)
}

func decode[T any](t reporter, a answer) (body T) {
	t.Helper()
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatalf("the answer is not JSON: %v: %v", err, a)
	}
	return body
}

func encode(t reporter, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	must(t, err)
	return string(raw)
}

// wantError returns the error of an answer that must have this status.
func wantError(t reporter, a answer, status int) v1.Error {
	t.Helper()
	return want[v1.ErrorAnswer](t, a, status).Error
}

type hostList []inventory.Host

func (l hostList) Hosts(context.Context) ([]inventory.Host, error) { return slices.Clone(l), nil }

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func must(t reporter, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
