// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Every fact in an answer is asked back at once, through the API, and is true: what an answer names as
// possible is granted, what it excludes is refused, and a claim that it names as an obstacle is one.
// The scenes have hosts and instances, images, filters on the present, leases of up to three reservations,
// floating IPs, limits, sleeping hosts and maintenance.
//
// A third of the scenes is drawn in each part, so that the parts run at the same time. Each part draws
// -rapid.checks scenes.
//
//make:test-drawn test-answers
func TestEveryFactInAnAnswerIsTrue(t *testing.T) {
	parts := 3
	if testing.Short() {
		parts = 1
	}
	for part := range parts {
		t.Run(fmt.Sprint("part ", part+1), func(t *testing.T) {
			t.Parallel()
			rules := rules(t, "")
			rapid.Check(t, func(t *rapid.T) {
				s := drawScene(t, rules)
				for range rapid.IntRange(1, 5).Draw(t, "questions") {
					s.question()
				}
			})
		})
	}
}

// question asks one thing, and then whether the answer is true.
func (s *scene) question() {
	switch rapid.IntRange(0, 11).Draw(s.t, "question") {
	case 0, 1, 2, 3:
		s.askReservation(s.caller(), s.drawAsked())
	case 4:
		s.askReservation(callers[0], s.drawMaintenance())
	case 5:
		by, q := s.caller(), s.drawAsked()
		q.together = s.drawTogether(by, "", int64(q.quantity))
		s.askWindows(by, q)
	case 6, 7:
		if r, ok := s.drawReservation(); ok {
			s.askChange(r, s.drawChange(r))
		}
	case 8:
		s.askLease(s.caller(), s.drawLease())
	case 9:
		if l, ok := s.drawLeaseRecord(); ok {
			s.askLeaseChange(l, s.drawLeaseChange(l))
		}
	case 10, 11:
		by := s.caller()
		s.askOffers(by, s.drawWished(by))
	}
}
