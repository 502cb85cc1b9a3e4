// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Demands returns the images that live reservations need, in the order in which the reservations
// were made. An image that is not in the facts counts as taking no time. Reservations that have
// started are included, since they keep their image on their hosts. A canceled reservation keeps
// nothing; another one that relied on its image then needs a transfer of its own, which may be
// late.
func Demands(f *staging.Facts, live []reservation.Reservation) []staging.Demand {
	var imaged []*reservation.Reservation
	for i := range live {
		if live[i].Image != "" {
			imaged = append(imaged, &live[i])
		}
	}
	slices.SortStableFunc(imaged, func(a, b *reservation.Reservation) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	demands := make([]staging.Demand, 0, len(imaged))
	for _, r := range imaged {
		image, _ := f.Image(r.Image)
		demands = AddDemands(demands, r, image)
	}
	return demands
}

// AddDemands adds to the list one demand for the hosts that r has from its start on, and one for each
// later start of hosts that were added by healing or growth.
func AddDemands(list []staging.Demand, r *reservation.Reservation, image staging.Image) []staging.Demand {
	type arrival struct {
		host  string
		start span.Instant
	}
	places, seen := map[span.Instant]int{}, make(map[arrival]bool, len(r.Claims))
	for _, c := range r.Claims {
		start := max(c.Span.Start, r.Span.Start)
		i, known := places[start]
		if !known {
			i = len(list)
			places[start] = i
			list = append(list, staging.Demand{
				ID: r.ID, Image: image, Nodes: make([]string, 0, len(r.Claims)),
				Span: span.Span{Start: start, End: r.Span.End}, Joining: start > r.Span.Start,
			})
		}
		if a := (arrival{c.Host, start}); !seen[a] {
			seen[a] = true
			list[i].Nodes = append(list[i].Nodes, c.Host)
		}
	}
	return list
}

// stage makes the search consider images, if the request has one and decisions do not ignore
// them. It fails with an Invalid fault if the image is unknown, and changes nothing then.
func (s imaging) stage() error {
	images := s.view.Images
	if s.request.Image == "" || images == nil || images.Facts == nil {
		return nil
	}
	image, known := images.Facts.Image(s.request.Image)
	if !known {
		return fault.Field("image", "image %q does not exist, or its size is not known yet; try again in a moment", s.request.Image)
	}
	s.staged = newStaged(image, images.Accepted(s.view.Now).Admission())
	return nil
}

// withImage returns the plan for the first start, not before that of the policy, at which the hosts are
// free and the image can be on them. If there is none, an earlier start of the window will do. The
// refusal explains the policy's start.
func (s imaging) withImage(p Plan) (Plan, error) {
	if s.staged == nil {
		return p, nil
	}
	found, ok := s.decideWithImage(s.pricing().withImage(p.Span.Start))
	if !ok {
		return Plan{}, s.refuseImage(s.staged.explain(planned, p.Claims, p.Span), s.lasting(s.latest()).imaging().largestWithImage(s.request.Quantity-1))
	}
	found.DelayedByBoot = p.DelayedByBoot
	found.Images = func() staging.State {
		return s.staged.admission.With(s.staged.demand(planned, found.Claims, found.Span))
	}
	return found, nil
}

// refuseImage returns the refusal because of the image, and what would be accepted instead.
func (s imaging) refuseImage(why *staging.Refusal, largest int) *reservation.Refusal {
	r := s.refusal()
	r.Constraint, r.Message = reservation.ImageTransfer, why.Message
	if why.Reason == staging.NoPool {
		r.Constraint = reservation.ImagePool
	}
	r.LargestQuantity = largest
	r.EarliestStart = s.refusing().earliest()
	return r
}

// largestWithImage returns the largest quantity, at most most, that would be accepted in the requested
// window.
func (s imaging) largestWithImage(most int) int {
	if s.staged == nil {
		return most
	}
	return sort.Search(most, func(less int) bool {
		fewer := s.with(less + 1)
		start, _, ok := fewer.start()
		if ok {
			_, ok = fewer.imaging().decideWithImage(start)
		}
		return !ok
	})
}
