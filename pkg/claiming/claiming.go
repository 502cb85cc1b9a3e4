// SPDX-License-Identifier: Apache-2.0

// Package claiming claims resources in Placement for the instances of a request. It repeats a claim
// until Placement grants or refuses it, and collects the claims whose answers were lost, so that a
// ledger can roll them back.
package claiming

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// CallTimeout limits one call to Placement, so that there is time to repeat it.
const CallTimeout = 20 * time.Second

// Placement grants and releases claims; *placement.Client implements it.
type Placement interface {
	// Claim replaces the allocations of all consumers with those of their claims, in one
	// transaction. It fails with a *placing.ErrNoCapacity, placing.ErrConsumerChanged,
	// placing.ErrConcurrentUpdate or placing.ErrUnsent if Placement granted none. After any other
	// Unavailable fault Placement may have granted them, or may still grant them.
	Claim(ctx context.Context, claims []placing.Claim) error
	// AllocationsOf returns the allocations of a consumer; without a Generation if it has none.
	AllocationsOf(ctx context.Context, consumer string) (placing.Claim, error)
	// Release restores the allocations that consumers had before their claims. It skips consumers
	// that have changed since.
	Release(ctx context.Context, claims []placing.Claim) error
}

// Victim is an instance that releases allocations on Host in the transaction in which the
// preemptors get theirs. Its Claim contains the allocations that it keeps.
type Victim struct {
	Host  string        `json:"host"`
	Claim placing.Claim `json:"claim"`
}

// Unconfirmed contains the claims that Placement may have granted to a request, or may still grant,
// because its answers were lost.
type Unconfirmed struct {
	Claims  []placing.Claim
	Victims []Victim
	Records []string // ids of the stored records of evictions for the request
}

// add adds the claims of a transaction whose answer was lost, each once.
func (u *Unconfirmed) add(claims []placing.Claim, victims []Victim) {
	u.Claims, u.Victims = union(u.Claims, claims), union(u.Victims, victims)
}

// union returns all, and after them those of more that are not among all by reflect.DeepEqual.
func union[T any](all, more []T) []T {
	for _, one := range more {
		if !slices.ContainsFunc(all, func(other T) bool { return reflect.DeepEqual(other, one) }) {
			all = append(all, one)
		}
	}
	return all
}

// Granted removes all claims, and each victim whose consumer is that of one of the given victims.
// Call it after Placement has granted a later transaction: Placement can then no longer grant the
// earlier ones.
func (u *Unconfirmed) Granted(victims []Victim) {
	u.Claims = nil
	u.Victims = slices.DeleteFunc(slices.Clone(u.Victims), func(v Victim) bool {
		return slices.ContainsFunc(victims, func(other Victim) bool { return other.Claim.Consumer == v.Claim.Consumer })
	})
}

// EndHold ends the hold on the room of claims that Placement did not grant. If some are
// unconfirmed, their room stays in use, because Placement may still grant them.
func (u *Unconfirmed) EndHold(h *inventory.Hold) {
	if len(u.Claims) > 0 {
		h.Confirm()
	} else {
		h.Undo()
	}
}

// pauses are the waits before each attempt. Together they are longer than a restart of Placement
// takes; each is short compared with the caller's rpc_response_timeout.
var pauses = []time.Duration{0, 0, 200 * time.Millisecond, time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}

// Transaction is a set of claims that Placement grants together.
type Transaction struct {
	Placement Placement
	Wait      func(ctx context.Context, d time.Duration) error
	// Claims are the claims of the request's instances. Run changes them in place to what it sends:
	// an instance keeps the allocations that it had before a move.
	Claims  []placing.Claim
	Victims []Victim // release allocations in the same transaction
	// Unconfirmed collects the claims of the request whose answers were lost. If an instance has
	// allocations from such a claim, Run replaces them.
	Unconfirmed *Unconfirmed
	BeforeClaim func(ctx context.Context) error // called after each reading; its error ends Run; nil means none
	Lost        bool                            // an answer to this transaction was lost
	Changed     []string                        // ids of the victims of an ErrVictimsChanged

	targets   []placing.Allocations // on the chosen hosts, by claim
	reread    bool                  // read the consumers before the next attempt
	conflicts int                   // how often Placement returned ErrConsumerChanged
}

// ErrVictimsChanged is the error of a transaction if victims have different allocations than
// before: another request has chosen them too, or they are being moved.
var ErrVictimsChanged = errors.New("the allocations of victims have changed")

// Run sends the claims until Placement grants or refuses them. If an answer is lost, or Placement
// reports that a consumer has changed, Run reads the consumers' allocations, and sends the claims
// again unless the allocations show that they were granted.
//
// It fails with ErrVictimsChanged, with Placement's refusal, with the error of BeforeClaim, or with
// an Unavailable fault if the attempts or ctx end first.
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

// attempt sends the claims once. final is true if Placement granted or refused them.
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

// read adapts the claims to the present allocations of their consumers. granted is true if
// Placement has granted the claims already.
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

// readVictims reports whether the victims have only the allocations that their claims leave them.
// It fails with ErrVictimsChanged if a victim has neither these nor the ones that it had before.
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

// rebase changes the claim to target plus the present allocations of the consumer, without those
// that it has from an unconfirmed claim.
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

// brokenOff reports whether this attempt should treat consumers without allocations as consumers
// whose first claim Placement aborted: Placement keeps such a consumer with generation 0 and does
// not show it (placement/handlers/allocation.py inspect_consumers). A consumer whose first claim is
// in progress looks the same; therefore other attempts come first.
func (t *Transaction) brokenOff() bool { return t.conflicts > 2 && t.conflicts%2 == 1 }

// Refused reports whether err is a definite refusal. After any other error the service may have
// carried out the request.
func Refused(err error) bool {
	kind := fault.Of(err).Kind
	return kind != fault.Unavailable && kind != fault.Internal && kind != fault.TooMany
}

// TimedOut returns the fault of a request to which Placement has not answered in time.
func TimedOut(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "Placement did not grant it in time; try again later", Err: err}
}

// AllocationsOn returns the resources as allocations: each class at the provider of the host that
// has it. It omits amounts of zero, which Placement refuses, such as the disk of an instance that
// boots from a volume.
func AllocationsOn(h *inventory.HostState, resources map[string]int64) placing.Allocations {
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

// ResourcesOn returns the amounts that an instance has on the host, by resource class; nil if it
// has allocations elsewhere too, as during a move.
func ResourcesOn(h *inventory.HostState, has placing.Allocations) map[string]int64 {
	sum := map[string]int64{}
	for provider, amounts := range has {
		for class, amount := range amounts {
			if provider != h.Provider && provider != h.Stocks[class].Provider {
				return nil
			}
			sum[class] += amount
		}
	}
	return sum
}
