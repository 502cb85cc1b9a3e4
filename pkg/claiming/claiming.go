// Package claiming claims resources in Placement for the instances of a request. It sends a
// claim again until Placement grants or refuses it, and keeps the claims whose answers were
// lost, so that a ledger can roll them back.
package claiming

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// CallTimeout bounds one call to Placement, so that there is time to repeat it.
const CallTimeout = 20 * time.Second

// Placement grants and releases claims; *placement.Client implements it.
type Placement interface {
	// Claim replaces the allocations of all consumers with those of their claims, in one
	// transaction. It fails with a *placing.ErrNoCapacity, placing.ErrConsumerChanged,
	// placing.ErrConcurrentUpdate or placing.ErrUnsent where Placement granted none. After any
	// other Unavailable fault Placement may have granted them, or may still grant them.
	Claim(ctx context.Context, claims []placing.Claim) error
	// AllocationsOf returns the allocations of a consumer, without a Generation where it has
	// none.
	AllocationsOf(ctx context.Context, consumer string) (placing.Claim, error)
	// Release restores what consumers had before their claims. It skips consumers that have
	// changed since.
	Release(ctx context.Context, claims []placing.Claim) error
}

// Victim is an instance that gives up allocations on Host in the transaction that grants
// others theirs. Its Claim holds what it keeps.
type Victim struct {
	Host  string
	Claim placing.Claim
}

// Unconfirmed is what Placement may have granted to a request, or may still grant, because
// its answers were lost.
type Unconfirmed struct {
	Claims  []placing.Claim
	Victims []Victim
	Records []string // ids of the stored records of evictions for the request
}

// add adds the claims of a transaction whose answer was lost, each once.
func (u *Unconfirmed) add(claims []placing.Claim, victims []Victim) {
	u.Claims, u.Victims = union(u.Claims, claims), union(u.Victims, victims)
}

func union[T any](all, more []T) []T {
	for _, one := range more {
		if !slices.ContainsFunc(all, func(other T) bool { return reflect.DeepEqual(other, one) }) {
			all = append(all, one)
		}
	}
	return all
}

// Granted forgets all claims, and the victims with these ids: Placement has granted a later
// transaction, so that the earlier ones can no longer be granted.
func (u *Unconfirmed) Granted(victims []Victim) {
	u.Claims = nil
	u.Victims = slices.DeleteFunc(slices.Clone(u.Victims), func(v Victim) bool {
		return slices.ContainsFunc(victims, func(other Victim) bool { return other.Claim.Consumer == v.Claim.Consumer })
	})
}

// EndHold ends the hold of claims that Placement did not grant: it may grant them yet where
// some are unconfirmed.
func (u *Unconfirmed) EndHold(h *inventory.Hold) {
	if len(u.Claims) > 0 {
		h.Settle()
	} else {
		h.Undo()
	}
}

// Refused reports whether err is a definite refusal. After any other error the service may
// have done what it was asked.
func Refused(err error) bool {
	switch fault.Of(err).Kind {
	case fault.Unavailable, fault.Internal, fault.TooMany:
		return false
	}
	return true
}

// TimedOut returns the fault of a request to which Placement has not answered in time.
func TimedOut(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "Placement did not grant it in time; try again later", Err: err}
}

// AllocationsOn returns resources by the provider of the host that has them. It leaves out
// zero amounts, which Placement refuses, such as the disk of an instance that boots from a
// volume.
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

// ResourcesOn returns the amounts that an instance has on the host, by resource class; nil
// where it has allocations elsewhere too, as during a move.
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
