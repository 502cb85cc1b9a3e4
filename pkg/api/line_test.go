// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/reservation"
)

// holding is a reader whose lists wait until the test releases them.
type holding struct {
	reservation.Reader
	inside  atomic.Int64
	release chan struct{}
}

func (h *holding) List(ctx context.Context, _ reservation.Query) ([]reservation.Reservation, error) {
	h.inside.Add(1)
	defer h.inside.Add(-1)
	select {
	case <-h.release:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Almanac serves two requests of the project; its others wait, up to 256 of them. Other projects
// do not wait.
func TestSoManyRequestsOfAProjectAreServedAtOnce(t *testing.T) {
	reader := &holding{}
	c := start(t, setup{adjust: func(o *api.Options) { o.Reader, o.RequestsAtOnce = reader, 2 }})
	synctest.Test(t, func(t *testing.T) {
		reader.release = make(chan struct{})
		list := func(p caller) answer { return p.serve(t.Context(), http.MethodGet, "/v1/reservations", "") }
		var all sync.WaitGroup
		var served atomic.Int64
		for range 2 + 256 {
			all.Go(func() {
				if a := list(c.demo); a.status == http.StatusOK {
					served.Add(1)
				}
			})
		}
		synctest.Wait()
		if reader.inside.Load() != 2 {
			t.Errorf("%d are served at once, want 2", reader.inside.Load())
		}
		if a := list(c.demo); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" {
			t.Errorf("one more than may wait is answered %v, Retry-After %q", a, a.header.Get("Retry-After"))
		}
		for name, other := range map[string]caller{"another project": c.other, "an admin": c.admin} {
			if a := other.serve(t.Context(), http.MethodGet, "/v1/hosts", ""); a.status != http.StatusOK {
				t.Errorf("%s is answered %v", name, a)
			}
		}
		close(reader.release)
		all.Wait()
		if served.Load() != 2+256 {
			t.Errorf("%d were served in the end, want all 258", served.Load())
		}
	})
}

// A client that hangs up while it waits for another request is not served.
func TestWhoHangsUpLeavesTheLine(t *testing.T) {
	reader := &holding{}
	c := start(t, setup{adjust: func(o *api.Options) { o.Reader, o.RequestsAtOnce = reader, 1 }})
	synctest.Test(t, func(t *testing.T) {
		reader.release = make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { c.demo.serve(t.Context(), http.MethodGet, "/v1/reservations", "") })
		synctest.Wait()
		client, hangUp := context.WithCancel(t.Context())
		all.Go(func() {
			if a := c.demo.serve(client, http.MethodGet, "/v1/reservations", ""); a.status != http.StatusServiceUnavailable {
				t.Errorf("the client that hung up is answered %v", a)
			}
		})
		synctest.Wait()
		hangUp()
		synctest.Wait()
		close(reader.release)
		all.Wait()
	})
}
