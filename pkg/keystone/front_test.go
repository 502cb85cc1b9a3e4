// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// front is a proxy in front of the real Keystone that counts, delays and refuses requests.
type front struct {
	*httptest.Server
	mu      sync.Mutex
	counts  map[string]int // "GET /v3/auth/tokens"
	last    http.Header    // of the last validation
	instead int            // answer with this status; 0 passes the request on
	cut     int            // so many answers end in their middle
	hold    chan struct{}  // requests wait while it is open; nil means no wait
}

func newFront(c *cloud) *front { return newFrontAt(c, "127.0.0.1:0") }

func newFrontAt(c *cloud, address string) *front {
	target, err := url.Parse(strings.TrimSuffix(c.url, "/v3"))
	if err != nil {
		c.t.Fatal(err)
	}
	f := &front{counts: make(map[string]int)}
	proxy := httputil.NewSingleHostReverseProxy(target)
	// The server of another test closes connections of the default transport when it closes.
	own := &http.Transport{}
	c.t.Cleanup(own.CloseIdleConnections)
	proxy.Transport = own
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.counts[r.Method+" "+r.URL.Path]++
		if r.Method == http.MethodGet {
			f.last = r.Header.Clone()
		}
		instead, hold := f.instead, f.hold
		isCut := f.cut > 0
		if isCut {
			f.cut--
		}
		f.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
				return
			}
		}
		if instead != 0 {
			w.Header().Set("Retry-After", "17")
			w.WriteHeader(instead)
			return
		}
		if isCut {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"token": {`)) // the client sees what happens
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	f.Listener.Close()
	if f.Listener, err = net.Listen("tcp", address); err != nil {
		c.t.Fatal(err)
	}
	f.Start()
	c.t.Cleanup(f.Close)
	return f
}

func (f *front) set(change func(f *front)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *front) validations() int { return f.count("GET /v3/auth/tokens") }
func (f *front) logins() int      { return f.count("POST /v3/auth/tokens") }

func (f *front) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[what]
}

// patience bounds every wait for a condition and every request to Keystone.
const patience = 2 * time.Minute

// await waits until Keystone has received this number of validations, awaitLogins until it has
// received this number of logins.
func (f *front) await(validations int)  { awaitCount(f.validations, validations) }
func (f *front) awaitLogins(logins int) { awaitCount(f.logins, logins) }

func awaitCount(count func() int, wanted int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for give := time.After(patience); count() < wanted; {
		select {
		case <-tick.C:
		case <-give:
			panic("nobody asks")
		}
	}
}
