// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"runtime"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// mostPlans is the largest number of plans in one call of Place. From its second plan on, other
// plans wait, so that only readings, corrections and restored allocations on the chosen hosts can
// invalidate it.
const mostPlans = 10

// mostTries is how often a plan that can be repaired tries to enter before its call gets in line.
const mostTries = 3

// ErrNotRead is the error before the first reading of the hosts.
var ErrNotRead = fault.New(fault.Unavailable, "the hosts of the cloud have not been read yet; try again in a moment")

// Place calls plan with the current states and counts the allocations that it returns from then
// on. It returns the error of plan, and then holds nothing. It returns an Unavailable fault before
// the first reading, when ctx ends while it waits, and when the hosts change faster than plan
// chooses.
//
// Plans run in parallel, each on immutable states, so a slow plan delays nobody. A plan is
// accepted if its hosts are still as it saw them (States.Revalidate): nobody has taken anything
// from them since. It is then as good as a plan made now, because whether a host may be chosen
// depends on that host alone: accepted plans do not take more than there is, share no victim, and
// each has seen the instances that others have put on its hosts. A change of another host can only
// mean that a better one exists. A plan that is not accepted is made again while other plans wait,
// so other plans invalidate each plan at most once, however long it takes. Waiting plans take
// turns by project. Place therefore calls plan more than once; only the last result counts.
//
// repair returns the last plan as it is on newer states, or false if that is impossible; nil means
// that it always is. Place calls it before it calls plan again. As long as no other plan is in line, others
// need not wait for a repair; the few that enter just then can invalidate a plan that is made alone.
//
// The caller must call Confirm or Undo: until then the hold counts, through all readings.
func (b *LiveState) Place(
	ctx context.Context, project string, plan func(*States) ([]Take, error), repair func(*States) ([]Take, bool),
) (*Hold, error) {
	if repair == nil {
		repair = func(*States) ([]Take, bool) { return nil, false }
	}
	s := b.Load()
	if s == nil {
		return nil, ErrNotRead
	}
	takes, err := plan(s)
	if err != nil {
		return nil, err
	}
	for tries := 0; tries < mostTries && ctx.Err() == nil && b.entry.Empty(); tries++ {
		if h := b.accept(s, takes); h != nil {
			return h, nil
		}
		now := b.Load()
		repaired, possible := repair(now)
		if !possible {
			break
		}
		s, takes = now, repaired
	}
	if err := b.entry.Enter(ctx, project); err != nil {
		return nil, outOfTime(err)
	}
	defer b.leave(project)
	for plans := 1; ; plans++ {
		if h := b.accept(s, takes); h != nil {
			return h, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, outOfTime(err)
		}
		if plans == mostPlans {
			return nil, fault.New(fault.Unavailable, "the hosts change faster than Almanac can choose among them; try again in a moment")
		}
		s = b.Load()
		if repaired, possible := repair(s); possible {
			takes = repaired
		} else if takes, err = plan(s); err != nil {
			return nil, err
		}
	}
}

// leave lets the next plan enter, and its goroutine run: until it does, all others would come and wait.
func (b *LiveState) leave(project string) {
	b.entry.Leave(project)
	runtime.Gosched()
}

func outOfTime(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "other instances were being placed until the time was up; try again", Err: err}
}

// accept counts the allocations, which were planned on s, if their hosts have not changed since;
// otherwise it returns nil.
func (b *LiveState) accept(s *States, takes []Take) *Hold {
	for {
		now := b.Load()
		takes, standing := now.Revalidate(s, takes)
		if !standing {
			return nil
		}
		claims := make([]*claim, len(takes))
		for i, t := range takes {
			claims[i] = &claim{host: now.Host(t.Host).Name, take: t}
		}
		if next := now.WithTaken(takes); b.replaceCurrent(now, next, claims) {
			return &Hold{state: b, claims: claims}
		}
	}
}

// replaceCurrent makes next, which is now plus the claims, the current states. It returns false
// if now is no longer current.
func (b *LiveState) replaceCurrent(now, next *States, claims []*claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Load() != now {
		return false
	}
	b.claims = append(b.claims, claims...)
	b.current.Store(next)
	return true
}

// AddClaims counts takes[i] on the host named hosts[i], whether there is room or not, because it
// was decided elsewhere. The Host fields of takes are ignored. An allocation on an unknown host
// counts as soon as the host is known.
func (b *LiveState) AddClaims(hosts []string, takes []Take) *Hold {
	h := &Hold{state: b, claims: make([]*claim, len(takes))}
	for i, t := range takes {
		h.claims[i] = &claim{host: hosts[i], take: t}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims = append(b.claims, h.claims...)
	b.rebuildHosts(hosts...)
	return h
}
