// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// maxRollbacks is the largest number of rollbacks in a ledger, which limits its memory to some MB.
const maxRollbacks = 10_000

// late is how long after its request has ended Placement, or a load balancer before it, may delay a
// claim and still grant it.
const late = time.Minute

// Ledger contains everything that must be rolled back: claims that Placement has granted, or may
// have granted, although no caller knows of them; reduced allocations of victims that were not
// evicted; and notices to the victims' owners. Rollbacks of evictions are stored as Records until
// they are done.
type Ledger struct {
	options *Options
	// turn is a lock: it contains a value while nobody carries out rollbacks or adopts claims.
	turn chan struct{}

	mu   sync.Mutex // guards the list, and the claims of rollbacks on it
	list []*rollback
}

func newLedger(o *Options) *Ledger {
	l := &Ledger{options: o, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// enter waits for the lock; leave releases it.
func (l *Ledger) enter(ctx context.Context) (leave func(), err error) {
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Schedule adds to the ledger, for Sweep, the unconfirmed claims of a request that has ended, or
// the claims of a request whose caller could not be reached.
func (l *Ledger) Schedule(u claiming.Unconfirmed) {
	if len(u.Claims)+len(u.Victims)+len(u.Records) == 0 {
		return
	}
	for _, claim := range u.Claims {
		l.options.Log.Warn("Placement may have granted a claim that no caller knows of; releasing it", "instance", claim.Consumer, "project", claim.ProjectID)
	}
	l.add(&rollback{claims: u.Claims, victims: u.Victims, records: u.Records, until: l.options.Now().Add(late)})
}

// scheduleNotice adds to the ledger the withdrawal of a notice.
func (l *Ledger) scheduleNotice(notice Record) {
	r := &rollback{noticeFor: notice.NoticeFor}
	if notice.ID != "" {
		r.records = []string{notice.ID}
	}
	for _, v := range notice.Victims {
		r.notified = append(r.notified, v.Claim.Consumer)
	}
	l.add(r)
}

// add enters a rollback. If there are too many, the oldest that only has claims is dropped, and logged.
func (l *Ledger) add(r *rollback) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r)
	if len(l.list) <= maxRollbacks {
		return
	}
	if oldest := slices.IndexFunc(l.list, (*rollback).onlyClaims); oldest >= 0 {
		l.options.Log.Error("claims may stay in Placement because too many must be released; find them with nova-manage placement audit",
			"instances", consumers(l.list[oldest].claims))
		l.list = slices.Delete(l.list, oldest, oldest+1)
	}
}

// Adopt removes the claims of these instances from the ledger and returns them to a request that
// claims for the same instances again.
func (l *Ledger) Adopt(ctx context.Context, instances []string) (u claiming.Unconfirmed, err error) {
	its := func(claim placing.Claim) bool { return slices.Contains(instances, claim.Consumer) }
	l.mu.Lock()
	found := slices.ContainsFunc(l.list, func(r *rollback) bool { return slices.ContainsFunc(r.claims, its) })
	l.mu.Unlock()
	if !found {
		return u, nil
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return u, claiming.TimedOut(err)
	}
	defer leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.list {
		r.claims = slices.DeleteFunc(slices.Clone(r.claims), func(claim placing.Claim) bool {
			if its(claim) {
				u.Claims = append(u.Claims, claim)
			}
			return its(claim)
		})
	}
	return u, nil
}

// restores reports whether an instance has only the allocations that an eviction has left it, and a
// rollback is going to restore the rest.
func (l *Ledger) restores(has placing.Claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, func(r *rollback) bool {
		_, restored := r.restored.Load(has.Consumer)
		return !restored && slices.ContainsFunc(r.victims, func(v claiming.Victim) bool {
			return v.Claim.Consumer == has.Consumer && !has.Allocations.Equal(v.Claim.Before) && has.Allocations.Equal(v.Claim.Allocations)
		})
	})
}

// dropRestores cancels the restoration of victims that now make room for another request. If
// Placement grants a claim of their rollback late, they are due again.
func (l *Ledger) dropRestores(victims []Victim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.list {
		for _, v := range victims {
			r.restored.Store(v.Instance.ID, true)
		}
	}
}

// Sweep carries out the rollbacks, the latest first: of two evictions of a victim, Placement more
// likely shows the later one. It is the step of a job, and returns the errors of Placement, Nova
// and the Records.
//
// It skips what has been changed by others since. For claims that Placement grants even later, or
// that were not swept before almanacd stopped, there is nova-manage placement audit; another
// replica takes over the evictions in the Records.
func (l *Ledger) Sweep(ctx context.Context) error {
	errs := []error{l.takeOver(ctx)}
	l.mu.Lock()
	all := slices.Clone(l.list)
	l.mu.Unlock()
	away := false
	for _, r := range slices.Backward(all) {
		if away && r.onlyClaims() {
			continue // these may be many
		}
		err := l.sweep(ctx, r)
		errs, away = append(errs, err), away || err != nil && r.onlyClaims()
	}
	return errors.Join(errs...)
}

// sweep carries a rollback out, and removes it when it is done and nobody may add to it any more.
func (l *Ledger) sweep(ctx context.Context, r *rollback) error {
	if err := l.withdraw(ctx, r); err != nil { // before the lock, for which requests wait
		return err
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	done, err := l.rollBack(ctx, r)
	if done {
		done, err = l.deleteRecords(ctx, r)
	}
	if done && (len(r.victims)+len(r.claims) == 0 || !l.options.Now().Before(r.until)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(l.list, func(other *rollback) bool { return other == r })
	}
	return err
}

// takeOver adds the unfinished evictions of stopped replicas to the ledger.
func (l *Ledger) takeOver(ctx context.Context) error {
	if l.options.Records == nil {
		return nil
	}
	list, err := l.options.Records.TakeEvictions(ctx)
	for _, e := range list {
		if !e.NoticeFor.IsZero() {
			l.options.Log.WarnContext(ctx, "withdrawing the eviction notices of a stopped replica", "eviction", e.ID)
			l.scheduleNotice(e)
			continue
		}
		l.options.Log.WarnContext(ctx, "rolling back an eviction left unfinished by a stopped replica", "eviction", e.ID)
		l.add(&rollback{
			claims: e.Preemptors, victims: e.Victims, until: l.options.Now().Add(late),
			records: []string{e.ID}, takenOver: true,
		})
	}
	return err
}
