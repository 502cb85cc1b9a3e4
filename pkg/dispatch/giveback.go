package dispatch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// debt is an eviction that has failed, or of which nobody knows whether Placement has it:
// its newcomers lose what they have by it, and its victims get back what they had where
// they still run.
type debt struct {
	newcomers []placing.Claim
	victims   []victim
	until     time.Time       // when it is no longer looked for, if nothing is open
	told      map[string]bool // victims that were told to leave
	returned  map[string]bool // victims that have got it back, or have lost it to another request since
	refused   bool            // Placement had no room
	unsure    bool            // Placement may repay it late, from a request without an answer
	records   []string        // ids of what Evictions has of it
	taken     bool            // over, from a replica that is gone
	noticed   []string        // instances whose owners are to be told that they stay
	noticeFor time.Time       // when they were told that they have to go
	hold      *inventory.Hold // of what the victims get back, until they have it; nil of one that was taken over
}

// debts are those of a Dispatcher. One is repaid in the turn of the leftovers; the slices in
// them are replaced and never changed.
type debts struct {
	mu   sync.Mutex
	list []*debt
}

// owe leaves to Sweep what is known of evictions of the request in the end.
func (t *task) owe(newcomers []placing.Claim) {
	if len(t.robbed) == 0 && len(t.records) == 0 {
		return
	}
	t.debts.add(&debt{
		newcomers: newcomers, victims: t.robbed, until: t.Now().Add(lateBy), returned: map[string]bool{}, records: t.records,
	})
}

func (l *debts) add(b *debt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, b)
}

// giveBack ends an eviction that has failed: in one transaction victims that still run
// have what they had, and newcomers have not. What does not succeed at once Sweep goes on
// with, which also looks for victims that have gone all the same in that moment. It fails
// where newcomers may have it still, or lose it late.
func (e *eviction) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	b := &debt{
		newcomers: e.newcomers, victims: e.victims, until: e.Now().Add(lateBy),
		told: map[string]bool{}, returned: map[string]bool{}, hold: e.holdFor(e.victims),
	}
	for id := range e.ordered {
		b.told[id] = true
	}
	if last := len(e.records) - 1; last >= 0 {
		b.records, e.records = e.records[last:], e.records[:last:last]
	}
	var err error
	for _, pause := range pauses[:4] {
		if pause > 0 && e.Wait(ctx, pause) != nil {
			break
		}
		if _, err = e.repay(ctx, b); err == nil || b.refused {
			break
		}
	}
	if err != nil {
		e.Log.WarnContext(ctx, "instances that did not make room have not got back what they had in Placement; it is tried again",
			"request", e.request.ID, "error", err)
	}
	switch {
	case b.unsure:
		err = cmp.Or(err, errUnsure) // which would take from the newcomers what they claim now
	case err == nil || b.refused:
		b.newcomers, err = nil, nil // the request goes on with them
	}
	e.debts.add(b)
	return err
}

// errUnsure says that an answer of Placement was lost.
var errUnsure = errors.New("a request to give it back may be carried out late")

// holdFor counts on the board what victims get back, so that nobody here takes it
// meanwhile.
func (d *Dispatcher) holdFor(victims []victim) *inventory.Hold {
	hosts, takes := make([]string, len(victims)), make([]inventory.Take, len(victims))
	for n, v := range victims {
		back, left := maps.Clone(v.Holds), holds(v.on, v.claim.Allocations)
		for class := range back {
			back[class] -= left[class]
		}
		hosts[n], takes[n] = v.on.Name, inventory.Take{Instance: v.ID, Resources: back}
	}
	return d.Board.AddClaims(hosts, takes)
}

// settle ends the hold of a debt that is repaid.
func (l *debts) settle(b *debt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case b.hold == nil:
	case len(b.returned) > 0:
		b.hold.Confirm()
	default:
		b.hold.Undo() // all have gone
	}
}

// repay does what is to be done for a debt, and says whether nothing is open.
func (d *Dispatcher) repay(ctx context.Context, b *debt) (done bool, err error) {
	defer func() {
		if done {
			d.debts.settle(b)
		}
	}()
	d.debts.mu.Lock()
	newcomers := b.newcomers
	d.debts.mu.Unlock()
	if b.taken {
		if built, err := d.built(ctx, b); built || err != nil {
			return built, err
		}
	}
	released, err := d.releases(ctx, newcomers)
	if err != nil {
		return false, err
	}
	if len(released) > 0 {
		d.debts.clearReturned(b) // or the claim has been granted again, late
	}
	open, returned, gone, err := d.returns(ctx, b)
	if err != nil {
		return false, err
	}
	all := slices.Concat(released, returned, gone)
	if len(all) == 0 {
		return open == 0, nil
	}
	err = d.Claims.Claim(ctx, all)
	b.note(err)
	if _, full := errors.AsType[*placing.NoRoom](err); full {
		err = d.repayPartly(ctx, b, append(released, gone...), returned)
	}
	if err != nil {
		return false, err
	}
	d.debts.noteReturned(b, consumers(returned)...)
	for _, claim := range returned {
		d.Log.InfoContext(ctx, "an instance that did not make room has in Placement what it had", "instance", claim.Consumer)
	}
	return open == 0, nil
}

// repayPartly gives back as many claims as there is room for, one by one, and the others
// remain open.
func (d *Dispatcher) repayPartly(ctx context.Context, b *debt, released, returned []placing.Claim) error {
	var refusal error
	for _, one := range returned {
		if err := d.Claims.Claim(ctx, append(slices.Clip(released), one)); err != nil {
			b.note(err)
			refusal = err
			continue
		}
		released = nil
		d.debts.noteReturned(b, one.Consumer)
	}
	if len(released) > 0 {
		if err := d.Claims.Claim(ctx, released); err != nil {
			b.note(err)
			return err
		}
	}
	if _, full := errors.AsType[*placing.NoRoom](refusal); full && !b.refused {
		b.refused = true
		d.Log.ErrorContext(ctx, "others have taken the room of instances that did not leave: they run without what they need in Placement until there is room",
			"instances", consumers(returned), "error", refusal)
	}
	return refusal
}

// note remembers whether the answer to a request was lost.
func (b *debt) note(err error) {
	b.unsure = b.unsure || err != nil && !refusal(err) && !errors.Is(err, placing.ErrUnsent)
}

func consumers(claims []placing.Claim) (ids []string) {
	for _, claim := range claims {
		ids = append(ids, claim.Consumer)
	}
	return ids
}

// releases gives what the newcomers had before, of those that have what they claimed.
func (d *Dispatcher) releases(ctx context.Context, newcomers []placing.Claim) (back []placing.Claim, err error) {
	for _, claim := range newcomers {
		has, err := d.Claims.AllocationsOf(ctx, claim.Consumer)
		if err != nil {
			return nil, err
		}
		twice := slices.ContainsFunc(back, func(other placing.Claim) bool { return other.Consumer == claim.Consumer })
		if claim.Granted(has) && !twice {
			has.Allocations = claim.Before
			back = append(back, has)
		}
	}
	return back, nil
}

// returns gives what victims that still run had, where they have only what they were left,
// and what takes it away from those that have gone and have something all the same. open is
// of how many Nova does not tell which they are. What a victim has got back it may have lost
// again to another request.
func (d *Dispatcher) returns(ctx context.Context, b *debt) (open int, returned, gone []placing.Claim, err error) {
	for _, v := range b.victims {
		has, err := d.Claims.AllocationsOf(ctx, v.ID)
		if err != nil {
			return 0, nil, nil, err
		}
		nothing, all := has.Generation == nil, has.Allocations.Equal(v.claim.Before)
		switch {
		case !nothing && !all && !has.Allocations.Equal(v.claim.Allocations):
			continue // Nova moves it, or another claim has left it something else
		case slices.Contains(consumers(slices.Concat(returned, gone)), v.ID):
			continue
		}
		_, there, err := d.look(ctx, v)
		if err != nil {
			open++
			there = true // for all that is known: it can be taken away again
			d.Log.WarnContext(ctx, "nobody knows whether an instance that was to make room still runs; it is looked at again", "instance", v.ID, "error", err)
		}
		switch {
		case there && !all && !d.debts.returned(b, v.ID):
			returned = append(returned, placing.Claim{
				Consumer: v.ID, ProjectID: v.claim.ProjectID, UserID: v.claim.UserID, Generation: has.Generation, Allocations: v.claim.Before,
			})
		case !there && !nothing:
			has.Allocations = nil
			gone = append(gone, has)
		}
		if !there && b.told[v.ID] {
			delete(b.told, v.ID)
			d.Log.WarnContext(ctx, "an instance has made room for a request that has not got a place there after all", "instance", v.ID,
				"project", v.ProjectID, "host", v.on.Name)
		}
	}
	return open, returned, gone, nil
}

// sweepDebts repays what is open, and forgets what has been looked for long enough. Of two
// evictions of the same victim it is rather the last that Placement has.
func (d *Dispatcher) sweepDebts(ctx context.Context) error {
	d.debts.mu.Lock()
	all := slices.Clone(d.debts.list)
	d.debts.mu.Unlock()
	var errs []error
	for _, b := range slices.Backward(all) {
		errs = append(errs, d.sweepDebt(ctx, b))
	}
	return errors.Join(errs...)
}

func (d *Dispatcher) sweepDebt(ctx context.Context, b *debt) error {
	if err := d.withdraw(ctx, b); err != nil { // before the turn, for which requests wait
		return err
	}
	select {
	case <-d.leftovers.turn:
		defer func() { d.leftovers.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	done, err := d.repay(ctx, b)
	if done {
		done, err = d.forget(ctx, b)
	}
	if done && !d.Now().Before(b.until) {
		d.debts.mu.Lock()
		defer d.debts.mu.Unlock()
		d.debts.list = slices.DeleteFunc(d.debts.list, func(other *debt) bool { return other == b })
	}
	return err
}

// forget has it forgotten elsewhere, too, what is repaid.
func (d *Dispatcher) forget(ctx context.Context, b *debt) (done bool, err error) {
	for len(b.records) > 0 {
		if err := d.Evictions.EndEviction(ctx, b.records[0]); err != nil && !fault.Is(err, fault.Conflict) {
			return false, err
		}
		b.records = b.records[1:]
	}
	return true, nil
}

// takeOver makes the evictions of replicas that are gone debts of this one: nobody was
// told of them.
func (d *Dispatcher) takeOver(ctx context.Context) error {
	if d.Evictions == nil {
		return nil
	}
	list, err := d.Evictions.TakeEvictions(ctx)
	for _, e := range list {
		if !e.NoticeFor.IsZero() {
			d.debts.add(noticeDebt(e))
			d.Log.WarnContext(ctx, "a notice of an eviction by a replica that is gone is taken back", "eviction", e.ID)
			continue
		}
		b := &debt{
			newcomers: e.Newcomers, until: d.Now().Add(lateBy), returned: map[string]bool{}, records: []string{e.ID}, taken: true,
		}
		for _, v := range e.Victims {
			b.victims = append(b.victims, victim{
				Instance: inventory.Instance{ID: v.Claim.Consumer, ProjectID: v.Claim.ProjectID, Host: v.Host},
				on:       &inventory.HostState{Name: v.Host}, claim: v.Claim,
			})
		}
		d.debts.add(b)
		d.Log.WarnContext(ctx, "an eviction that a replica has left undone which is gone is undone", "eviction", e.ID)
	}
	return err
}

// built says that the newcomers of an eviction are on their way to the hosts of its victims:
// the replica that is gone has told of them, and only not forgotten it.
func (d *Dispatcher) built(ctx context.Context, b *debt) (bool, error) {
	for _, claim := range b.newcomers {
		now, err := d.Servers.Server(ctx, claim.Consumer)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return false, err
		}
		if err == nil && slices.ContainsFunc(b.victims, func(v victim) bool { return v.Host == now.Host }) {
			return true, nil
		}
	}
	return false, nil
}

// have says that a newcomer of a debt is one of the instances.
func (l *debts) have(instances []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, func(b *debt) bool {
		return slices.ContainsFunc(b.newcomers, func(claim placing.Claim) bool { return slices.Contains(instances, claim.Consumer) })
	})
}

// adopt gives the claims of the debts for the instances, and leaves them out there.
func (l *debts) adopt(instances []string) (claims []placing.Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.list {
		var others []placing.Claim
		for _, claim := range b.newcomers {
			if slices.Contains(instances, claim.Consumer) {
				claims = append(claims, claim)
			} else {
				others = append(others, claim)
			}
		}
		b.newcomers = others
	}
	return claims
}

// disclaim has victims that make room for another request by now get nothing back, unless
// the claim of a debt turns out to have been granted late.
func (l *debts) disclaim(victims []victim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.list {
		for _, v := range victims {
			b.returned[v.ID] = true
		}
	}
}

// owe says that an instance has only what an eviction has left it, which is still to give
// back the rest.
func (l *debts) owe(id string, has placing.Claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, func(b *debt) bool {
		return !b.returned[id] && slices.ContainsFunc(b.victims, func(v victim) bool {
			return v.ID == id && !has.Allocations.Equal(v.claim.Before) && has.Allocations.Equal(v.claim.Allocations)
		})
	})
}

// returned says whether a victim has got back what it had.
func (l *debts) returned(b *debt, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return b.returned[id]
}

// clearReturned says that victims of a debt may have lost what they had once more.
func (l *debts) clearReturned(b *debt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(b.returned)
}

// noteReturned says that victims have got back what they had.
func (l *debts) noteReturned(b *debt, ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		b.returned[id] = true
	}
}
