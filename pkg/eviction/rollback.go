// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// retryPauses are the waits before the attempts at an immediate rollback.
var retryPauses = []time.Duration{0, 0, 200 * time.Millisecond, time.Second}

// rollback is what must be undone after a request or an eviction: claims that nobody uses, the
// reduced allocations of victims, and notices that were sent in vain.
type rollback struct {
	claims    []placing.Claim   // to be released where Placement has granted them
	victims   []claiming.Victim // whose allocations are restored where they still run
	until     time.Time         // until then Placement may still grant a claim
	ordered   map[string]bool   // victims that were ordered to leave
	restored  sync.Map          // ids of the victims that have their allocations again, or lost them to another request since
	full      bool              // Placement had no capacity for a restore
	unsure    bool              // an answer of Placement to the rollback was lost
	records   []string          // ids of its Records
	takenOver bool              // from a stopped replica
	notified  []string          // instances whose eviction notices are withdrawn
	noticeFor time.Time         // the time in these notices
	hold      *inventory.Hold   // of the restored claims, in the live state; nil for a rollback of another replica
}

// onlyClaims reports whether the rollback concerns only claims: neither victims nor a notice.
func (r *rollback) onlyClaims() bool { return len(r.victims) == 0 && r.noticeFor.IsZero() }

// rollBack releases the claims of the preemptors and restores those of the victims that still run,
// in one transaction. The ledger repeats what fails, and handles victims that leave at that moment.
// rollBack fails if preemptors may still have their claims, or may lose them later.
func (e *eviction) rollBack(ctx context.Context, victims []claiming.Victim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claiming.CallTimeout)
	defer cancel()
	r := &rollback{claims: e.Preemptors, victims: victims, until: e.evictor.Now().Add(late), ordered: map[string]bool{}}
	for id := range e.ordered {
		r.ordered[id] = true
	}
	var hosts []string
	var takes []inventory.Take
	for _, v := range e.Victims {
		back := maps.Clone(v.Instance.Holds)
		for class, kept := range claiming.ResourcesOn(v.On, v.claim.Allocations) {
			back[class] -= kept
		}
		hosts, takes = append(hosts, v.On.Name), append(takes, inventory.Take{Instance: v.Instance.ID, Resources: back})
	}
	r.hold = e.evictor.Board.AddClaims(hosts, takes) // no other request plans with what victims get back
	if last := len(e.Unconfirmed.Records) - 1; last >= 0 {
		r.records, e.Unconfirmed.Records = e.Unconfirmed.Records[last:], e.Unconfirmed.Records[:last:last]
	}
	var err error
	for _, pause := range retryPauses {
		if pause > 0 && e.evictor.Wait(ctx, pause) != nil {
			break
		}
		if _, err = e.evictor.Ledger.rollBack(ctx, r); err == nil || r.full {
			break
		}
	}
	if err != nil {
		e.evictor.Log.WarnContext(ctx, "could not restore the allocations of victims that were not evicted; retrying", "request", e.ID, "error", err)
	}
	switch {
	case r.unsure:
		err = cmp.Or(err, errUnsure) // or the late rollback would take what the preemptors claim next
	case err == nil || r.full:
		r.claims, err = nil, nil // the request goes on with them
	}
	e.evictor.Ledger.add(r)
	return err
}

// errUnsure is the error of a rollback if Placement's answer was lost.
var errUnsure = errors.New("the answer of Placement to a restored allocation was lost, so it may still be carried out")

// rollBack carries out the steps of a rollback that are possible now; done is true if none is left.
func (l *Ledger) rollBack(ctx context.Context, r *rollback) (done bool, err error) {
	defer func() {
		if done {
			r.endHold()
		}
	}()
	if r.takenOver {
		if built, err := l.isBuilt(ctx, r); built || err != nil {
			return built, err
		}
	}
	released, pending, err := l.releases(ctx, r.claims)
	if err != nil {
		return false, err
	}
	if len(r.victims) == 0 {
		if len(released) > 0 {
			if err := l.options.Placement.Release(ctx, r.claims); err != nil {
				return false, err
			}
			l.options.Log.InfoContext(ctx, "released claims that no caller knows of", "instances", consumers(released))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		r.claims = pending
		return true, nil
	}
	if len(released) > 0 {
		r.restored.Clear() // or Placement has granted the claim again, late
	}
	open, restored, gone, err := l.restorable(ctx, r)
	if err != nil {
		return false, err
	}
	all := slices.Concat(released, restored, gone)
	if len(all) == 0 {
		return open == 0, nil
	}
	err = l.claim(ctx, r, all)
	if _, full := errors.AsType[*placing.ErrNoCapacity](err); full {
		err = l.rollBackPartly(ctx, r, append(released, gone...), restored)
	}
	if err != nil {
		return false, err
	}
	for _, claim := range restored {
		r.restored.Store(claim.Consumer, true)
		l.options.Log.InfoContext(ctx, "restored the allocations of a victim that was not evicted", "instance", claim.Consumer)
	}
	return open == 0, nil
}

// claim sends claims, and records whether the answer was lost.
func (l *Ledger) claim(ctx context.Context, r *rollback, claims []placing.Claim) error {
	err := l.options.Placement.Claim(ctx, claims)
	r.unsure = r.unsure || err != nil && !claiming.Refused(err) && !errors.Is(err, placing.ErrUnsent)
	return err
}

// rollBackPartly restores, one by one, as many claims as there is capacity for. The others remain
// in the rollback.
func (l *Ledger) rollBackPartly(ctx context.Context, r *rollback, released, restored []placing.Claim) error {
	var refusal error
	for _, one := range restored {
		if err := l.claim(ctx, r, append(slices.Clip(released), one)); err != nil {
			refusal = err
			continue
		}
		released = nil
		r.restored.Store(one.Consumer, true)
	}
	if len(released) > 0 {
		if err := l.claim(ctx, r, released); err != nil {
			return err
		}
	}
	if _, full := errors.AsType[*placing.ErrNoCapacity](refusal); full && !r.full {
		r.full = true
		l.options.Log.ErrorContext(ctx, "others have claimed the room of instances that were not evicted: these run without their allocations until there is room",
			"instances", consumers(restored), "error", refusal)
	}
	return refusal
}

// consumers returns the ids of the claims' consumers.
func consumers(claims []placing.Claim) (ids []string) {
	for _, claim := range claims {
		ids = append(ids, claim.Consumer)
	}
	return ids
}

// releases returns, for the claims that Placement has granted, claims that restore what their
// consumers had before; and the claims that Placement may still grant.
func (l *Ledger) releases(ctx context.Context, claims []placing.Claim) (released, pending []placing.Claim, err error) {
	for _, claim := range claims {
		has, err := l.options.Placement.AllocationsOf(ctx, claim.Consumer)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case claim.Granted(has):
			if has.Allocations = claim.Before; !slices.Contains(consumers(released), claim.Consumer) {
				released = append(released, has)
			}
		case has.Allocations.Equal(claim.Before):
			pending = append(pending, claim)
		}
	}
	return released, pending, nil
}

// restorable returns two lists: claims that restore the victims that still run and have only what
// an eviction has left them, and claims that remove all allocations of victims that are gone. open
// is the number of victims about which Nova did not answer. A victim that was restored may have
// lost allocations again to another request.
func (l *Ledger) restorable(ctx context.Context, r *rollback) (open int, restored, gone []placing.Claim, err error) {
	for _, v := range r.victims {
		id := v.Claim.Consumer
		has, err := l.options.Placement.AllocationsOf(ctx, id)
		if err != nil {
			return 0, nil, nil, err
		}
		nothing, all := has.Generation == nil, has.Allocations.Equal(v.Claim.Before)
		switch {
		case !nothing && !all && !has.Allocations.Equal(v.Claim.Allocations):
			continue // Nova moves it, or another claim has reduced it
		case slices.Contains(consumers(slices.Concat(restored, gone)), id):
			continue
		}
		_, restoredBefore := r.restored.Load(id)
		_, there, err := l.options.locate(ctx, id, v.Host)
		if err != nil {
			open++
			there = true // a later sweep can still take its allocations away
			l.options.Log.WarnContext(ctx, "could not determine whether the victim is still running; retrying", "instance", id, "error", err)
		}
		switch {
		case there && !all && !restoredBefore:
			restored = append(restored, placing.Claim{
				Consumer: id, ProjectID: v.Claim.ProjectID, UserID: v.Claim.UserID, Generation: has.Generation, Allocations: v.Claim.Before,
			})
		case !there && !nothing:
			has.Allocations = nil
			gone = append(gone, has)
		}
		if !there && r.ordered[id] {
			delete(r.ordered, id)
			l.options.Log.WarnContext(ctx, "an instance was evicted for a request that failed", "instance", id, "project", v.Claim.ProjectID, "host", v.Host)
		}
	}
	return open, restored, gone, nil
}

// isBuilt reports whether Nova is building preemptors on the hosts of the victims: then the stopped
// replica had answered its caller, and only failed to delete the record.
func (l *Ledger) isBuilt(ctx context.Context, r *rollback) (bool, error) {
	for _, claim := range r.claims {
		now, err := l.options.Servers.Server(ctx, claim.Consumer)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return false, err
		}
		if err == nil && slices.ContainsFunc(r.victims, func(v claiming.Victim) bool { return v.Host == now.Host }) {
			return true, nil
		}
	}
	return false, nil
}

// deleteRecords deletes the records of a rollback that is done.
func (l *Ledger) deleteRecords(ctx context.Context, r *rollback) (done bool, err error) {
	for len(r.records) > 0 {
		if err := l.options.Records.EndEviction(ctx, r.records[0]); err != nil && !fault.Is(err, fault.Conflict) {
			return false, err
		}
		r.records = r.records[1:]
	}
	return true, nil
}

// endHold ends the hold on the room of a rollback that is done.
func (r *rollback) endHold() {
	if r.hold != nil {
		r.restored.Range(func(_, _ any) bool { r.hold.Confirm(); return false })
		r.hold.Undo() // does nothing after Settle: all victims are gone
	}
}

// withdraw withdraws the notices of a rollback. Those for which Nova does not answer remain in it;
// those that Nova refuses do not.
func (l *Ledger) withdraw(ctx context.Context, r *rollback) error {
	var errs []error
	for _, id := range slices.Clone(r.notified) {
		err := l.options.warn(ctx, Warning{Instance: inventory.Instance{ID: id}, Was: r.noticeFor})
		if fault.Is(err, fault.Unavailable) {
			errs = append(errs, err)
			continue
		}
		if err != nil {
			l.options.Log.WarnContext(ctx, "could not withdraw an eviction notice", "instance", id, "error", err)
		}
		r.notified = slices.DeleteFunc(r.notified, func(one string) bool { return one == id })
	}
	return errors.Join(errs...)
}
