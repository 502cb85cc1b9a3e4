// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"

	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// crowded reports whether a request that failed with err may succeed with other hosts, or after the
// hosts have been read again.
func crowded(err error) bool {
	_, full := errors.AsType[*placing.ErrNoCapacity](err)
	return full || errors.Is(err, placing.ErrConcurrentUpdate)
}

// explained returns the last error of a request, with a message for the tenant.
func (t *task) explained(err error) error {
	_, stay := errors.AsType[eviction.Failure](err)
	switch {
	case crowded(err):
		return &fault.Error{Kind: fault.Conflict, Message: "others took the room on the hosts that were chosen, each time; try again", Err: err}
	case stay:
		return &fault.Error{Kind: fault.Conflict, Message: eviction.TimedOut, Err: err}
	case len(t.excluded) > 0 && fault.Is(err, fault.Conflict):
		return fault.New(fault.Conflict, "%s %s", fault.Of(err).Message, eviction.TimedOut)
	}
	return err
}

// forTenant returns the message of a fault as the reason that the tenant reads. It contains no
// messages of other services.
func forTenant(f *fault.Error) string {
	switch f.Kind {
	case fault.Conflict:
		return f.Message
	case fault.Unavailable:
		if f.Message == eviction.TimedOut {
			return f.Message
		}
		return "Placement did not grant it in time; try again later"
	}
	return "the scheduler has failed; ask the operator"
}
