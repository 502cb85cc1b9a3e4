// SPDX-License-Identifier: Apache-2.0

package placing

import (
	"strings"

	"github.com/google/uuid"
)

// IsUUID reports whether a text is a UUID in the form of OpenStack, with hyphens and in any
// case.
func IsUUID(text string) bool { return len(text) == 36 && uuid.Validate(text) == nil }

// LowerUUID returns a UUID in lower case, as Almanac and OpenStack store it. It returns any other
// text unchanged.
func LowerUUID(text string) string {
	if !IsUUID(text) {
		return text
	}
	return strings.ToLower(text)
}

// HintedReservations returns the ids of the reservations that the request's hint names; hinted is
// false if the request does not have the hint.
func (r *Request) HintedReservations() (ids []string, hinted bool) {
	values, hinted := r.Hints[ReservationHint]
	for _, value := range values {
		ids = append(ids, LowerUUID(value))
	}
	return ids, hinted
}
