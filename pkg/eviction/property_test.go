// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

// Placement and Nova fail at any step, instances stay, leave late or are locked, and callers stop
// waiting at any time. In the end all running instances have what they had, all that left were
// told to, and every caller has what it was told.
func TestWhoDoesNotMakeRoomKeepsWhatItHad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(1, 3).Draw(t, "hosts")
		c := cloudtest.NewCloud(slices.Repeat([]int64{4}, hosts)...)
		had := map[string]placing.Allocations{}
		var bound []string // preemptible instances that must not leave
		for n := range 2 * hosts {
			id := cloudtest.Preemptible(n)
			s := c.Preemptible(id, n/2, 2)
			s.Takes = rapid.SampledFrom([]time.Duration{0, time.Second, 59 * time.Second, 2 * time.Minute, time.Hour}).Draw(t, "takes")
			had[id] = c.Consumers[id].Allocations
			if rapid.IntRange(0, 4).Draw(t, "bound") == 0 {
				s.Protected, bound = true, append(bound, id)
			}
		}
		trouble := rapid.IntRange(0, 5).Draw(t, "trouble")
		c.Fate = func(call string) cloudtest.Fate {
			if rapid.IntRange(0, 9).Draw(t, "trouble with the "+call) >= trouble {
				return cloudtest.Fine
			}
			return rapid.SampledFrom([]cloudtest.Fate{cloudtest.Unsent, cloudtest.Before, cloudtest.After, cloudtest.Later}).Draw(t, "fate")
		}
		b := cloudtest.New(t, c, func() error {
			if rapid.IntRange(0, 19).Draw(t, "patience") == 0 {
				return context.DeadlineExceeded
			}
			return nil
		})
		var since time.Duration // since anything was late
		c.Passes = func(d time.Duration) {
			if since += d; since > 30*time.Second {
				c.CarryOut()
				since = 0
			}
			if s := c.Servers[cloudtest.Preemptible(rapid.IntRange(0, 8*hosts).Draw(t, "who is locked"))]; s != nil && s.Task == "" {
				s.Locked = !s.Locked
			}
			c.Pass(d)
		}
		told, next := map[string]placing.Allocations{}, 0
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) {
				var instances []string
				for range rapid.IntRange(1, 2).Draw(t, "instances") {
					next++
					instances = append(instances, fmt.Sprint("new ", next))
				}
				placed, err := b.Place(context.Background(), cloudtest.Request(rapid.Int64Range(1, 4).Draw(t, "VCPU"), instances...))
				if err != nil {
					return
				}
				for i, instance := range instances {
					told[instance] = placed.Selections[i][0].Allocations
				}
			},
			"lock": func(t *rapid.T) {
				if s := c.Servers[cloudtest.Preemptible(rapid.IntRange(0, 2*hosts-1).Draw(t, "of"))]; s != nil && s.Task == "" {
					s.Locked = !s.Locked
				}
			},
			"others take what is free": func(t *rapid.T) {
				for p := range c.Limit {
					if free := c.Limit[p] - c.Used(p); free > 0 {
						next++
						_ = c.Grant([]placing.Claim{{Consumer: fmt.Sprint("other ", next), Allocations: placing.Allocations{p: {"VCPU": free}}}})
						told[fmt.Sprint("other ", next)] = placing.Allocations{p: {"VCPU": free}}
					}
				}
			},
			"carry out what was late": func(*rapid.T) { b.CarryOut() },
			"pass":                    func(t *rapid.T) { c.Passes(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second) },
			"sweep":                   func(*rapid.T) { _ = b.Sweep(context.Background()) }, // fails while a service is away
			"": func(t *rapid.T) {
				for instance, allocations := range told {
					if has := c.Consumers[instance].Allocations; !has.Equal(allocations) {
						t.Fatalf("%s has %v, its caller was told %v", instance, has, allocations)
					}
				}
				for id := range had {
					s := c.Servers[id]
					if s == nil && slices.Contains(bound, id) || s != nil && s.Wronged {
						t.Fatalf("%s was told to leave, though it is protected, locked or busy", id)
					}
				}
			},
		})
		b.CarryOut()
		c.Fate = func(string) cloudtest.Fate { return cloudtest.Fine }
		var err error
		for range 3 { // a victim of several evictions needs a second look
			err = b.Sweep(context.Background())
			c.Pass(time.Hour)
		}
		if err != nil {
			t.Fatal(err)
		}
		for id, allocations := range had {
			if c.Servers[id] == nil {
				allocations = nil
			}
			if has := c.Consumers[id].Allocations; !has.Equal(allocations) {
				t.Errorf("%s has %v, want %v", id, has, allocations)
			}
		}
		for consumer := range c.Consumers {
			if had[consumer] == nil && told[consumer] == nil {
				t.Errorf("%s has an allocation that no caller was told", consumer)
			}
		}
	})
}
