// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Images are the facts on which decisions about reservations with an image depend. All reservations
// use the same channels for transfers, so one may delay another on other hosts.
type Images struct {
	Facts *staging.Facts
	// Accepted returns, as they are at an instant, the demands of the live reservations in the order
	// of the function Demands or by start, without those of the reservation that is changed.
	Accepted func(now span.Instant) *staging.Accepted
}

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
		demands = addDemands(demands, r, image)
	}
	return demands
}

// addDemands adds to the list one demand for the hosts that r has from its start on, and one for each
// later start of hosts that were added by healing or growth.
func addDemands(list []staging.Demand, r *reservation.Reservation, image staging.Image) []staging.Demand {
	first := len(list)
	for _, c := range r.Claims {
		start := max(c.Span.Start, r.Span.Start)
		i := first + slices.IndexFunc(list[first:], func(d staging.Demand) bool { return d.Span.Start == start })
		if i < first {
			i = len(list)
			list = append(list, staging.Demand{
				ID: r.ID, Image: image, Nodes: make([]string, 0, len(r.Claims)),
				Span: span.Span{Start: start, End: r.Span.End}, Joining: start > r.Span.Start,
			})
		}
		if d := &list[i]; !slices.Contains(d.Nodes, c.Host) {
			d.Nodes = append(d.Nodes, c.Host)
		}
	}
	return list
}

// staged contains what a search must consider for the image of its request.
type staged struct {
	image     staging.Image
	admission *staging.Admission // given the demands of other reservations
	// there contains the names of the hosts that will have the image at thereAt.
	there   map[string]bool
	thereAt span.Instant
}

// stage makes the search consider images, if the request has one and decisions do not ignore
// them. It fails with an Invalid fault if the image is unknown, and changes nothing then.
func (s *search) stage() error {
	images := s.view.Images
	if s.request.Image == "" || images == nil || images.Facts == nil {
		return nil
	}
	image, known := images.Facts.Image(s.request.Image)
	if !known {
		return fault.Field("image", "image %q does not exist, or its size is not known yet; try again in a moment", s.request.Image)
	}
	s.staged = &staged{image: image, admission: images.Accepted(s.view.Now).Admission()}
	return nil
}

// has reports whether a host will have the image at a start without a transfer of its own.
func (t *staged) has(host string, start span.Instant) bool {
	if t.there == nil || t.thereAt != start {
		t.there, t.thereAt = t.admission.Before().Nodes(t.image.ID, start), start
	}
	return t.there[host]
}

// has reports whether the host will have the image at a start: criterion 3 of
// docs/concepts.md "Which hosts".
func (s *search) has(number int, start span.Instant) bool {
	return s.staged != nil && s.staged.has(s.view.hosts.names[number], start)
}

// refuse returns the refusal if the image cannot be on the hosts of claims in time; otherwise nil.
func (t *staged) refuse(id string, claims []reservation.Claim, w span.Span) *staging.Refusal {
	return t.admission.Refuse(t.demand(id, claims, w))
}

// allows reports whether refuse would return nil; it is cheaper.
func (t *staged) allows(id string, claims []reservation.Claim, w span.Span) bool {
	return t.admission.Allows(t.demand(id, claims, w))
}

func (t *staged) demand(id string, claims []reservation.Claim, w span.Span) staging.Demand {
	return staging.Demand{ID: id, Image: t.image, Nodes: hostNames(claims), Span: w}
}

// planned is the id of the demand of a request, which has no id yet.
const planned = "request"

// withImage returns the plan for the first start, not before that of the policy, at which the
// hosts are free and the image can be on them. The refusal explains the policy's start.
func (s *search) withImage(p Plan) (Plan, error) {
	if s.staged == nil {
		return p, nil
	}
	found, refusal := s.asAskedWithImage(p)
	if found == nil {
		return Plan{}, s.refuseImage(refusal, s.largestWithImage())
	}
	found.Images = func() staging.State {
		return s.staged.admission.With(s.staged.demand(planned, found.Claims, found.Span))
	}
	return *found, nil
}

// mostStarts is how many starts are tried at most because of an image.
const mostStarts = 16

// asAskedWithImage tries the plan and then later starts that the request allows. A request
// without a time may wait for its image, but not until other reservations end.
func (s *search) asAskedWithImage(p Plan) (found *Plan, first *staging.Refusal) {
	if !s.request.immediate {
		return s.laterWithImage(s.query, p)
	}
	latest := s.view.Limits.horizon(s.view.Now)
	return s.tryWithImage(p, func(ready span.Instant) (span.Instant, bool) {
		if ready > latest {
			return 0, false
		}
		return s.find(s.startingAt(ready), calendar.PolicyFirstFit)
	})
}

// laterWithImage tries the plan and then later starts that the query allows.
func (s *search) laterWithImage(q calendar.Query, p Plan) (found *Plan, first *staging.Refusal) {
	return s.tryWithImage(p, func(ready span.Instant) (span.Instant, bool) {
		q.Ready = ready
		return s.find(q, calendar.PolicyFirstFit)
	})
}

// tryWithImage tries the plan and then the starts that next returns: each is the first start
// with free hosts after the transfers for the previous one could be complete. If none is
// possible, it returns the refusal for the plan.
func (s *search) tryWithImage(p Plan, next func(ready span.Instant) (span.Instant, bool)) (found *Plan, first *staging.Refusal) {
	for range mostStarts {
		refusal := s.staged.refuse(planned, p.Claims, p.Span)
		if refusal == nil {
			return &p, nil
		}
		if first == nil {
			first = refusal
		}
		if refusal.Earliest <= p.Span.Start {
			break
		}
		start, ok := next(refusal.Earliest)
		if !ok {
			break
		}
		p = s.planAt(start, p.DelayedByBoot)
	}
	return nil, first
}

// refuseImage returns the refusal because of the image, and what would be accepted instead.
func (s *search) refuseImage(why *staging.Refusal, largest int) *reservation.Refusal {
	r := s.refusal()
	r.Constraint, r.Message = reservation.ImageTransfer, why.Message
	if why.Reason == staging.NoPool {
		r.Constraint = reservation.ImagePool
	}
	r.LargestQuantity = largest
	if q := s.ahead(); why.Earliest != 0 {
		q.Ready = max(q.Ready, why.Earliest)
		if start, ok := s.find(q, calendar.PolicyFirstFit); ok {
			if p, _ := s.laterWithImage(q, s.planAt(start, false)); p != nil {
				r.EarliestStart = p.Span.Start
			}
		}
	}
	return r
}

// largestWithImage returns a smaller quantity that would be accepted in the requested window:
// the largest one, unless fewer hosts would start at another time.
func (s *search) largestWithImage() int {
	return sort.Search(s.request.Quantity-1, func(less int) bool {
		fewer := *s
		fewer.request.Quantity = less + 1
		fewer.query.Quantity = less + 1
		start, delayed, ok := fewer.start()
		if !ok {
			return true
		}
		if s.request.immediate {
			found, _ := fewer.asAskedWithImage(fewer.planAt(start, delayed))
			return found == nil
		}
		return !s.staged.allows(planned, fewer.claims(start), s.query.Window(start))
	})
}

// refuseImage returns the refusal of a change of a pending reservation whose image could not be
// there in time. It returns nil if the image can be there, if decisions ignore images, or if
// the image was late before and the change needs it on no other host and not for longer.
func (p *changePlan) refuseImage(claims []reservation.Claim) error {
	s := p.search
	if s.staged == nil || p.pinned() {
		return nil
	}
	refusal := s.staged.refuse(p.from.ID, claims, p.to.Span)
	if refusal == nil {
		return nil
	}
	had := p.from.HostNames()
	asksMore := p.to.Span.Start < p.from.Span.Start || p.to.Span.End > p.from.Span.End ||
		slices.ContainsFunc(claims, func(c reservation.Claim) bool { return !slices.Contains(had, c.Host) })
	if !asksMore && !s.staged.allows(p.from.ID, p.from.Claims, p.from.Span) {
		return nil
	}
	return s.refuseImage(refusal, p.largestWithImage())
}

// largestWithImage returns the largest smaller quantity with which the change would be accepted.
func (p *changePlan) largestWithImage() int {
	return sort.Search(p.to.Terms.Quantity-1, func(less int) bool {
		fewer := *p
		fewer.to.Terms.Quantity = less + 1
		claims, ok := fewer.claims()
		if !ok {
			return true
		}
		return !p.search.staged.allows(p.from.ID, claims, p.to.Span)
	})
}

// imagesRow is a name under which the records count the commits of reservations with an image,
// as they do for hosts: transfers share channels, so two such reservations may conflict even
// on different hosts. No host has a space in its name.
const imagesRow = "images of reservations"

// looksAtImages reports whether decisions consider images.
func (d *Service) looksAtImages() bool { return d.options.Images != nil }

// versioned returns the names whose versions a decision on r depends on: its hosts, and
// imagesRow if it has an image.
func (d *Service) versioned(r *reservation.Reservation) []string {
	names := r.HostNames()
	if r.Image != "" && d.looksAtImages() {
		names = append(names, imagesRow)
	}
	return names
}
