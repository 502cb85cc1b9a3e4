package inventory

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// mostPlans bounds how often Place plans. From its second plan on others wait, so that only
// readings and corrections that find less on the chosen hosts, and what is given back there,
// can spoil it.
const mostPlans = 10

// Place lets plan choose from the current states, and counts what it takes from then on. It
// returns the fault of plan, and holds nothing then; it returns an Unavailable fault before
// the first reading, when ctx ends while it waits, and when the hosts change faster than
// plan chooses.
//
// Plans are made side by side, each on states that do not change, so a plan that takes long
// delays nobody. A plan enters the board if its hosts still stand (States.Standing): since
// its states nobody has taken anything from them, and they are otherwise as they were. Then
// it might as well have been made now, since whether a host may be chosen depends on that
// host alone: plans that enter do not take more than there is, have no victim in common, and
// each has seen the instances that others have put on its hosts. What has changed on other
// hosts can only mean that there is a better one by now. A plan whose hosts do not stand is
// made again while other plans wait until it has entered: each plan is made in vain once at
// most because of others, however long it takes. Those who wait take turns by project. plan
// is thus called more than once, and only its last result counts.
//
// The caller has to call Settle or Undo: a hold counts until then, through all readings.
func (b *Board) Place(ctx context.Context, project string, plan func(*States) ([]Take, error)) (*Hold, error) {
	s := b.Load()
	if s == nil {
		return nil, fault.New(fault.Unavailable, "the hosts of the cloud have not been read yet; try again in a moment")
	}
	takes, err := plan(s)
	if err != nil {
		return nil, err
	}
	if err := b.entry.Enter(ctx, project); err != nil {
		return nil, outOfTime(err)
	}
	defer b.entry.Leave(project)
	for plans := 1; ; plans++ {
		if h := b.enter(s, takes); h != nil {
			return h, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, outOfTime(err)
		}
		if plans == mostPlans {
			return nil, fault.New(fault.Unavailable, "the hosts change faster than some of them can be chosen; try again in a moment")
		}
		s = b.Load()
		if takes, err = plan(s); err != nil {
			return nil, err
		}
	}
}

func outOfTime(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "others were being placed until the time was up; try again", Err: err}
}

// enter counts the takes, which were planned on s, if their hosts still stand. It returns
// nil where they do not.
func (b *Board) enter(s *States, takes []Take) *Hold {
	for {
		now := b.Load()
		takes, standing := now.Standing(s, takes)
		if !standing {
			return nil
		}
		claims := make([]*claim, len(takes))
		for i, t := range takes {
			claims[i] = &claim{host: now.Host(t.Host).Name, take: t}
		}
		if next := now.With(takes); b.replace(now, next, claims) {
			return &Hold{board: b, claims: claims}
		}
	}
}

// replace makes next, which is now with the claims, the current states. It is false where
// now are no longer the current ones.
func (b *Board) replace(now, next *States, claims []*claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Load() != now {
		return false
	}
	b.claims = append(b.claims, claims...)
	b.current.Store(next)
	return true
}

// Charge counts what instances get on hosts with these names, takes[i] on hosts[i], whether
// there is room or not: somebody else has decided it. The Host of the takes does not count.
// What is on a host that the states do not have counts once they have it.
func (b *Board) Charge(hosts []string, takes []Take) *Hold {
	h := &Hold{board: b, claims: make([]*claim, len(takes))}
	for i, t := range takes {
		h.claims[i] = &claim{host: hosts[i], take: t}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims = append(b.claims, h.claims...)
	b.layOn(hosts...)
	return h
}
