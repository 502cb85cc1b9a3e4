package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// choices is how often hosts are chosen for a request, anew whenever others have taken
	// the room on those before.
	choices = 10
	// patience is how often Placement may refuse a host to a request before the request
	// does without it: it is read anew each time, but not all that Placement minds shows.
	patience = 3
)

// task is one request while it is placed.
type task struct {
	*Dispatcher
	request   placing.Request
	decision  placing.Decision
	refusals  map[string]int // by host
	clarified bool
	reread    bool
	// lost are claims of which nobody knows whether they have been granted, or will be, and
	// robbed the victims that these would leave without what they have.
	lost   []placing.Claim
	robbed []victim
	// records are the ids of what Evictions has of the request.
	records []string
	// aside are instances that make no room for this request, with their hosts.
	aside map[string]string
	// ended is closed when an eviction of others has ended that was under way when hosts were
	// chosen last; nil where none was. until is how long it waits for such in all.
	ended <-chan struct{}
	until time.Time
}

// chosen is where the pipeline puts the instances, and who leaves for them.
type chosen struct {
	Placed
	victims []victim
	hold    *inventory.Hold
}

func (t *task) place(ctx context.Context) (Placed, error) {
	if t.request.Rebuild {
		return t.stay()
	}
	err := t.adopt(ctx)
	if err != nil {
		return Placed{}, err
	}
	for left := choices; left > 0; left-- {
		var c chosen
		t.ended = t.departures.next()
		if c, err = t.choose(ctx); err != nil {
			if t.clarify(ctx, err) {
				continue
			}
			if t.awaits(ctx, err) {
				left++
				continue
			}
			break
		}
		if err = t.carryOut(ctx, c); err == nil {
			t.owe(nil)
			return c.Placed, nil
		}
		stays, staying := errors.AsType[*staying](err)
		if !staying && !crowded(err) || ctx.Err() != nil {
			break
		}
		t.lookAt(ctx, c.hosts(err), err)
		if staying {
			t.putAside(ctx, stays)
		}
	}
	t.giveUp()
	return Placed{}, t.explained(err)
}

// giveUp leaves to Sweep what may have been claimed.
func (t *task) giveUp() {
	if len(t.robbed) > 0 {
		t.owe(t.lost)
		return
	}
	t.leave(t.lost)
	t.owe(nil)
}

// explained gives the tenant's words for why there is no place in the end.
func (t *task) explained(err error) error {
	_, staying := errors.AsType[*staying](err)
	switch {
	case crowded(err):
		return &fault.Error{Kind: fault.Conflict, Message: "others took the room on the hosts that were chosen, each time; try again", Err: err}
	case staying:
		return &fault.Error{Kind: fault.Conflict, Message: stayed, Err: err}
	case len(t.aside) > 0 && fault.Is(err, fault.Conflict):
		return fault.New(fault.Conflict, "%s %s", fault.Of(err).Message, stayed)
	}
	return err
}

// carryOut claims what was chosen, has its victims leave, and ends its hold, whatever
// happens.
func (t *task) carryOut(ctx context.Context, c chosen) (err error) {
	defer c.hold.Confirm() // which does nothing where it is ended
	if len(c.victims) > 0 {
		defer t.departures.end()
		return t.makeRoom(ctx, c)
	}
	if err = t.claim(ctx, c.claims); err != nil {
		t.drop(c.hold)
	}
	return err
}

// crowded says that other hosts, or a second look at the same, may help.
func crowded(err error) bool {
	_, full := errors.AsType[*placing.NoRoom](err)
	return full || errors.Is(err, placing.ErrOvertaken)
}

// drop ends a hold that was not claimed, so far as is known.
func (t *task) drop(h *inventory.Hold) {
	if len(t.lost) > 0 {
		h.Confirm()
	} else {
		h.Undo()
	}
}

// stay places instances that keep their host and what they have there.
func (t *task) stay() (Placed, error) {
	states := t.Board.Load()
	if states == nil {
		return Placed{}, fault.New(fault.Unavailable, "the hosts of the cloud have not been read yet; try again in a moment")
	}
	plan, err := t.plan(states)
	if err != nil {
		return Placed{}, err
	}
	var p Placed
	for _, pick := range plan.Picks {
		p.Selections = append(p.Selections, []Selection{{Host: states.Host(pick.Take.Host)}})
	}
	return p, nil
}

func (t *task) plan(states *inventory.States) (scheduler.Plan, error) {
	plan := t.Planner.Plan(states, &t.request, span.At(t.Now()), t.Draw)
	t.decision = plan.Decision
	if len(plan.Picks) == 0 {
		return plan, fault.New(fault.Conflict, "%s", cmp.Or(plan.Decision.Reason, "there is no host for it"))
	}
	return plan, nil
}

// choose plans on the board, which counts the plan from then on. The plan may be made
// several times; the promises that it is made by are read after the states that it is made
// on, each time.
func (t *task) choose(ctx context.Context) (c chosen, err error) {
	hold, err := t.Board.Place(ctx, t.request.ProjectID, func(states *inventory.States) (takes []inventory.Take, err error) {
		t.discard(c)
		c, takes, err = t.draft(states)
		return takes, err
	})
	if err != nil {
		t.discard(c)
		return chosen{}, err
	}
	c.hold = hold
	for i, selections := range c.Selections {
		if len(selections[0].Allocations) > 0 { // Placement keeps no consumer of nothing
			c.claims = append(c.claims, placing.Claim{
				Consumer: t.request.Instances[i], ProjectID: t.request.ProjectID, UserID: t.request.UserID,
				Allocations: selections[0].Allocations,
			})
		}
	}
	return c, nil
}

// draft makes a plan, with what it takes of the hosts. From then on others that find no room
// know that its victims leave, so that they wait for these as soon as the board counts it.
func (t *task) draft(states *inventory.States) (c chosen, takes []inventory.Take, err error) {
	if t.ended == nil {
		t.ended = t.departures.next()
	}
	plan, err := t.plan(states.WithProtected(t.stubborn.with(t.aside, t.Now())))
	if err != nil {
		return c, nil, err
	}
	var leave []int
	for _, pick := range plan.Picks {
		takes = append(takes, pick.Take)
		c.Selections = append(c.Selections, selected(states, pick))
		for n, instance := range pick.Victims.Instances {
			c.victims = append(c.victims, victim{Instance: *instance, on: states.Host(pick.Take.Host), cost: pick.Victims.Costs[n]})
			leave = append(leave, pick.Take.Host)
		}
	}
	if len(c.victims) > 0 {
		t.departures.begin()
	}
	return c, append(takes, t.rests(c, leave)...), nil
}

// discard forgets a draft that the board does not count.
func (t *task) discard(c chosen) {
	if len(c.victims) > 0 {
		t.departures.end()
	}
}

func selected(states *inventory.States, pick scheduler.Pick) []Selection {
	selections := make([]Selection, 0, 1+len(pick.Alternates))
	for _, host := range append([]int{pick.Take.Host}, pick.Alternates...) {
		h := states.Host(host)
		selections = append(selections, Selection{Host: h, Allocations: allocations(h, pick.Take.Resources)})
	}
	return selections
}

// allocations gives what resources are of which provider of the host. Placement takes
// no allocation of nothing, such as of the disk of an instance that boots from a volume.
func allocations(h *inventory.HostState, resources map[string]int64) placing.Allocations {
	all := placing.Allocations{}
	for class, amount := range resources {
		if amount <= 0 {
			continue
		}
		provider := cmp.Or(h.Stocks[class].Provider, h.Provider)
		if all[provider] == nil {
			all[provider] = map[string]int64{}
		}
		all[provider][class] = amount
	}
	return all
}

// hosts gives the names of the hosts that a refusal is about: where it names no
// provider, all that were chosen.
func (c chosen) hosts(refusal error) []string {
	full, named := errors.AsType[*placing.NoRoom](refusal)
	named = named && full.Provider != ""
	var names []string
	for _, s := range c.Selections {
		if named && s[0].Allocations[full.Provider] == nil {
			continue
		}
		if name := s[0].Host.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// clarify makes sure, before there is no place, that there is none: it reads the hosts
// anew on which there may be more room than there seems, and then all of them, each once.
// It says whether to choose again.
func (t *task) clarify(ctx context.Context, refusal error) bool {
	if !fault.Is(refusal, fault.Conflict) {
		return false
	}
	if hosts := t.Board.UncertainHosts(); !t.clarified && len(hosts) > 0 {
		t.clarified = true
		err := t.Looker.Look(ctx, hosts)
		if err == nil {
			return true
		}
		t.Log.WarnContext(ctx, "hosts could not be read anew", "hosts", hosts, "request", t.request.ID, "error", err)
	}
	if t.reread || t.Reread == nil {
		return false
	}
	t.reread = true
	if err := t.readings.afterNow(ctx, t.Reread); err != nil {
		t.Log.WarnContext(ctx, "the hosts could not be read anew", "request", t.request.ID, "error", err)
		return false
	}
	return true
}

// lookAt reads hosts anew that were refused. The request does without those that cannot
// be read, and those that are refused time and again.
func (t *task) lookAt(ctx context.Context, hosts []string, refusal error) {
	looked := t.Looker.Look(ctx, hosts)
	if looked != nil {
		t.Log.WarnContext(ctx, "hosts could not be read anew", "hosts", hosts, "request", t.request.ID, "error", looked)
	}
	for _, host := range hosts {
		if _, staying := errors.AsType[*staying](refusal); !staying && !errors.Is(refusal, placing.ErrOvertaken) {
			t.refusals[host]++
		}
		if looked != nil || t.refusals[host] >= patience {
			t.request.IgnoreHosts = append(slices.Clip(t.request.IgnoreHosts), host)
		}
	}
}
