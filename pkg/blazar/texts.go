// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// NotAllowed returns the error for a call that the policy rule does not allow; cause says why.
func NotAllowed(rule string, cause error) error {
	return &fault.Error{Kind: fault.Denied, Message: "Policy doesn't allow " + rule + " to be performed", Err: cause}
}

// NoLease returns the error for a lease that does not exist.
func NoLease(id string) error {
	return fault.New(fault.NotFound, "Object with {'lease_id': '%s'} not found", id)
}

// Refused returns the text of a refusal, which names fields where it is about host_properties. For lack
// of hosts or floating IPs it begins with Blazar's text. Since Blazar's clients print nothing else, it
// ends with the earliest start.
func Refused(r *reservation.Refusal, fields string) string {
	text := refused(r, fields)
	if r.EarliestStart != 0 {
		text += "; the earliest start is " + r.EarliestStart.String()
	}
	return text
}

// refused returns a refusal as Blazar's clients expect it. fields are the names that they use for
// host_properties.
func refused(r *reservation.Refusal, fields string) string {
	const text = "Not enough hosts available"
	message := strings.ReplaceAll(r.Message, "host_properties", fields)
	switch r.Constraint {
	case reservation.HostsInPool, reservation.HostsMatching, reservation.HostsFree:
		if rest, same := strings.CutPrefix(message, "not enough hosts available"); same {
			return text + rest
		}
		return text + ": " + message
	case reservation.FloatingIPsFree:
		return "N" + strings.TrimPrefix(message, "n")
	case reservation.MaxDuration:
		return "Lease duration must be less than or equal to the maximum lease duration: " + message
	}
	return message
}
