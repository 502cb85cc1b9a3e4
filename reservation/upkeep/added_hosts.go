package upkeep

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// place is a host of a reservation.
type place struct{ reservation, host string }

// apart divides the steps: those to be done at once, and those with which a host joins
// a reservation that has begun. Its flavors are open, so such a host must be free first,
// as at a start.
func apart(steps []fence.Step, live []reservation.Reservation) (ready, joining []fence.Step) {
	begun := make(map[string]bool)
	for _, r := range live {
		begun[r.ID] = r.Status != reservation.Pending
	}
	for _, step := range steps {
		if step.Adds() && step.Host != "" && begun[step.Reservation] {
			joining = append(joining, step)
		} else {
			ready = append(ready, step)
		}
	}
	return ready, joining
}

// join does those of the steps whose hosts are in the fence and free of strangers, who
// are told to go as the rules say. The others are for a later time.
func (s *Steward) join(ctx context.Context, steps []fence.Step, live []reservation.Reservation) error {
	if len(steps) == 0 {
		return nil
	}
	layout, err := s.looks.fresh(ctx)
	if err != nil {
		return told(err, "look what lies on the cloud")
	}
	fenced := layout.Aggregates[fence.Aggregate].Hosts
	var asked []watch
	for i := range live {
		r := &live[i]
		if r.Status == reservation.Ending {
			continue
		}
		for _, host := range r.HostNames() {
			if slices.Contains(fenced, host) && slices.ContainsFunc(steps, func(step fence.Step) bool {
				return step.Reservation == r.ID && step.Host == host
			}) {
				asked = append(asked, watch{*r, host, nextClaim(r, host, s.Now())})
			}
		}
	}
	var mu sync.Mutex
	free := make(map[place]bool)
	failed := each(ctx, s.preparing, len(asked), func(i int) error {
		w := asked[i]
		found, err := s.challenge(ctx, w, live)
		mu.Lock()
		defer mu.Unlock()
		free[place{w.r.ID, w.host}] = err == nil && len(found) == 0
		return err
	})
	able := slices.DeleteFunc(slices.Clone(steps), func(step fence.Step) bool { return !free[place{step.Reservation, step.Host}] })
	if err := s.carryApart(ctx, able, live); err != nil {
		return err
	}
	return failed
}

// nextClaim is from when on the reservation has the host, of claims that are not over.
func nextClaim(r *reservation.Reservation, host string, now span.Instant) span.Instant {
	first := span.Forever
	for _, c := range r.Claims {
		if c.Host == host && now < c.Span.End {
			first = min(first, c.Span.Start)
		}
	}
	return first
}

// challenge asks who is on a host, and gives the strangers, who are told to go as the
// rules say.
func (s *Steward) challenge(ctx context.Context, w watch, live []reservation.Reservation) ([]inventory.Instance, error) {
	guests, err := s.Guests.On(ctx, w.host)
	if err != nil {
		return nil, told(fmt.Errorf("host %s: %w", w.host, err), "look who is on a host")
	}
	found := w.unwelcome(strangers(&w.r, w.host, guests, live, s.Now()), s.Now(), s.Rules)
	s.warn(ctx, w, found)
	s.evict(ctx, w, unpromised(found, w.host, live, s.Now()))
	return found, nil
}

// withhold takes the reservation's own off those of its hosts with which it does not
// start now and which are not known to be free: they may be back while it runs.
func (s *Steward) withhold(ctx context.Context, r reservation.Reservation, hosts []string) error {
	skipped := slices.DeleteFunc(r.HostNames(), func(host string) bool { return slices.Contains(hosts, host) })
	if len(skipped) == 0 {
		return nil
	}
	live := s.Promises.Live(always)
	occupied := make([]bool, len(skipped))
	_ = each(ctx, s.asking, len(skipped), func(i int) error {
		guests, err := s.Guests.On(ctx, skipped[i])
		occupied[i] = err != nil || len(strangers(&r, skipped[i], guests, live, s.Now())) > 0
		return nil
	})
	r.Claims = slices.DeleteFunc(slices.Clone(r.Claims), func(c reservation.Claim) bool {
		at := slices.Index(skipped, c.Host)
		return at >= 0 && occupied[at]
	})
	for i := range live {
		if live[i].ID == r.ID {
			live[i] = r
		}
	}
	layout, err := s.looks.fresh(ctx)
	if err != nil {
		return told(err, "look what lies on the cloud")
	}
	return s.carryAll(ctx, slices.DeleteFunc(s.differences(layout, live), func(step fence.Step) bool {
		at := slices.Index(skipped, step.Host)
		return step.Reservation != r.ID || step.Adds() || at < 0 || !occupied[at]
	}))
}
