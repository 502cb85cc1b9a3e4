// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Meddler stands between a client and a service that speaks HTTP. It forwards requests and answers
// unchanged, counts them, and answers wrongly on demand. If the service does not run, it ends
// connections without an answer.
//
// Patterns are those of http.ServeMux with a method or without: "GET /v2.1/os-aggregates/{id}",
// "/v2.1/servers/" for all below.
type Meddler struct {
	// URL is the service's with the Meddler's address: for an endpoint_override, or in place of
	// another URL.
	URL string

	proxy *httputil.ReverseProxy
	ended chan struct{}

	mu    sync.Mutex
	calls []*call
	rules []*rule
}

// call is a request that has arrived; end is zero until it is answered.
type call struct {
	*http.Request
	begin, end time.Time
}

// Wrong is a wrong answer.
type Wrong func(m *Meddler, w http.ResponseWriter, r *http.Request)

type rule struct {
	pattern string
	wrong   Wrong
	left    int // negative for always
}

// Interpose starts a Meddler in front of a service. The end of the test stops it.
func Interpose(t testing.TB, target string) *Meddler {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	m := &Meddler{ended: make(chan struct{})}
	m.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			// The Host stays the Meddler's, so links in answers lead back here.
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		},
		Transport:    &http.Transport{DisableKeepAlives: true},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(func() {
		close(m.ended)
		server.Close()
	})
	m.URL = server.URL + to.Path
	return m
}

func (m *Meddler) serve(w http.ResponseWriter, r *http.Request) {
	noted, wrong := m.note(r)
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		noted.end = time.Now()
	}()
	if wrong != nil {
		wrong(m, w, r)
		return
	}
	m.proxy.ServeHTTP(w, r)
}

// note counts the request and returns the wrong answer for it, if any.
func (m *Meddler) note(r *http.Request) (*call, Wrong) {
	m.mu.Lock()
	defer m.mu.Unlock()
	noted := &call{Request: &http.Request{Method: r.Method, Host: r.Host, URL: r.URL, Header: r.Header.Clone()}, begin: time.Now()}
	m.calls = append(m.calls, noted)
	for _, rule := range slices.Backward(m.rules) {
		if rule.left != 0 && matches(rule.pattern, r) {
			rule.left--
			return noted, rule.wrong
		}
	}
	return noted, nil
}

func matches(pattern string, r *http.Request) bool {
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
	_, found := mux.Handler(r)
	return found != ""
}

// Meddle answers requests of the pattern wrongly from now on. If several patterns match, the last
// one counts.
func (m *Meddler) Meddle(pattern string, wrong Wrong) { m.MeddleTimes(-1, pattern, wrong) }

// MeddleTimes does so for the next times requests.
func (m *Meddler) MeddleTimes(times int, pattern string, wrong Wrong) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = append(m.rules, &rule{pattern, wrong, times})
}

// Relent forwards everything again. Requests that hang continue to hang.
func (m *Meddler) Relent() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = nil
}

// Count returns how many requests of the pattern have arrived.
func (m *Meddler) Count(pattern string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, call := range m.calls {
		if matches(pattern, call.Request) {
			n++
		}
	}
	return n
}

// Calls returns the requests that have arrived as "METHOD PATH?QUERY", in their order.
func (m *Meddler) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, call := range m.calls {
		all = append(all, call.Method+" "+call.URL.RequestURI())
	}
	return all
}

// Arrival is a request that has arrived, without its body. It can be sent again, through the Meddler.
type Arrival struct {
	*http.Request
	At, Answered time.Time // Answered is zero until then
}

// Since returns the requests that have arrived since then, in their order.
func (m *Meddler) Since(since time.Time) (all []Arrival) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, call := range m.calls {
		if !call.begin.Before(since) {
			to := *call.URL
			to.Scheme, to.Host = "http", call.Host
			all = append(all, Arrival{&http.Request{Method: call.Method, Host: call.Host, URL: &to, Header: call.Header.Clone()}, call.begin, call.end})
		}
	}
	return all
}

// Busy returns how many requests have arrived since then, and for how long the service was working
// on at least one of them.
func (m *Meddler) Busy(since time.Time) (requests int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	covered := since
	for _, call := range m.calls { // in the order of arrival
		if call.begin.Before(since) {
			continue
		}
		requests++
		end := call.end
		if end.IsZero() {
			end = time.Now()
		}
		if end.After(covered) {
			took += end.Sub(later(covered, call.begin))
			covered = end
		}
	}
	return requests, took
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Status answers with a status that the service did not send; it forwards nothing.
func Status(code int) Wrong {
	return func(_ *Meddler, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, http.StatusText(code), code)
	}
}

// Text answers 200 with any body, such as a page of a proxy or half a JSON document; it forwards
// nothing.
func Text(body string) Wrong {
	return func(_ *Meddler, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body) // the client may be gone
	}
}

// Hang does not answer until the client or the test ends.
func Hang(m *Meddler, _ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then the end of the client is visible
	select {
	case <-r.Context().Done():
	case <-m.ended:
	}
	panic(http.ErrAbortHandler)
}

// Late forwards the request once proceed is closed.
func Late(proceed <-chan struct{}) Wrong {
	return func(m *Meddler, w http.ResponseWriter, r *http.Request) {
		select {
		case <-proceed:
		case <-m.ended:
		}
		m.proxy.ServeHTTP(w, r)
	}
}

// Cut ends the connection without an answer; it forwards nothing.
func Cut(*Meddler, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Lose forwards the request and loses the answer.
func Lose(m *Meddler, _ http.ResponseWriter, r *http.Request) {
	m.proxy.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}
