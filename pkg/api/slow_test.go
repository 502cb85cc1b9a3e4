// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
)

// stalled is a client that does not read: each write to it waits until the test ends.
type stalled struct {
	*httptest.ResponseRecorder
	once    sync.Once
	writing chan struct{} // is closed at the first write
	ended   <-chan struct{}
}

func (s *stalled) Write(text []byte) (int, error) {
	s.once.Do(func() { close(s.writing) })
	<-s.ended
	return len(text), nil
}

// dripping is a body that does not come.
type dripping struct {
	once    sync.Once
	reading chan struct{} // is closed at the first read
	ended   <-chan struct{}
}

func (d *dripping) Read([]byte) (int, error) {
	d.once.Do(func() { close(d.reading) })
	<-d.ended
	return 0, io.ErrUnexpectedEOF
}

// A client that stops sending its request, or reading its answer, has no place among the requests that its project may
// have at once: another request of the project is answered.
func TestASlowClientKeepsNoPlaceInTheLine(t *testing.T) {
	for name, begin := range map[string]func(c *cloud, ended <-chan struct{}, requests *sync.WaitGroup) (stuck <-chan struct{}){
		"it does not read": func(c *cloud, ended <-chan struct{}, requests *sync.WaitGroup) <-chan struct{} {
			w := &stalled{ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{}), ended: ended}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/hosts", nil)
			r.Header.Set("X-Auth-Token", c.reader.token)
			requests.Go(func() { c.handler.ServeHTTP(w, r) })
			return w.writing
		},
		"it does not send": func(c *cloud, ended <-chan struct{}, requests *sync.WaitGroup) <-chan struct{} {
			body := &dripping{reading: make(chan struct{}), ended: ended}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reservations", body)
			r.ContentLength = 100
			r.Header.Set("X-Auth-Token", c.demo.token)
			requests.Go(func() { c.handler.ServeHTTP(httptest.NewRecorder(), r) })
			return body.reading
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{adjust: func(o *api.Options) { o.RequestsAtOnce, o.RequestTimeout = 1, 5*time.Second }})
			ctx, end := context.WithCancel(t.Context())
			var requests sync.WaitGroup
			defer requests.Wait()
			defer end()
			<-begin(c, ctx.Done(), &requests)
			if a := c.demo.ask(t, http.MethodGet, "/v1/hosts", ""); a.Code != http.StatusOK {
				t.Errorf("another request of the project is answered %d %s", a.Code, a.Body)
			}
		})
	}
}

// What waits for slow clients is bounded in bytes, for each caller and for all; beyond that, the caller's that has waited
// longest is given up, and the newest never is. The oracle is a list.
func TestWhatWaitsForSlowClientsIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most, mostOfAll, each = 400_000, 700_000, 16 << 10
		l := api.NewCarried(most, mostOfAll)
		type waiting struct {
			caller string
			number int
			bytes  int64
			done   func()
		}
		var open []waiting
		given := map[int]bool{}
		sum := func(caller string) (n int64) {
			for _, w := range open {
				if caller == "" || w.caller == caller {
					n += w.bytes
				}
			}
			return n
		}
		for number := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(open) > 0 && rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				open[i].done()
				open = slices.Delete(open, i, i+1)
				continue
			}
			w := waiting{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "caller"), number, rapid.Int64Range(0, 390_000).Draw(t, "bytes"), nil}
			w.done = l.Add(w.caller, w.bytes, func() { given[number] = true })
			w.bytes += each
			open = append(open, w)
			want := map[int]bool{}
			giveUp := func(caller string) {
				i := slices.IndexFunc(open, func(w waiting) bool { return w.caller == caller })
				want[open[i].number] = true
				open = slices.Delete(open, i, i+1)
			}
			for sum(w.caller) > most && open[len(open)-1].number == number && slices.IndexFunc(open, func(o waiting) bool { return o.caller == w.caller }) < len(open)-1 {
				giveUp(w.caller)
			}
			for sum("") > mostOfAll {
				largest := slices.MaxFunc([]string{"c", "b", "a"}, func(a, b string) int { return int(sum(a) - sum(b)) })
				giveUp(largest)
			}
			if !maps.Equal(want, given) {
				t.Fatalf("given up are %v, want %v", given, want)
			}
			clear(given)
		}
	})
}

// A client can name any number of addresses. Requests without a token, whatever their addresses, displace no request with one.
func TestWhatAddressesSendMakesNobodyElseGiveUp(t *testing.T) {
	const most, each = 1 << 20, 16 << 10
	l, given := api.NewCarried(most, most), map[string]int{}
	l.Add("project demo", 500_000, func() { given["project"]++ })
	for i := range 2 * most / each {
		l.Add(fmt.Sprint("address ", i), 1, func() { given["address"]++ })
	}
	if given["project"] != 0 || given["address"] == 0 {
		t.Errorf("given up are %v", given)
	}
}

// Bodies that have arrived are bounded too while their requests wait for their turn: of too many bytes, the oldest end.
// Visitors of the page without a token share the bound of their address.
func TestTheBodiesOfRequestsThatWaitForTheirTurnAreBounded(t *testing.T) {
	const mebibytes = 17 // a caller's may have 16
	for _, tc := range []struct{ caller, token, method, path string }{
		{"project demo", "demo/member", http.MethodPost, "/v1/reservations"},
		{"address 192.0.2.1", "", http.MethodGet, "/dashboard/session"},
		{"address 192.0.2.1", "", http.MethodPost, "/dashboard/session"},
	} {
		t.Run(tc.caller+" "+tc.method, func(t *testing.T) {
			c := start(t, setup{adjust: func(o *api.Options) {
				everything(o)
				o.RequestsAtOnce, o.RequestTimeout = 1, time.Hour
			}})
			must(t, c.handler.HoldLine(t.Context(), tc.caller))
			ctx, end := context.WithCancel(t.Context())
			var requests sync.WaitGroup
			defer requests.Wait()
			defer end()
			answers := make(chan int, mebibytes)
			for range mebibytes {
				requests.Go(func() {
					r := httptest.NewRequestWithContext(ctx, tc.method, tc.path, strings.NewReader(strings.Repeat(" ", 1<<20)))
					if tc.token != "" {
						r.Header.Set("X-Auth-Token", tc.token)
					}
					w := httptest.NewRecorder()
					c.handler.ServeHTTP(w, r)
					answers <- w.Code
				})
			}
			if got := <-answers; got != http.StatusServiceUnavailable {
				t.Errorf("the first answer is %d", got)
			}
		})
	}
}

// largestWrite is a client of a stream that notes the longest write.
type largestWrite struct {
	*httptest.ResponseRecorder
	most int
}

func (w *largestWrite) Write(text []byte) (int, error) {
	w.most = max(w.most, len(text))
	return len(text), nil
}

// A stream that resumes behind many large changes holds no more of them than a part, since its client may not read.
func TestAStreamHoldsFewBytesAtOnce(t *testing.T) {
	hosts := make([]inventory.Host, 100)
	for i := range hosts {
		hosts[i] = machine(fmt.Sprintf("%s-%03d", strings.Repeat("long", 25), i))
	}
	c := start(t, setup{hosts: hosts})
	first := httptest.NewRecorder()
	request := func() *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", nil)
		r.Header.Set("X-Auth-Token", c.admin.token) // sees the hosts before the start
		return r
	}
	c.handler.ServeHTTP(first, request())
	_, id, _ := bytes.Cut(first.Body.Bytes(), []byte("id: "))
	id, _, _ = bytes.Cut(id, []byte("\n"))
	for i := range int64(64) {
		c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 60, "quantity": 100}`, at(60*(i+1))))
	}
	again, w := request(), &largestWrite{ResponseRecorder: httptest.NewRecorder()}
	again.Header.Set("Last-Event-ID", string(id))
	c.handler.ServeHTTP(w, again)
	if one := 110 * len(hosts); w.most > 32<<10+one || w.most < 32<<10 {
		t.Errorf("the largest write has %d bytes, want 32 KiB and at most one event, %d bytes", w.most, one)
	}
}
