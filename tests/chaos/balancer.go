// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
)

// Replicas is several almanacd and a balancer that knows their addresses.
type Replicas struct {
	T        *testing.T
	settings [][]string // of each replica
	HTTP     *http.Client
	booked   atomic.Int64 // bookings acknowledged to users

	mu      sync.Mutex
	Running []*built.Service // nil while one is down
	unwell  []bool           // by the health check, if balance runs
}

// StartReplicas starts one almanacd for each list of settings.
func StartReplicas(t *testing.T, settings ...[]string) *Replicas {
	t.Helper()
	r := NewReplicas(t, settings...)
	for i := range settings {
		r.Start(i)
	}
	return r
}

// NewReplicas returns replicas; the caller starts them.
func NewReplicas(t *testing.T, settings ...[]string) *Replicas {
	t.Helper()
	return &Replicas{
		T: t, settings: settings, Running: make([]*built.Service, len(settings)), unwell: make([]bool, len(settings)),
		HTTP: &http.Client{Timeout: built.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

// lasts returns after length, or later if the replicas have acknowledged too few bookings by
// then, and at the end of ctx.
func (r *Replicas) lasts(ctx context.Context, length time.Duration) {
	most := time.Now().Add(length + 10*time.Minute)
	for on := Pass(ctx, length); on && r.booked.Load() < FewestBookings && time.Now().Before(most); {
		on = Pass(ctx, time.Second)
	}
}

// Start starts a replica of the built version.
func (r *Replicas) Start(i int) {
	r.T.Helper()
	r.StartOf(i, filepath.Join(built.Commands(), "almanacd"))
}

// StartOf starts a replica of the version of program.
func (r *Replicas) StartOf(i int, program string) {
	r.T.Helper()
	s := built.Serve(r.T, built.CommandOf(context.WithoutCancel(r.T.Context()), program, built.NewFolder(r.T, built.TenHosts), r.settings[i]...))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Running[i], r.unwell[i] = s, false
}

// Kill ends one replica as a power failure would.
func (r *Replicas) Kill(i int) { r.leaves(i).Kill() }

// Stop ends one replica as a service manager would.
func (r *Replicas) Stop(i int) { r.leaves(i).Stop(r.T) }

// leaves takes a replica out of those that run.
func (r *Replicas) leaves(i int) *built.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.Running[i]
	r.Running[i] = nil
	return s
}

// Client returns a client of the i-th replica, or of the next one that runs; it prefers a
// healthy one.
func (r *Replicas) Client(i int) *client.Client {
	return r.ClientWith(nil, i)
}

// ClientWith returns such a client for the caller with the token of Keystone that token returns; nil
// stands for a service without a Keystone.
func (r *Replicas) ClientWith(token func(context.Context) (string, error), i int) *client.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range 2 * len(r.Running) {
		at := (i + n) % len(r.Running)
		s := r.Running[at]
		if s == nil || r.unwell[at] && n < len(r.Running) {
			continue
		}
		c, err := client.New(client.Options{URL: s.URL, HTTPClient: r.HTTP, Token: token})
		if err != nil {
			r.T.Error(err)
		}
		return c
	}
	return nil
}

// Balance checks the health of every replica once a second, as a balancer does, until ctx
// ends.
func (r *Replicas) Balance(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for i := range r.Running {
		asking.Go(func() {
			for Pass(ctx, time.Second) {
				if s := r.At(i); s != nil {
					r.judge(i, s, r.Healthy(ctx, s))
				}
			}
		})
	}
}

// Healthy reports whether a replica answers its health check with 200.
func (r *Replicas) Healthy(ctx context.Context, s *built.Service) bool {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/healthcheck", nil)
	if err != nil {
		r.T.Error(err)
		return false
	}
	answer, err := r.HTTP.Do(ask)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// judge records the health of a replica unless another process has replaced it.
func (r *Replicas) judge(i int, s *built.Service, well bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Running[i] == s {
		r.unwell[i] = !well
	}
}

// At returns the i-th replica, or nil while it is down.
func (r *Replicas) At(i int) *built.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Running[i]
}
