package placing

import (
	"errors"
	"maps"
)

// Allocations are the amounts that a consumer has in Placement, by provider and
// resource class.
type Allocations map[string]map[string]int64

// Equal says that both are the same amounts of the same providers.
func (a Allocations) Equal(b Allocations) bool {
	return maps.EqualFunc(a, b, func(x, y map[string]int64) bool { return maps.Equal(x, y) })
}

// Doubled gives what an instance has while it moves without a migration's consumer for
// its source, as when it is evacuated: a, and target where a has nothing of the
// provider (nova/scheduler/client/report.py _move_operation_alloc_request).
func (a Allocations) Doubled(target Allocations) Allocations {
	both := Allocations{}
	maps.Copy(both, target)
	maps.Copy(both, a)
	return both
}

// Claim is what a consumer, an instance, has in Placement or is to have there.
type Claim struct {
	Consumer  string `json:"consumer"`
	ProjectID string `json:"project_id"`
	UserID    string `json:"user_id"`
	// Generation is the consumer's, as it was read before; nil where it is new, as one
	// is that has no allocations.
	Generation  *int64      `json:"generation"`
	Allocations Allocations `json:"allocations"`
	// Before is what it had, and what it keeps when the claim is released.
	Before Allocations `json:"before"`
}

// Granted says whether has, what the consumer has now, is what it got by the claim, and
// that nobody has written to it since: each time its generation grows by one
// (placement/objects/allocation.py _set_allocations). After a claim of nothing it has
// nothing, whoever has taken it away.
func (c Claim) Granted(has Claim) bool {
	if len(c.Allocations) == 0 {
		return has.Generation == nil
	}
	next := int64(1)
	if c.Generation != nil {
		next += *c.Generation
	}
	return has.Generation != nil && *has.Generation == next && has.Allocations.Equal(c.Allocations)
}

// Why claims are not granted; nothing has changed then.
var (
	// ErrUnsent says that Placement could not be asked.
	ErrUnsent = errors.New("Placement cannot be asked")
	// ErrTaken says that a consumer is not of the generation of its claim: it has
	// allocations of which the claim does not know.
	ErrTaken = errors.New("another has changed what the instance has in Placement")
	// ErrOvertaken says that too many others change the same providers at the same time.
	ErrOvertaken = errors.New("others claim resources of the same hosts at the same time")
)

// NoRoom says why Placement does not grant claims, too: a provider has not got what
// is claimed, or not in such portions, or does not exist any more.
type NoRoom struct {
	Provider string // empty where Placement does not say
}

func (e *NoRoom) Error() string {
	if e.Provider == "" {
		return "there is no room for what is claimed"
	}
	return "provider " + e.Provider + " has no room for what is claimed"
}
