// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// firstWait and longestWait are the bounds in seconds of the wait before the next try.
	firstWait   = 5
	longestWait = 3600
	// contentTries is how often a delivery is tried whose content the receiver refuses.
	contentTries = 5
)

// Answer is what came of a try.
type Answer struct {
	Status int // of HTTP; 0 if there was no answer
	// RetryAfter is for how many seconds the receiver asks to wait; 0 if it does not ask.
	RetryAfter int64
	// Err is why there was no answer.
	Err string
}

// Verdict is what follows from an answer.
type Verdict struct {
	// Done is true if the delivery is over; Delivered is true if the receiver has accepted it.
	Done, Delivered bool
	// Disabled is why the webhook gets nothing any more; empty if it does.
	Disabled string
	// Error is why the try failed.
	Error string
	// Failures is how many tries have failed since the last one that succeeded, or that was given up.
	Failures int
	// Wait is how many seconds to wait before the next try of this webhook.
	Wait int64
}

// Try is what came of a try.
type Try struct {
	WebhookID string
	Place     int64        // of the change that was told; 0 if none waited
	At        span.Instant // when the try ended
	// Before is the time of the oldest change that is still told; older ones are given up.
	Before span.Instant
	Verdict
}

// Judge returns what follows from an answer after some failures; chance is in [0, 1).
func Judge(failures int, a Answer, chance float64) Verdict {
	if a.Status >= 200 && a.Status <= 299 {
		return Verdict{Done: true, Delivered: true}
	}
	v := Verdict{Error: a.describe(), Failures: failures + 1, Wait: max(wait(failures, chance), min(a.RetryAfter, longestWait))}
	switch {
	case a.Status == http.StatusGone:
		v.Disabled = "the receiver answers 410 Gone"
	case a.refusesContent() && v.Failures >= contentTries:
		v.Done, v.Failures = true, 0
	}
	return v
}

// refusesContent reports whether the receiver refuses this delivery, and may accept the next one.
func (a Answer) refusesContent() bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

func (a Answer) describe() string {
	text := a.Err
	if a.Status != 0 {
		text = strings.TrimSpace("the receiver answers " + statusText(a.Status))
	}
	if a.Status >= 300 && a.Status <= 399 {
		text += "; redirects are not followed"
	}
	return text
}

// wait returns a time in seconds that doubles with each failure; chance moves it within its upper half.
func wait(failures int, chance float64) int64 {
	most := int64(longestWait)
	if failures < 12 { // 5 s doubled 10 times is more than an hour
		most = min(most, firstWait<<failures)
	}
	return most - int64(chance*float64(most)/2)
}

// Due is a webhook whose first delivery waits for a try.
type Due struct {
	ID, ProjectID string
	Failing       bool // its last try failed
	At            span.Instant
}

// Choose returns which webhooks begin a try now, while others are busy with one; at most limit are in progress at once.
// Those that are failing have half of the places, and a project a quarter, so that receivers that do not answer hold up
// no others. Within that, who has waited longest begins first.
func Choose(due, busy []Due, limit int) (begin []Due) {
	failing, inProgress, known := 0, map[string]int{}, map[string]bool{}
	enter := func(d Due) {
		known[d.ID], inProgress[d.ProjectID] = true, inProgress[d.ProjectID]+1
		if d.Failing {
			failing++
		}
	}
	for _, d := range busy {
		enter(d)
	}
	sorted := slices.SortedFunc(slices.Values(due), func(a, b Due) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	for _, d := range sorted {
		switch {
		case len(busy)+len(begin) >= limit:
			return begin
		case known[d.ID], d.Failing && failing >= max(1, limit/2), inProgress[d.ProjectID] >= max(1, limit/4):
		default:
			enter(d)
			begin = append(begin, d)
		}
	}
	return begin
}

func statusText(status int) string { return fmt.Sprintf("%d %s", status, http.StatusText(status)) }
