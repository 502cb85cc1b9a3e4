// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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
