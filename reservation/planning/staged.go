// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// planned is the id of the demand of a request, which has no id yet.
const planned = "request"

// staged contains what a search must consider for the image of its request.
type staged struct {
	image     staging.Image
	admission *staging.Admission     // given the demands of other reservations
	spans     map[string][]span.Span // when hosts will have the image, by name
	// work is how many more hosts and transfers the search may look at because of the image.
	work int
}

// mostWork is the largest number of hosts and transfers that one decision looks at because of an image.
// That takes some ten milliseconds.
const mostWork = 100_000

func newStaged(image staging.Image, a *staging.Admission) *staged {
	return &staged{image: image, admission: a, spans: a.Before().Spans(image.ID), work: mostWork}
}

// has reports whether a host will have the image at a start without a transfer of its own.
func (t *staged) has(host string, start span.Instant) bool {
	return slices.ContainsFunc(t.spans[host], func(w span.Span) bool { return w.Contains(start) })
}

// later reports whether a host gets the image after a start: a transfer before that start makes the
// later one needless.
func (t *staged) later(host string, start span.Instant) bool {
	return slices.ContainsFunc(t.spans[host], func(w span.Span) bool { return w.Start > start })
}

// explain returns the refusal if the image cannot be on the hosts of claims in time; otherwise nil.
func (t *staged) explain(id string, claims []reservation.Claim, w span.Span) *staging.Refusal {
	return t.admission.Explain(t.demand(id, claims, w))
}

// allows reports whether the image can be on the hosts of claims in time.
func (t *staged) allows(id string, claims []reservation.Claim, w span.Span) bool {
	transfers := len(t.admission.Before().Transfers)
	if t.admission.OneChannel() {
		transfers /= 16 // only those that come later are laid out, and quickly
	}
	t.work -= len(claims) + transfers
	return t.admission.Allows(t.demand(id, claims, w))
}

// firstRoom is staging.Accepted.FirstRoom.
func (t *staged) firstRoom(seconds int64, from span.Instant, hurting bool) (start span.Instant, ok bool) {
	t.work -= 1 + len(t.admission.Before().Transfers)/16
	return t.admission.FirstRoom(seconds, from, hurting)
}

func (t *staged) demand(id string, claims []reservation.Claim, w span.Span) staging.Demand {
	return staging.Demand{ID: id, Image: t.image, Nodes: hostNames(claims), Span: w}
}

// secondsTo returns the seconds that the transfers to those hosts of claims take that lack the image.
func (t *staged) secondsTo(claims []reservation.Claim, start span.Instant) int64 {
	var lacking []string
	for _, c := range claims {
		if !t.has(c.Host, start) {
			lacking = append(lacking, c.Host)
		}
	}
	return t.admission.Seconds(t.image, lacking...)
}
