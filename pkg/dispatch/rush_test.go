// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

// slowCloud is a cloud in which every call takes a random time before its effect and after it.
type slowCloud struct {
	*cloudtest.Model
	board         *inventory.LiveState
	calls, leaves time.Duration // the longest halves of a call; the longest time until an instance has left

	mu   sync.Mutex
	draw *rand.Rand
}

// pause takes a random time, shorter than most.
func (s *slowCloud) pause(most time.Duration) {
	s.mu.Lock()
	d := time.Duration(s.draw.Int64N(int64(most)))
	s.mu.Unlock()
	time.Sleep(d)
}

func (s *slowCloud) call(effect func()) {
	s.pause(s.calls)
	s.mu.Lock()
	effect()
	s.mu.Unlock()
	s.pause(s.calls)
}

func (s *slowCloud) Claim(ctx context.Context, claims []placing.Claim) (err error) {
	s.call(func() { err = s.Model.Claim(ctx, claims) })
	return err
}

func (s *slowCloud) AllocationsOf(ctx context.Context, consumer string) (has placing.Claim, err error) {
	s.call(func() { has, err = s.Model.AllocationsOf(ctx, consumer) })
	return has, err
}

func (s *slowCloud) Server(ctx context.Context, id string) (i inventory.Instance, err error) {
	s.call(func() { i, err = s.Model.Server(ctx, id) })
	return i, err
}

func (s *slowCloud) Release(ctx context.Context, claims []placing.Claim) (err error) {
	s.call(func() { err = s.Model.Release(ctx, claims) })
	return err
}

func (s *slowCloud) Warn(ctx context.Context, w eviction.Warning) (err error) {
	s.call(func() { err = s.Model.Warn(ctx, w) })
	return err
}

// Leave lets the instance leave after some time, and its allocations after some more.
func (s *slowCloud) Leave(ctx context.Context, i inventory.Instance) (err error) {
	s.call(func() { err = s.Model.Leave(ctx, i) })
	go func() {
		s.pause(s.leaves)
		s.call(func() { delete(s.Servers, i.ID) })
		s.call(func() { delete(s.Consumers, i.ID) })
	}()
	return err
}

func (s *slowCloud) stocks(i int) map[string]inventory.Stock {
	p := cloudtest.Provider(i)
	return map[string]inventory.Stock{"VCPU": {Provider: p, Total: s.Limit[p], Ratio: 1, Used: s.Used(p)}}
}

func (s *slowCloud) Look(_ context.Context, hosts []string) error {
	for i := range len(s.Limit) {
		if !slices.Contains(hosts, cloudtest.Host(i)) {
			continue
		}
		mark := s.board.BeginRead()
		var stocks map[string]inventory.Stock
		var holds map[string]map[string]int64
		s.call(func() { stocks, holds = s.stocks(i), s.Holds(i) })
		s.board.CorrectHost(mark, cloudtest.Host(i), stocks, holds)
	}
	return nil
}

// reread reads all hosts.
func (s *slowCloud) reread(context.Context) (err error) {
	mark := s.board.BeginRead()
	var rows []inventory.HostState
	for i := range len(s.Limit) {
		s.call(func() {
			h := inventory.HostState{Name: cloudtest.Host(i), Node: cloudtest.Host(i), Provider: cloudtest.Provider(i), Stocks: s.stocks(i)}
			for _, server := range s.Servers {
				if server.Host == h.Name {
					one := server.Instance
					one.Holds = s.Holds(i)[one.ID]
					h.Instances = append(h.Instances, one)
				}
			}
			rows = append(rows, h)
		})
	}
	states, err := inventory.NewStates(rows, nil)
	if err == nil {
		s.board.Replace(mark, states, nil)
	}
	return err
}

// newSlowCloud returns a cloud in which one preemptible instance fills each host, and which has been
// read.
func newSlowCloud(t *testing.T, seed uint64, limits ...int64) *slowCloud {
	t.Helper()
	s := &slowCloud{Model: cloudtest.NewCloud(limits...), board: inventory.NewLiveState(), draw: rand.New(rand.NewPCG(seed, 0))}
	for i, limit := range limits {
		s.Preemptible(cloudtest.Preemptible(i), i, limit)
	}
	speeds := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second}
	s.calls, s.leaves = speeds[s.draw.IntN(3)], speeds[s.draw.IntN(4)]
	if err := s.reread(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestARushThatFitsExactlyIsPlacedWholly(t *testing.T) {
	const hosts, each, rounds = 6, 3, 400
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlowCloud(t, seed, slices.Repeat([]int64{each}, hosts)...)
			log := slog.New(slog.DiscardHandler)
			d := dispatch.New(dispatch.Options{
				Board: s.board, Planner: cloudtest.FirstFit{}, Placement: claiming.NewGatherer(s), Looker: s, Reread: s.reread, Decisions: unneeded{},
				Evictor: eviction.New(eviction.Options{
					Board: s.board, Placement: s, Looker: s, Servers: s, Timeout: time.Minute, Now: time.Now, Log: log,
				}),
				Now: time.Now, Draw: func(int) int { return 0 }, Log: log,
			})
			var all sync.WaitGroup
			for n := range hosts * each {
				all.Go(func() {
					s.pause(3 * time.Second)
					if _, err := d.Place(t.Context(), cloudtest.Request(1, fmt.Sprint("rush-", n))); err != nil {
						t.Errorf("round %d, calls up to %v, leaving up to %v: rush-%d: %v", seed, s.calls, s.leaves, n, err)
					}
				})
			}
			all.Wait()
			time.Sleep(time.Minute) // until all preemptible instances have left
		})
	}
}
