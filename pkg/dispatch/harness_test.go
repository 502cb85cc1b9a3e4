package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// firstFit takes the first hosts with room, two others as alternates. Where there is none
// it takes the first on which preemptible instances, the first by their ids, make room.
type firstFit struct{}

func (firstFit) Plan(s *inventory.States, r *placing.Request, now span.Instant, _ func(int) int) scheduler.Plan {
	plan := scheduler.Plan{Decision: placing.Decision{RequestID: r.ID, Instances: r.Instances, Considered: s.Len()}}
	for _, instance := range r.Instances {
		fitting := slices.DeleteFunc(slices.Collect(s.All().All()), func(i int) bool { return !fits(s, i, r) })
		if pick, ok := evicting(s, instance, r); ok && len(fitting) == 0 {
			plan.Picks = append(plan.Picks, pick)
			plan.Decision.Placements = append(plan.Decision.Placements, placing.Placement{Instance: instance, Host: s.Host(pick.Take.Host).Name})
			s = s.WithTaken([]inventory.Take{pick.Take})
			continue
		}
		if len(fitting) == 0 {
			return scheduler.Plan{Decision: placing.Decision{RequestID: r.ID, Reason: "There is no room for all of them."}}
		}
		pick := scheduler.Pick{Take: inventory.Take{Host: fitting[0], Instance: instance, Resources: r.Resources}}
		pick.Alternates = fitting[1:min(3, len(fitting))]
		plan.Picks = append(plan.Picks, pick)
		plan.Decision.Placements = append(plan.Decision.Placements, placing.Placement{Instance: instance, Host: s.Host(fitting[0]).Name})
		s = s.WithTaken([]inventory.Take{pick.Take})
	}
	return plan
}

func evicting(s *inventory.States, instance string, r *placing.Request) (pick scheduler.Pick, ok bool) {
	for i := range s.All().All() {
		with, pick := s, scheduler.Pick{Take: inventory.Take{Host: i, Instance: instance, Resources: r.Resources}}
		for _, one := range s.InstancesOn(i) {
			if !one.Evictable() {
				continue
			}
			pick.Take.Victims, pick.Victims.Instances = append(pick.Take.Victims, one.ID), append(pick.Victims.Instances, &one)
			pick.Victims.Costs = append(pick.Victims.Costs, 1)
			with = with.WithTaken([]inventory.Take{{Host: i, Victims: []string{one.ID}}})
			if fits(with, i, r) {
				return pick, !r.Preemptible
			}
		}
	}
	return pick, false
}

func fits(s *inventory.States, i int, r *placing.Request) bool {
	for class, amount := range r.Resources {
		if c := s.Column(class); c.Used[i]+amount > c.Limit[i] {
			return false
		}
	}
	return !slices.Contains(r.IgnoreHosts, s.Host(i).Name)
}

// kept are the decisions.
type kept []placing.Decision

func (k *kept) Keep(d placing.Decision) { *k = append(*k, d) }

// cloud is a model of Placement that does what it is told to each call, and whose clock
// goes only when it is told to.
type cloud struct {
	limit     map[string]int64 // VCPU, by provider
	least     int64            // that a consumer can have of them
	consumers map[string]placing.Claim
	strays    map[string]bool   // consumers whose first claim was broken off
	late      [][]placing.Claim // claims that are carried out later, before any release at the latest
	now       time.Time
	calls     []string
	servers   map[string]*server // of Nova
	passes    func(time.Duration)
	// fate says what becomes of a call of the name: done, or not; and whether it is told.
	fate func(call string) fate
}

type fate int

const (
	fine   fate = iota
	unsent      // not done, as is known
	before      // not done, and no answer
	after       // done, and no answer
	later       // done later, and no answer
)

func newCloud(limits ...int64) *cloud {
	c := &cloud{
		limit: map[string]int64{}, consumers: map[string]placing.Claim{}, strays: map[string]bool{},
		now: time.Unix(1_900_000_000, 0), fate: func(string) fate { return fine },
		servers: map[string]*server{}, passes: func(time.Duration) {},
	}
	for i, limit := range limits {
		c.limit[provider(i)] = limit
	}
	return c
}

func provider(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
func host(i int) string     { return fmt.Sprintf("cmp-%03d", i) }

var away = fault.New(fault.Unavailable, "placement does not answer")

func (c *cloud) called(call string) fate {
	c.calls = append(c.calls, call)
	return c.fate(call)
}

func (c *cloud) Claim(ctx context.Context, claims []placing.Claim) error {
	switch c.called("claim") {
	case unsent:
		return fmt.Errorf("%w: %w", placing.ErrUnsent, away)
	case before:
		return away
	case later:
		c.late = append(c.late, slices.Clone(claims))
		return away
	case after:
		if err := c.grant(claims); err != nil {
			return err
		}
		return away
	}
	return c.grant(claims)
}

func (c *cloud) grant(claims []placing.Claim) error {
	for _, claim := range claims {
		has, exists := c.consumers[claim.Consumer]
		switch {
		case exists && (claim.Generation == nil || *claim.Generation != *has.Generation),
			!exists && c.strays[claim.Consumer] != (claim.Generation != nil && *claim.Generation == 0),
			!exists && claim.Generation != nil && *claim.Generation != 0:
			return fmt.Errorf("%w: %w", placing.ErrTaken, fault.New(fault.Conflict, "refused"))
		}
	}
	was := map[string]placing.Claim{}
	for consumer, claim := range c.consumers {
		was[consumer] = claim
	}
	for _, claim := range claims {
		generation := int64(1)
		if claim.Generation != nil {
			generation = *claim.Generation + 1
		}
		claim.Generation = &generation
		delete(c.strays, claim.Consumer)
		if c.consumers[claim.Consumer] = claim; len(claim.Allocations) == 0 {
			delete(c.consumers, claim.Consumer)
		}
	}
	for provider := range c.limit {
		odd := slices.ContainsFunc(claims, func(claim placing.Claim) bool {
			n := claim.Allocations[provider]["VCPU"]
			return n > 0 && n < c.least
		})
		if odd || c.used(provider) > c.limit[provider] {
			c.consumers = was
			return fmt.Errorf("%w: %w", &placing.NoRoom{Provider: provider}, fault.New(fault.Conflict, "refused"))
		}
	}
	return nil
}

func (c *cloud) used(provider string) (sum int64) {
	for _, claim := range c.consumers {
		sum += claim.Allocations[provider]["VCPU"]
	}
	return sum
}

func (c *cloud) AllocationsOf(_ context.Context, consumer string) (placing.Claim, error) {
	if c.called("read") != fine {
		return placing.Claim{}, away
	}
	has, exists := c.consumers[consumer]
	if !exists {
		return placing.Claim{Consumer: consumer}, nil
	}
	has.Before = nil
	return has, nil
}

func (c *cloud) Release(_ context.Context, claims []placing.Claim) error {
	fate := c.called("release")
	if fate == unsent || fate == before || fate == later {
		return away
	}
	c.carryOut()
	for _, claim := range claims {
		if has, exists := c.consumers[claim.Consumer]; exists && claim.Granted(has) {
			has.Allocations = claim.Before
			if err := c.grant([]placing.Claim{has}); err != nil {
				return err
			}
		}
	}
	if fate == after {
		return away
	}
	return nil
}

// bench is a Dispatcher on a cloud.
type bench struct {
	*cloud
	*dispatch.Dispatcher
	board     *inventory.LiveState
	decisions kept
	// seen gives how many VCPU host i seems to have.
	seen func(i int) int64
}

func newBench(t interface{ Fatal(...any) }, c *cloud, wait func() error) *bench {
	b := &bench{cloud: c, board: inventory.NewLiveState()}
	b.seen = func(i int) int64 { return b.limit[provider(i)] }
	mark := b.board.BeginRead()
	var rows []inventory.HostState
	for i := range len(c.limit) {
		rows = append(rows, inventory.HostState{
			Name: host(i), Node: host(i), Provider: provider(i), Stocks: b.stocks(i), Instances: b.instancesOn(i),
		})
	}
	states, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.board.Replace(mark, states, nil)
	b.Dispatcher = dispatch.New(dispatch.Options{
		Board: b.board, Planner: firstFit{}, Claims: c, Looker: b, Decisions: &b.decisions,
		Now: func() time.Time { return c.now }, Draw: func(int) int { return 0 },
		Servers: c, EvictionTimeout: time.Minute,
		Wait: func(_ context.Context, d time.Duration) error {
			c.passes(d)
			return wait()
		},
		Log: slog.New(slog.DiscardHandler),
	})
	return b
}

func never() error { return nil }

func (b *bench) stocks(i int) map[string]inventory.Stock {
	return map[string]inventory.Stock{"VCPU": {Provider: provider(i), Total: b.seen(i), Ratio: 1, Used: b.used(provider(i)), Min: b.least}}
}

// Look implements dispatch.Looker.
func (b *bench) Look(_ context.Context, hosts []string) error {
	if b.cloud.called("look") != fine {
		return away
	}
	for i := range len(b.limit) {
		if slices.Contains(hosts, host(i)) {
			b.board.CorrectHost(b.board.BeginRead(), host(i), b.stocks(i), b.holds(i))
		}
	}
	return nil
}

func request(vcpus int64, instances ...string) *placing.Request {
	return &placing.Request{
		ID: "req-1", ProjectID: "project", UserID: "user", Instances: instances,
		Resources: map[string]int64{"VCPU": vcpus}, Alternates: 2,
	}
}

func (b *bench) place(t *testing.T, r *placing.Request) dispatch.Placed {
	t.Helper()
	placed, err := b.Place(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return placed
}

// on gives the VCPU that a consumer has, by host.
func (b *bench) on(consumer string) map[string]int64 {
	all := map[string]int64{}
	for i := range len(b.limit) {
		if n := b.consumers[consumer].Allocations[provider(i)]["VCPU"]; n > 0 {
			all[host(i)] = n
		}
	}
	return all
}
