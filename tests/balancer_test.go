// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/client"
)

// replicas is several almanacd and a balancer that knows their addresses.
type replicas struct {
	t        *testing.T
	settings [][]string // of each replica
	http     *http.Client
	booked   atomic.Int64 // bookings acknowledged to users

	mu      sync.Mutex
	running []*service // nil while one is down
	unwell  []bool     // by the health check, if balance runs
}

// startReplicas starts one almanacd for each list of settings.
func startReplicas(t *testing.T, settings ...[]string) *replicas {
	t.Helper()
	r := newReplicas(t, settings...)
	for i := range settings {
		r.start(i)
	}
	return r
}

// newReplicas returns replicas; the caller starts them.
func newReplicas(t *testing.T, settings ...[]string) *replicas {
	t.Helper()
	return &replicas{
		t: t, settings: settings, running: make([]*service, len(settings)), unwell: make([]bool, len(settings)),
		http: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

// lasts returns after length, or later if the replicas have acknowledged too few bookings by
// then, and at the end of ctx.
func (r *replicas) lasts(ctx context.Context, length time.Duration) {
	most := time.Now().Add(length + 10*time.Minute)
	for on := pass(ctx, length); on && r.booked.Load() < fewestBookings && time.Now().Before(most); {
		on = pass(ctx, time.Second)
	}
}

func (r *replicas) start(i int) {
	r.t.Helper()
	r.startOf(i, filepath.Join(commands, "almanacd"))
}

// startOf starts a replica of the version of program.
func (r *replicas) startOf(i int, program string) {
	r.t.Helper()
	s := serve(r.t, commandOf(context.WithoutCancel(r.t.Context()), program, newFolder(r.t, tenHosts), r.settings[i]...))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[i], r.unwell[i] = s, false
}

// kill ends one replica as a power failure would.
func (r *replicas) kill(i int) { r.leaves(i).kill() }

// stop ends one replica as a service manager would.
func (r *replicas) stop(i int) { r.leaves(i).stop(r.t) }

// leaves takes a replica out of those that run.
func (r *replicas) leaves(i int) *service {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.running[i]
	r.running[i] = nil
	return s
}

// client returns a client of the i-th replica, or of the next one that runs; it prefers a
// healthy one.
func (r *replicas) client(i int) *client.Client {
	return r.clientWith(nil, i)
}

// clientWith returns such a client for the caller with the token of Keystone that token returns; nil
// stands for a service without a Keystone.
func (r *replicas) clientWith(token func(context.Context) (string, error), i int) *client.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range 2 * len(r.running) {
		at := (i + n) % len(r.running)
		s := r.running[at]
		if s == nil || r.unwell[at] && n < len(r.running) {
			continue
		}
		c, err := client.New(client.Options{URL: s.url, HTTPClient: r.http, Token: token})
		if err != nil {
			r.t.Error(err)
		}
		return c
	}
	return nil
}

// balance checks the health of every replica once a second, as a balancer does, until ctx
// ends.
func (r *replicas) balance(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for i := range r.running {
		asking.Go(func() {
			for pass(ctx, time.Second) {
				if s := r.at(i); s != nil {
					r.judge(i, s, r.healthy(ctx, s))
				}
			}
		})
	}
}

func (r *replicas) healthy(ctx context.Context, s *service) bool {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/healthcheck", nil)
	if err != nil {
		r.t.Error(err)
		return false
	}
	answer, err := r.http.Do(ask)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// judge records the health of a replica unless another process has replaced it.
func (r *replicas) judge(i int, s *service, well bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[i] == s {
		r.unwell[i] = !well
	}
}

// at returns the i-th replica, or nil while it is down.
func (r *replicas) at(i int) *service {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[i]
}
