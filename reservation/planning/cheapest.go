// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// This file has the policy cheapest, which chooses a start by the tariff.

// FallbackReason is why a start cannot be chosen by the tariff.
type FallbackReason string

// The reasons.
const (
	TariffMissing FallbackReason = "missing" // there is none, or it was never read
	TariffStale   FallbackReason = "stale"
	TariffShort   FallbackReason = "short" // it does not cover the requested window
	TariffImage   FallbackReason = "image" // the image cannot be on the hosts at the cheapest start
)

// FallbackReasons lists all reasons.
var FallbackReasons = []FallbackReason{TariffMissing, TariffStale, TariffShort, TariffImage}

// Fallback is why the policy first-fit has chosen a start instead of cheapest. Without a Reason it has not.
type Fallback struct {
	Reason FallbackReason
	Text   string // a sentence for the owner
}

// pricing is a search with a tariff.
type pricing struct{ *search }

func (s *search) pricing() pricing { return pricing{s} }

// chooses reports whether the tariff chooses among several starts.
func (s pricing) chooses() bool {
	return s.request.Policy == calendar.PolicyCheapest && s.query.Deadline > s.query.Window(s.query.Ready).End
}

// decide replaces the policy cheapest with first-fit if the tariff cannot tell which start is cheapest.
func (s pricing) decide() {
	if !s.chooses() {
		return
	}
	if reason, text := s.doubt(); reason != "" {
		s.fallBack(reason, text)
	}
}

func (s pricing) fallBack(reason FallbackReason, text string) {
	s.request.Policy = calendar.PolicyFirstFit
	s.fallback = Fallback{reason, fmt.Sprintf("%s instead of %s: %s", calendar.PolicyFirstFit, calendar.PolicyCheapest, text)}
}

// doubt returns why the tariff cannot tell which start of the query is cheapest; empty if it can.
func (s pricing) doubt() (FallbackReason, string) {
	known := s.view.Tariff
	switch {
	case known == nil:
		return TariffMissing, "there is no tariff now"
	case known.Stale(s.view.Now):
		return TariffStale, fmt.Sprintf("the tariff is from %v, which is more than %v ago", known.Written, period(known.MaxAge))
	}
	if end := known.Covered(s.query.Ready); end < s.query.Deadline {
		return TariffShort, fmt.Sprintf("the tariff has no price at %v, and the requested window lasts until %v", end, s.query.Deadline)
	}
	return "", ""
}

// cheapest returns the cheapest start of the parts of a query at which the limit on hosts is kept; false if none has room.
func (s pricing) cheapest(parts []calendar.Query, kept []span.Span) (span.Instant, bool) {
	return s.view.Tariff.Cheapest(func(yield func(span.Span) bool) {
		for _, part := range parts {
			starts := s.view.Calendar.StartsWithin(part, kept)
			if s.request.Kind == reservation.Instances {
				starts = s.view.Calendar.SliceStartsWithin(s.slices(part), kept)
			}
			for run := range starts {
				if !yield(run) {
					return
				}
			}
		}
	}, s.query.Duration)
}

// withImage returns the start that was found or, if the image cannot be on the hosts at the cheapest one, the first.
func (s pricing) withImage(start span.Instant) span.Instant {
	if !s.chooses() || s.imaging().tryAt(start).ok {
		return start
	}
	s.fallBack(TariffImage, fmt.Sprintf("the image cannot be on the hosts at the cheapest start, %v", start))
	first, _ := s.find(s.query, calendar.PolicyFirstFit)
	return first
}
