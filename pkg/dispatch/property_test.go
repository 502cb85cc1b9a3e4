package dispatch_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Placement fails at any step, before or after it has done what it was asked, or does
// it when nobody waits any more; callers give up at any wait. In the end every instance
// has exactly what its callers were told.
func TestWhatNobodyWasToldOfIsReleasedAndAllElseStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCloud(rapid.SliceOfN(rapid.Int64Range(0, 6), 1, 4).Draw(t, "limits")...)
		trouble := rapid.IntRange(0, 9).Draw(t, "trouble")
		c.fate = func(call string) fate {
			if rapid.IntRange(0, 9).Draw(t, "trouble with the "+call) >= trouble {
				return fine
			}
			return rapid.SampledFrom([]fate{unsent, before, after, later}).Draw(t, "fate")
		}
		b := newBench(t, c, func() error {
			if rapid.IntRange(0, 9).Draw(t, "patience") == 0 {
				return context.DeadlineExceeded
			}
			return nil
		})
		told := map[string]placing.Allocations{}
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) {
				instances := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID[string]).Draw(t, "instances")
				r := request(rapid.Int64Range(1, 3).Draw(t, "VCPU"), instances...)
				for _, instance := range instances { // nobody evacuates an instance to where it is
					r.IgnoreHosts = slices.AppendSeq(r.IgnoreHosts, maps.Keys(b.on(instance)))
				}
				placed, err := b.Place(context.Background(), r)
				if err != nil {
					return
				}
				for i, instance := range instances {
					told[instance] = told[instance].WithSource(placed.Selections[i][0].Allocations)
				}
			},
			"carry out what was late": func(*rapid.T) { b.carryOut() },
			"sweep":                   func(*rapid.T) { _ = b.Sweep(context.Background()) }, // in vain, where Placement is away
			"": func(t *rapid.T) {
				for instance, allocations := range told {
					if has := c.consumers[instance].Allocations; !has.Equal(has.WithSource(allocations)) {
						t.Fatalf("%s has %v, its callers were told of %v", instance, has, allocations)
					}
				}
			},
		})
		b.carryOut()
		c.fate = func(string) fate { return fine }
		for range 2 {
			if err := b.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
			c.now = c.now.Add(time.Hour)
		}
		for consumer, claim := range c.consumers {
			if !claim.Allocations.Equal(told[consumer]) {
				t.Errorf("%s has %v, its callers were told of %v", consumer, claim.Allocations, told[consumer])
			}
		}
		calls := len(c.calls)
		if err := b.Sweep(context.Background()); err != nil || len(c.calls) > calls {
			t.Errorf("something is still to be swept: %v, error %v", c.calls[calls:], err)
		}
	})
}

// carryOut does what Placement was asked before.
func (c *cloud) carryOut() {
	for _, claims := range c.late {
		_ = c.grant(claims) // or not, if it is too late: nobody is told
	}
	c.late = nil
}

// Placement and Nova fail at any step, instances do not leave, leave late or are locked,
// and callers give up at any wait. In the end all that run have what they had, those that
// have gone were told to, and every caller has what he was told of.
func TestWhoDoesNotMakeRoomKeepsWhatItHad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(1, 3).Draw(t, "hosts")
		c := newCloud(slices.Repeat([]int64{4}, hosts)...)
		had := map[string]placing.Allocations{}
		var bound []string // who must not go
		for n := range 2 * hosts {
			id := preemptible(n)
			s := c.preemptible(id, n/2, 2)
			s.takes = rapid.SampledFrom([]time.Duration{0, time.Second, 59 * time.Second, 2 * time.Minute, time.Hour}).Draw(t, "takes")
			had[id] = c.consumers[id].Allocations
			if rapid.IntRange(0, 4).Draw(t, "bound") == 0 {
				s.Protected, bound = true, append(bound, id)
			}
		}
		trouble := rapid.IntRange(0, 5).Draw(t, "trouble")
		c.fate = func(call string) fate {
			if rapid.IntRange(0, 9).Draw(t, "trouble with the "+call) >= trouble {
				return fine
			}
			return rapid.SampledFrom([]fate{unsent, before, after, later}).Draw(t, "fate")
		}
		b := newBench(t, c, func() error {
			if rapid.IntRange(0, 19).Draw(t, "patience") == 0 {
				return context.DeadlineExceeded
			}
			return nil
		})
		var since time.Duration // that anything has been late
		c.passes = func(d time.Duration) {
			if since += d; since > 30*time.Second {
				c.carryOut()
				since = 0
			}
			if s := c.servers[preemptible(rapid.IntRange(0, 8*hosts).Draw(t, "who is locked"))]; s != nil && s.Task == "" {
				s.Locked = !s.Locked
			}
			c.pass(d)
		}
		told, next := map[string]placing.Allocations{}, 0
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) {
				var instances []string
				for range rapid.IntRange(1, 2).Draw(t, "instances") {
					next++
					instances = append(instances, fmt.Sprint("new ", next))
				}
				placed, err := b.Place(context.Background(), request(rapid.Int64Range(1, 4).Draw(t, "VCPU"), instances...))
				if err != nil {
					return
				}
				for i, instance := range instances {
					told[instance] = placed.Selections[i][0].Allocations
				}
			},
			"lock": func(t *rapid.T) {
				if s := c.servers[preemptible(rapid.IntRange(0, 2*hosts-1).Draw(t, "of"))]; s != nil && s.Task == "" {
					s.Locked = !s.Locked
				}
			},
			"others take what is free": func(t *rapid.T) {
				for p := range c.limit {
					if free := c.limit[p] - c.used(p); free > 0 {
						next++
						_ = c.grant([]placing.Claim{{Consumer: fmt.Sprint("other ", next), Allocations: placing.Allocations{p: {"VCPU": free}}}})
						told[fmt.Sprint("other ", next)] = placing.Allocations{p: {"VCPU": free}}
					}
				}
			},
			"carry out what was late": func(*rapid.T) { b.carryOut() },
			"pass":                    func(t *rapid.T) { c.passes(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second) },
			"sweep":                   func(*rapid.T) { _ = b.Sweep(context.Background()) }, // in vain, where a service is away
			"": func(t *rapid.T) {
				for instance, allocations := range told {
					if has := c.consumers[instance].Allocations; !has.Equal(allocations) {
						t.Fatalf("%s has %v, its caller was told of %v", instance, has, allocations)
					}
				}
				for id := range had {
					s := c.servers[id]
					if s == nil && slices.Contains(bound, id) || s != nil && s.wronged {
						t.Fatalf("%s was told to leave, though it is protected, locked or busy", id)
					}
				}
			},
		})
		b.carryOut()
		c.fate = func(string) fate { return fine }
		var err error
		for range 3 { // where a victim may belong to several it takes a second look
			err = b.Sweep(context.Background())
			c.pass(time.Hour)
		}
		if err != nil {
			t.Fatal(err)
		}
		for id, allocations := range had {
			if c.servers[id] == nil {
				allocations = nil
			}
			if has := c.consumers[id].Allocations; !has.Equal(allocations) {
				t.Errorf("%s has %v, want %v", id, has, allocations)
			}
		}
		for consumer := range c.consumers {
			if had[consumer] == nil && told[consumer] == nil {
				t.Errorf("%s has something of which nobody was told", consumer)
			}
		}
	})
}
