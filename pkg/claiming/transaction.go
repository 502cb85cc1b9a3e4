package claiming

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/placing"
)

// pauses are the waits before each attempt. Together they are longer than a restart of
// Placement takes; each is short compared to the caller's rpc_response_timeout.
var pauses = []time.Duration{0, 0, 200 * time.Millisecond, time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}

// Transaction is a set of claims that Placement grants together.
type Transaction struct {
	Placement Placement
	Wait      func(ctx context.Context, d time.Duration) error
	// Claims are those of the request's instances. Run updates them in place to what it sends:
	// an instance keeps the allocations that it has from before a move.
	Claims []placing.Claim
	// Victims give up allocations in the same transaction.
	Victims []Victim
	// Unconfirmed collects the claims of the request whose answers were lost; Run tells by it
	// which allocations of an instance come from such a claim, and replaces these.
	Unconfirmed *Unconfirmed
	// BeforeClaim is called when Run has read the consumers, and ends Run where it fails; nil
	// is none.
	BeforeClaim func(ctx context.Context) error
	Lost        bool     // an answer to this transaction was lost
	Changed     []string // ids of the victims of an ErrVictimsChanged

	targets   []placing.Allocations // on the chosen hosts, by claim
	reread    bool                  // read the consumers before the next attempt
	conflicts int                   // how often Placement returned ErrConsumerChanged
}

// ErrVictimsChanged is the error of a transaction whose victims have other allocations than
// before: another request has chosen them as well, or they move.
var ErrVictimsChanged = errors.New("the allocations of victims have changed")

// Run sends the claims until Placement grants or refuses them. After a lost answer or a
// changed consumer it reads what the consumers have before it sends the claims again.
//
// It fails with ErrVictimsChanged, with Placement's refusal, with the error of BeforeClaim,
// or with an Unavailable fault where the attempts or ctx end first.
func (t *Transaction) Run(ctx context.Context) error {
	if len(t.Claims) == 0 {
		return nil
	}
	t.reread = len(t.Victims) > 0
	for _, claim := range t.Claims {
		t.targets = append(t.targets, claim.Allocations)
	}
	var err error
	for _, pause := range pauses {
		if pause > 0 && t.Wait(ctx, pause) != nil || ctx.Err() != nil {
			break
		}
		var final bool
		if final, err = t.attempt(ctx); final {
			return err
		}
	}
	return TimedOut(cmp.Or(err, ctx.Err()))
}

// attempt sends the claims once. final reports whether Placement granted or refused them.
func (t *Transaction) attempt(ctx context.Context) (final bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if t.reread {
		if granted, err := t.read(ctx); granted || err != nil {
			return granted || errors.Is(err, ErrVictimsChanged) || Refused(err), err
		}
		if t.BeforeClaim != nil {
			if err := t.BeforeClaim(ctx); err != nil {
				return true, err
			}
		}
		t.reread = false
	}
	all := slices.Clone(t.Claims)
	for _, v := range t.Victims {
		all = append(all, v.Claim)
	}
	if err = t.Placement.Claim(ctx, all); err == nil {
		return true, nil
	}
	switch {
	case errors.Is(err, placing.ErrUnsent):
	case errors.Is(err, placing.ErrConsumerChanged):
		t.reread = true
		t.conflicts++
	case Refused(err):
		return true, err
	default:
		t.reread, t.Lost = true, true
		t.Unconfirmed.add(t.Claims, t.Victims)
	}
	return false, err
}

// read adapts the claims to what their consumers have, or reports that Placement has granted
// them.
func (t *Transaction) read(ctx context.Context) (granted bool, err error) {
	has := make([]placing.Claim, len(t.Claims))
	granted = len(t.Unconfirmed.Claims) > 0
	for i, claim := range t.Claims {
		if has[i], err = t.Placement.AllocationsOf(ctx, claim.Consumer); err != nil {
			return false, err
		}
		granted = granted && claim.Granted(has[i])
	}
	reduced, err := t.readVictims(ctx)
	if granted && reduced {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for i := range t.Claims {
		t.rebase(&t.Claims[i], t.targets[i], has[i])
	}
	return false, nil
}

// readVictims reports whether the victims have only what their claims leave them. It fails
// with ErrVictimsChanged where one does not have what it had before.
func (t *Transaction) readVictims(ctx context.Context) (reduced bool, err error) {
	reduced = true
	for _, v := range t.Victims {
		has, err := t.Placement.AllocationsOf(ctx, v.Claim.Consumer)
		if err != nil {
			return false, err
		}
		reduced = reduced && v.Claim.Granted(has)
		if has.Generation == nil || *has.Generation != *v.Claim.Generation || !has.Allocations.Equal(v.Claim.Before) {
			t.Changed = append(t.Changed, v.Claim.Consumer)
		}
	}
	if len(t.Changed) > 0 {
		return reduced, ErrVictimsChanged
	}
	return reduced, nil
}

// rebase sets the claim to target beside what the consumer has, except what it has from an
// unconfirmed claim.
func (t *Transaction) rebase(claim *placing.Claim, target placing.Allocations, has placing.Claim) {
	claim.Generation, claim.Before = has.Generation, has.Allocations
	if has.Generation == nil && t.brokenOff() {
		claim.Generation = new(int64)
	}
	for _, lost := range t.Unconfirmed.Claims {
		if lost.Consumer == claim.Consumer && lost.Granted(has) {
			claim.Before = lost.Before
		}
	}
	claim.Allocations = claim.Before.WithSource(target)
}

// brokenOff reports whether to treat consumers without allocations as those whose first claim
// Placement broke off: it keeps such a consumer with generation 0 and does not show it
// (placement/handlers/allocation.py inspect_consumers). A consumer whose first claim is under
// way looks the same, so that this comes after some other attempts.
func (t *Transaction) brokenOff() bool { return t.conflicts > 2 && t.conflicts%2 == 1 }
