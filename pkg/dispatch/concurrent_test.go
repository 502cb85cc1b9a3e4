// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

// gate holds back the plans of a Planner.
type gate struct {
	dispatch.Planner
	// after is called with the number of earlier plans of the request.
	after func(request string, before int)

	mu    sync.Mutex
	plans map[string]int
}

func (g *gate) Draft(s *inventory.States, r *placing.Request, now span.Instant, draw func(n int) int) *scheduler.Draft {
	plan := g.Planner.Draft(s, r, now, draw)
	g.mu.Lock()
	before := g.plans[r.ID]
	g.plans[r.ID]++
	g.mu.Unlock()
	g.after(r.ID, before)
	return plan
}

// sideBySide returns a gate that holds every plan until this number of requests has planned once.
func sideBySide(planner dispatch.Planner, requests int) *gate {
	var all sync.WaitGroup
	all.Add(requests)
	return &gate{Planner: planner, plans: map[string]int{}, after: func(_ string, before int) {
		if before == 0 {
			all.Done()
			all.Wait()
		}
	}}
}

func TestRequestsOfAnAntiAffinityGroupAtTheSameTimeShareNoHost(t *testing.T) {
	const requests = 3
	var rows []inventory.HostState
	for i := range requests {
		rows = append(rows, inventory.HostState{Name: cloudtest.Host(i), Provider: cloudtest.Provider(i), Stocks: map[string]inventory.Stock{"VCPU": {Total: 64, Ratio: 1}}})
	}
	states, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	board := inventory.NewLiveState()
	board.Replace(board.BeginRead(), states, nil)
	pipeline := &scheduler.Pipeline{Filters: []filters.Filter{filters.Capacity{}, filters.ServerGroupAntiAffinity{}}}
	d := dispatch.New(withEvictor(dispatch.Options{
		Board: board, Planner: sideBySide(pipeline, requests), Placement: granting{}, Looker: unneeded{}, Decisions: unneeded{},
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}))
	members := []string{"a", "b", "c"}
	got := make([]string, requests)
	var all sync.WaitGroup
	for n, member := range members {
		all.Go(func() {
			placed, err := d.Place(t.Context(), &placing.Request{
				ID: "req-" + member, Instances: []string{member}, Resources: map[string]int64{"VCPU": 1},
				Group: &placing.Group{ID: "group", Policy: "anti-affinity", Members: members},
			})
			if err != nil {
				t.Error(err)
				return
			}
			got[n] = placed.Selections[0][0].Host.Name
		})
	}
	all.Wait()
	if slices.Sort(got); !slices.Equal(got, []string{cloudtest.Host(0), cloudtest.Host(1), cloudtest.Host(2)}) {
		t.Errorf("the instances are on %v", got)
	}
}

// A request waits while instances leave for another one, but not for the victims of a plan that
// was never carried out.
func TestNobodyWaitsForVictimsOfAPlanThatWasNotCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.NewCloud(4)
		c.Preemptible(cloudtest.Preemptible(0), 0, 2)
		b := cloudtest.New(t, c, cloudtest.Never)
		planned, taken := make(chan struct{}), make(chan struct{})
		b.Planner = &gate{Planner: cloudtest.FirstFit{}, plans: map[string]int{}, after: func(request string, before int) {
			if request == "evicts" && before == 0 {
				close(planned)
				<-taken
			}
		}}
		evicts := cloudtest.Request(3, "evicts")
		evicts.ID = "evicts"
		done := make(chan error)
		go func() {
			_, err := b.Place(context.Background(), evicts)
			done <- err
		}()
		<-planned
		b.Board.AddClaims([]string{cloudtest.Host(0)}, []inventory.Take{{Instance: "other", Resources: map[string]int64{"VCPU": 2}}})
		close(taken)
		if err := <-done; !fault.Is(err, fault.Conflict) {
			t.Errorf("the plan that came too late: %v", err)
		}
		begun := time.Now()
		if _, err := b.Place(t.Context(), cloudtest.Request(3, "next")); !fault.Is(err, fault.Conflict) || time.Since(begun) > 0 {
			t.Errorf("the next one, after %v: %v", time.Since(begun), err)
		}
	})
}

func TestWhoWaitsForPlansOfOthersEndsWithItsContext(t *testing.T) {
	b := cloudtest.Calm(t, 8)
	b.Decisions = unneeded{}
	ctx, end := context.WithCancel(t.Context())
	planned, again, taken := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b.Planner = &gate{Planner: cloudtest.FirstFit{}, plans: map[string]int{}, after: func(request string, before int) {
		switch {
		case request == "late":
			end()
		case before == 0:
			close(planned)
			<-taken
		case before == 1:
			close(again)
			<-ctx.Done()
		}
	}}
	done := make(chan error)
	go func() {
		_, err := b.Place(context.Background(), cloudtest.Request(1, "long"))
		done <- err
	}()
	<-planned
	b.Board.AddClaims([]string{cloudtest.Host(0)}, []inventory.Take{{Instance: "other", Resources: map[string]int64{"VCPU": 1}}})
	taken <- struct{}{}
	<-again
	late := cloudtest.Request(1, "late")
	late.ID = "late"
	if _, err := b.Place(ctx, late); !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
