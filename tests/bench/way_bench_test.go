// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/tests/built"
)

// BenchmarkNobodyIsInTheWay measures how long an ordinary client and /v1/scheduler/filter wait while others are in the
// way: connections that are idle or whose answers nobody reads, scrapes of the metrics, and one member that sends every
// request of the table of routes without a pause. The same run measures them alone; the ratios are against that.
// ALMANAC_BENCH_BEFORE names an almanacd of an earlier version, which is measured in the same way.
func BenchmarkNobodyIsInTheWay(b *testing.B) {
	programs := []string{filepath.Join(built.Commands(), "almanacd")}
	if before := os.Getenv("ALMANAC_BENCH_BEFORE"); before != "" {
		programs = append(programs, before)
	}
	for i, program := range programs {
		b.Run([]string{"this version", "the earlier version"}[i], func(b *testing.B) { benchmarkTheWay(b, program) })
	}
}

// wayHosts and wayReservations are the size of the cloud; each reservation has four hosts.
const wayHosts, wayReservations = 1000, 3000

func benchmarkTheWay(b *testing.B, program string) {
	s := built.Serve(b, built.CommandOf(context.WithoutCancel(b.Context()), program, built.NewFolder(b, hostsFile(wayHosts)),
		"OS_API__AUTH_STRATEGY=keystone", "OS_API__FEED_SECRET=secret", "OS_KEYSTONE_AUTHTOKEN__AUTH_URL="+tokensOf(b),
		"OS_KEYSTONE_AUTHTOKEN__USERNAME=almanac", "OS_KEYSTONE_AUTHTOKEN__PASSWORD=x", "OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME=service"))
	w := &way{s.URL, newWayClient()}
	w.fill(b)
	var alone map[string]time.Duration
	for _, row := range []struct {
		name  string
		loads []string
	}{
		{"alone", nil}, {"200 idle or unread connections", []string{"unread"}}, {"50 scrapes at once", []string{"scrapes"}},
		{"a member with any request", []string{"member"}},
		{"members of five projects with any request", []string{"members"}}, {"all of them", []string{"unread", "scrapes", "member"}},
	} {
		b.Run(row.name, func(b *testing.B) {
			stop := w.load(b, row.loads)
			p99 := w.measure(b)
			stop()
			if row.loads == nil {
				alone = p99
			}
			for route, took := range p99 {
				b.ReportMetric(float64(took.Microseconds())/1000, route+"-p99-ms")
				b.ReportMetric(float64(took)/float64(alone[route]), route+"-x")
			}
		})
	}
}

// way is a service with clients in each other's way.
type way struct {
	url    string
	client *http.Client
}

// loadOf is the variable of the environment with which this program sends loads instead of running tests: the address
// of the service and the names of the loads.
const loadOf = "ALMANAC_BENCH_LOAD_OF"

// load starts loads in a process of their own, with the lowest priority: other clients have machines of their own, so
// their work must not delay the client that is measured. The function that it returns ends them.
func (w *way) load(b *testing.B, loads []string) (stop func()) {
	if loads == nil {
		return func() {}
	}
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := exec.CommandContext(b.Context(), "nice", "-n", "19", program)
	c.Env = append(os.Environ(), loadOf+"="+strings.Join(append([]string{w.url}, loads...), " "))
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// sendLoads sends loads, in the form of loadOf, until the process ends.
func sendLoads(form string) {
	url, loads, _ := strings.Cut(form, " ")
	w := &way{url, newWayClient()}
	var all sync.WaitGroup
	for load := range strings.FieldsSeq(loads) {
		send := map[string]func(){"unread": w.unread, "scrapes": w.scrape, "member": func() { w.anything(1) }, "members": func() { w.anything(5) }}[load]
		all.Go(send)
	}
	all.Wait()
}

func newWayClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
}

// ask sends a request and reads its answer.
func (w *way) ask(ctx context.Context, token, method, path, body string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// fill books reservations of several projects over 90 days.
func (w *way) fill(b *testing.B) {
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for n := i; n < wayReservations; n += 8 {
				begin := time.Now().Add(time.Hour + time.Duration(n)*(90*24*time.Hour/wayReservations)).UTC().Truncate(time.Second)
				body := fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": "8h", "quantity": 4}`, begin.Format(time.RFC3339))
				if status, err := w.ask(b.Context(), fmt.Sprintf("p%d/member", n%5), "POST", "/v1/reservations", body); err != nil || status != http.StatusCreated {
					b.Errorf("book: %d %v", status, err)
					return
				}
			}
		})
	}
	clients.Wait()
}

// measure sends the two measured requests in turn, every ten milliseconds, and returns the 99th percentile of each.
func (w *way) measure(b *testing.B) map[string]time.Duration {
	var hosts []string
	for i := range 100 {
		hosts = append(hosts, fmt.Sprintf("host-%05d", i+1))
	}
	list, err := json.Marshal(map[string]any{"hosts": hosts, "request": map[string]any{"project_id": "ordinary"}})
	if err != nil {
		b.Fatal(err)
	}
	took := map[string][]time.Duration{}
	timed := func(name, token, method, path, body string) {
		begun := time.Now()
		if status, err := w.ask(b.Context(), token, method, path, body); err != nil || status != http.StatusOK {
			b.Fatalf("%s: %d %v", path, status, err)
		}
		took[name] = append(took[name], time.Since(begun))
	}
	next := time.NewTicker(10 * time.Millisecond)
	defer next.Stop()
	for b.Loop() {
		<-next.C
		timed("client", "ordinary/member", "GET", "/v1/hosts?limit=10", "")
		timed("filter", "service/service", "POST", "/v1/scheduler/filter", string(list))
	}
	p99 := map[string]time.Duration{}
	for name, list := range took {
		slices.Sort(list)
		p99[name] = list[len(list)*99/100]
	}
	return p99
}

// unread keeps 100 connections that send nothing, and 100 whose answers nobody reads; it opens those again that the
// service closes.
func (w *way) unread() {
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for {
				c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
				if err != nil {
					fmt.Fprintln(os.Stderr, "unread:", err)
					return
				}
				if i%2 == 0 { // more answers than the buffers of both ends take
					_ = c.(*net.TCPConn).SetReadBuffer(4096)
					_, _ = io.WriteString(c, strings.Repeat("GET /v1/hosts?limit=1000 HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: busy/member\r\n\r\n", 100))
				} else {
					_, _ = c.Read(make([]byte, 1)) // until the service closes it
				}
				closed(c)
				_ = c.Close()
			}
		})
	}
	all.Wait()
}

// closed waits until the service has closed a connection that it may not read: it sends one more byte of a request each
// second, which fails then.
func closed(c net.Conn) {
	for {
		if _, err := c.Write([]byte("G")); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// each sends requests with so many clients, each without a pause.
func each(clients int, ask func(client, n int)) {
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := i; ; n++ {
				ask(i, n)
			}
		})
	}
	all.Wait()
}

// scrape sends 50 scrapes at once, and again a tenth of a second after the last of them is answered.
func (w *way) scrape() {
	for ; ; time.Sleep(100 * time.Millisecond) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { _, _ = w.ask(context.Background(), "", "GET", "/metrics", "") })
		}
		all.Wait()
	}
}

// anything sends, with eight clients of the members of so many projects, the requests of the table of routes one after
// the other.
func (w *way) anything(projects int) {
	calls := api.Calls(api.Options{Blazar: &leases.Options{}, Dashboard: http.NotFoundHandler()})
	year := time.Now().UTC().AddDate(0, 2, 0).Format(time.RFC3339)
	more := map[string]string{ // what makes a call as large as it can be
		"POST /v1/reservations": "?dry_run=true", "GET /v1/reservations": "?limit=1000", "GET /v1/hosts": "?limit=1000",
		"GET /v1/availability": "?duration=1h&quantity=900&end=" + year, "GET /v1/calendar": "?limit=1000&end=" + year,
	}
	values := strings.NewReplacer(":id", "none", ":name", "host-00001", ":project_id", "busy", ":file", "none.ics", "*file", "none")
	each(8, func(client, n int) {
		call := calls[n%len(calls)]
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if call.Turn == "a stream" {
			ctx, stop = context.WithTimeout(ctx, 100*time.Millisecond)
			defer stop()
		}
		body := ""
		if call.Method != http.MethodGet {
			body = `{"name": "r", "duration": "8h", "quantity": 500}`
		}
		_, _ = w.ask(ctx, fmt.Sprintf("busy%d/member", client%projects), call.Method, values.Replace(call.Path)+more[call.Method+" "+call.Path], body)
	})
}

// tokensOf serves tokens in Keystone's form: PROJECT/ROLE is a token of a user with that role in that project. A real
// Keystone answers the few validations that the service does not remember, and takes a processor from it.
func tokensOf(b *testing.B) string {
	mux := http.NewServeMux()
	send := func(w http.ResponseWriter, status int, token string) {
		project, role, _ := strings.Cut(token, "/")
		domain := map[string]any{"id": "default", "name": "Default"}
		w.Header().Set("X-Subject-Token", token)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
			"user": map[string]any{"id": project + "-user", "name": project, "domain": domain}, "project": map[string]any{"id": project, "name": project, "domain": domain},
			"roles": []map[string]any{{"id": role, "name": role}, {"id": "reader", "name": "reader"}}, "methods": []string{"password"}, "audit_ids": []string{token},
			"issued_at": time.Now().UTC().Format(time.RFC3339), "expires_at": time.Now().UTC().Add(time.Hour).Format(time.RFC3339), "catalog": []any{},
		}})
	}
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, r *http.Request) {
		if raw, _ := io.ReadAll(r.Body); bytes.Contains(raw, []byte(`"almanac"`)) {
			send(w, http.StatusCreated, "service/service")
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("GET /v3/auth/tokens", func(w http.ResponseWriter, r *http.Request) { send(w, http.StatusOK, r.Header.Get("X-Subject-Token")) })
	keystone := httptest.NewServer(mux)
	b.Cleanup(keystone.Close)
	return keystone.URL + "/v3"
}
