package dispatch

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// pauses are the waits before each attempt at a claim: together longer than Placement
// takes to restart, each short beside what a caller waits (rpc_response_timeout).
var pauses = []time.Duration{0, 0, 200 * time.Millisecond, time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}

// callTime bounds one call, so that there is time for another.
const callTime = 20 * time.Second

// claim makes claims that take nothing from anybody.
func (t *task) claim(ctx context.Context, claims []placing.Claim) error {
	c := claiming{task: t, targets: targets(claims), claims: claims}
	return c.make(ctx)
}

// make makes the claims until Placement grants or refuses them. A claim is made again
// only when it is known what its instance has: what it has from before a move it keeps
// beside what is claimed, and what it has from a claim whose answer was lost is given up.
//
// It fails with a *staying where a victim has not got any more what it had.
func (c *claiming) make(ctx context.Context) error {
	if len(c.claims) == 0 {
		return nil
	}
	var err error
	for _, pause := range pauses {
		if pause > 0 && c.Wait(ctx, pause) != nil || ctx.Err() != nil {
			break
		}
		var over bool
		if over, err = c.attempt(ctx); over {
			return err
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return unanswered(err)
}

// unanswered is the fault of a request for which there was no time or no answer.
func unanswered(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "Placement did not grant it in time; try again later", Err: err}
}

func targets(claims []placing.Claim) []placing.Allocations {
	all := make([]placing.Allocations, len(claims))
	for i, claim := range claims {
		all[i] = claim.Allocations
	}
	return all
}

// claiming is the attempts at some claims.
type claiming struct {
	*task
	targets []placing.Allocations // what is to be had of the chosen hosts, by claim
	claims  []placing.Claim
	victims []victim // that give up what they have in the same transaction
	// look says that it has to be read first what the instances have by now.
	look bool
	// prepare is called when that was read, before it is claimed; nil does nothing.
	prepare func(ctx context.Context, unsure bool) error
	taken   int  // how often Placement said ErrTaken
	unsure  bool // an answer was lost
}

// attempt says whether it was the last, since the claims are granted or refused.
func (c *claiming) attempt(ctx context.Context) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if c.look {
		if granted, err := c.read(ctx); granted || err != nil {
			_, staying := errors.AsType[*staying](err)
			return granted || staying || refusal(err), err
		}
		if c.prepare != nil {
			if err := c.prepare(ctx, c.unsure); err != nil {
				return true, err
			}
		}
		c.look = false
	}
	if err = c.Claims.Claim(ctx, c.all()); err == nil {
		return true, nil
	}
	switch {
	case errors.Is(err, placing.ErrUnsent):
	case errors.Is(err, placing.ErrTaken):
		c.look = true
		c.taken++
	case refusal(err):
		return true, err
	default:
		c.look = true
		c.lose()
	}
	return false, err
}

// all are the claims of the newcomers, and those of the victims.
func (c *claiming) all() []placing.Claim {
	all := slices.Clone(c.claims)
	for _, v := range c.victims {
		all = append(all, v.claim)
	}
	return all
}

// lose remembers that the claims may have been granted, or may be yet.
func (c *claiming) lose() {
	c.unsure = true
	for _, v := range c.victims {
		if !slices.ContainsFunc(c.robbed, func(other victim) bool { return reflect.DeepEqual(other.claim, v.claim) }) {
			c.robbed = append(c.robbed, v)
		}
	}
	for _, claim := range c.claims {
		if !slices.ContainsFunc(c.lost, func(lost placing.Claim) bool { return reflect.DeepEqual(lost, claim) }) {
			c.lost = append(c.lost, claim)
		}
	}
}

// refusal says that a service has refused for good what it was asked. After anything
// else nobody knows.
func refusal(err error) bool {
	switch fault.Of(err).Kind {
	case fault.Unavailable, fault.Internal, fault.TooMany:
		return false
	}
	return true
}

// read makes the claims fit what their consumers have, or says that they have been
// granted.
func (c *claiming) read(ctx context.Context) (granted bool, err error) {
	has := make([]placing.Claim, len(c.claims))
	granted = len(c.lost) > 0
	for i, claim := range c.claims {
		if has[i], err = c.Claims.AllocationsOf(ctx, claim.Consumer); err != nil {
			return false, err
		}
		granted = granted && claim.Granted(has[i])
	}
	left, err := c.readVictims(ctx)
	if granted && left {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for i := range c.claims {
		c.rebase(&c.claims[i], c.targets[i], has[i])
	}
	return false, nil
}

// readVictims says whether all victims have given up what they had to. It fails with a *staying
// where one has something else by now, which another has chosen as well, or moves.
func (c *claiming) readVictims(ctx context.Context) (left bool, err error) {
	left = true
	var stays staying
	for _, v := range c.victims {
		has, err := c.Claims.AllocationsOf(ctx, v.ID)
		if err != nil {
			return false, err
		}
		left = left && v.claim.Granted(has)
		if has.Generation == nil || *has.Generation != *v.claim.Generation || !has.Allocations.Equal(v.claim.Before) {
			stays.add(v, "what it has in Placement has changed")
		}
	}
	return left, stays.orNil()
}

func (c *claiming) rebase(claim *placing.Claim, target placing.Allocations, has placing.Claim) {
	claim.Generation, claim.Before = has.Generation, has.Allocations
	if has.Generation == nil && c.abandoned() {
		claim.Generation = new(int64)
	}
	for _, lost := range c.lost {
		if lost.Consumer == claim.Consumer && lost.Granted(has) {
			claim.Before = lost.Before
		}
	}
	claim.Allocations = claim.Before.Doubled(target)
}

// abandoned says whether consumers that have nothing are to be taken for those whose
// first claim Placement has broken off: it keeps such a one, with generation 0, and shows
// nothing of it (placement/handlers/allocation.py inspect_consumers). A consumer whose
// first claim is under way is the same, so that it counts only when the others have
// failed for a while.
func (c *claiming) abandoned() bool { return c.taken > 2 && c.taken%2 == 1 }
