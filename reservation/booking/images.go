package booking

import (
	"cmp"
	"errors"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Images are what decisions on reservations with an image depend on. Transfers are shared:
// one reservation's stand in the way of another's on other hosts.
type Images struct {
	Facts *staging.Facts
	// Demands gives what the live reservations need, without the one that is changed, in
	// the order of Demands.
	Demands func() []staging.Demand
}

// Demands gives what live reservations need of images, in the order in which they were
// made. An image that the facts do not have is taken to take no time. What has begun is
// among them: it keeps its image where it is. Once a reservation is cancelled it keeps
// nothing; whoever relied on that needs a transfer then, which may be late.
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
		demands = append(demands, demandsOf(r, image)...)
	}
	return demands
}

// demandsOf gives one demand for the hosts that r has from its start on, and one for those
// of each later start: they were given to it by healing or growth.
func demandsOf(r *reservation.Reservation, image staging.Image) (list []staging.Demand) {
	for _, c := range r.Claims {
		start := max(c.Span.Start, r.Span.Start)
		i := slices.IndexFunc(list, func(d staging.Demand) bool { return d.Span.Start == start })
		if i < 0 {
			i = len(list)
			list = append(list, staging.Demand{
				ID: r.ID, Image: image, Span: span.Span{Start: start, End: r.Span.End}, Joining: start > r.Span.Start,
			})
		}
		if d := &list[i]; !slices.Contains(d.Nodes, c.Host) {
			d.Nodes = append(d.Nodes, c.Host)
		}
	}
	return list
}

// staged is what a search looks at for the image of its ask.
type staged struct {
	image     staging.Image
	admission *staging.Admission // beside what the others need
	// there has the hosts that will have the image at a start, by that start.
	there   map[string]bool
	thereAt span.Instant
}

// stage lets the search look at images, where there is one and they are looked at. It
// fails with an Invalid fault where the image is not known, and then looks at none.
func (s *search) stage() error {
	images := s.view.Images
	if s.ask.Image == "" || images == nil || images.Facts == nil {
		return nil
	}
	image, known := images.Facts.Image(s.ask.Image)
	if !known {
		return fault.Field("image", "the size of image %q is not known yet, or there is no such image; ask again in a moment", s.ask.Image)
	}
	s.staged = &staged{image: image, admission: images.Facts.Admission(s.view.Now, images.Demands())}
	return nil
}

// has says that a host will have the image at a start without a transfer of its own.
func (t *staged) has(host string, start span.Instant) bool {
	if t.there == nil || t.thereAt != start {
		t.there, t.thereAt = t.admission.Before().Nodes(t.image.ID, start), start
	}
	return t.there[host]
}

// has says that the host will have the image at a start: criterion 3 of
// docs/concepts.md "Which hosts".
func (s *search) has(number int, start span.Instant) bool {
	return s.staged != nil && s.staged.has(s.view.roster.names[number], start)
}

// admit decides whether the image can be on the hosts of claims in time.
func (t *staged) admit(id string, claims []reservation.Claim, w span.Span) (staging.State, error) {
	return t.admission.Admit(t.demand(id, claims, w))
}

// allows is admit where nobody needs to know more.
func (t *staged) allows(id string, claims []reservation.Claim, w span.Span) bool {
	return t.admission.Allows(t.demand(id, claims, w))
}

func (t *staged) demand(id string, claims []reservation.Claim, w span.Span) staging.Demand {
	return staging.Demand{ID: id, Image: t.image, Nodes: hostNames(claims), Span: w}
}

// planned names the demand of a request, which has no id yet.
const planned = "request"

// withImage returns a plan for the first start from that of the policy on at which the hosts
// are free and the image can be on them; the refusal is that of the policy's start.
func (s *search) withImage(p Plan) (Plan, error) {
	if s.staged == nil {
		return p, nil
	}
	found, refusal := s.asAskedWithImage(p)
	if found == nil {
		return Plan{}, s.refuseImage(refusal, s.largestWithImage())
	}
	return *found, nil
}

// mostStarts bounds how many starts are tried for the sake of an image.
const mostStarts = 16

// asAskedWithImage tries the plan and then later starts that the request allows. One
// without a time allows those at which it waits for its image alone: it does not wait
// until other reservations end.
func (s *search) asAskedWithImage(p Plan) (found *Plan, first *staging.Refusal) {
	if !s.ask.immediate {
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

// tryWithImage tries the plan and then the starts that next returns: each the first one at
// which the hosts are free, from the instant on at which the transfers to those refused
// before could be over. Where none will do it returns what was wrong with the plan.
func (s *search) tryWithImage(p Plan, next func(ready span.Instant) (span.Instant, bool)) (found *Plan, first *staging.Refusal) {
	for range mostStarts {
		state, err := s.staged.admit(planned, p.Claims, p.Span)
		refusal, refused := errors.AsType[*staging.Refusal](err)
		if !refused {
			p.Images = &state
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

// refuseImage explains that the image stands in the way, and what could be had instead.
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

// largestWithImage is a quantity less than that asked for that would be accepted in the
// asked window: the largest one unless fewer hosts would start at another time.
func (s *search) largestWithImage() int {
	return sort.Search(s.ask.Quantity-1, func(less int) bool {
		fewer := *s
		fewer.ask.Quantity = less + 1
		fewer.query.Quantity = less + 1
		start, delayed, ok := fewer.start()
		if !ok {
			return true
		}
		if s.ask.immediate {
			found, _ := fewer.asAskedWithImage(fewer.planAt(start, delayed))
			return found == nil
		}
		return !s.staged.allows(planned, fewer.claims(start), s.query.Window(start))
	})
}

// refuseImage refuses a change of a pending reservation whose image could not be there in
// time; nil where it can, where it is needed on no other host nor earlier than before and
// was late then too, and where images are not looked at.
func (m *move) refuseImage(claims []reservation.Claim) error {
	s := m.search
	if s.staged == nil || m.pinned() {
		return nil
	}
	_, err := s.staged.admit(m.from.ID, claims, m.to.Span)
	refusal, refused := errors.AsType[*staging.Refusal](err)
	if !refused {
		return nil
	}
	had := m.from.HostNames()
	asksMore := m.to.Span.Start < m.from.Span.Start || m.to.Span.End > m.from.Span.End ||
		slices.ContainsFunc(claims, func(c reservation.Claim) bool { return !slices.Contains(had, c.Host) })
	if !asksMore && !s.staged.allows(m.from.ID, m.from.Claims, m.from.Span) {
		return nil
	}
	return s.refuseImage(refusal, m.largestWithImage())
}

// largestWithImage is the largest quantity less than that asked for that the change would
// be accepted with.
func (m *move) largestWithImage() int {
	return sort.Search(m.to.Terms.Quantity-1, func(less int) bool {
		fewer := *m
		fewer.to.Terms.Quantity = less + 1
		claims, ok := fewer.claims()
		if !ok {
			return true
		}
		return !m.search.staged.allows(m.from.ID, claims, m.to.Span)
	})
}

// imagesRow is a name under which the records count the commits of reservations with an
// image, beside those of hosts: transfers share their channels, so that two such
// reservations may be in each other's way on different hosts. No host has a space in its
// name.
const imagesRow = "images of reservations"

// looksAtImages says that this desk decides on images at all.
func (d *Desk) looksAtImages() bool { return d.options.Images != nil }

// versioned gives what the versions of the records tell about for r: its hosts, and the
// images where it has one.
func (d *Desk) versioned(r *reservation.Reservation) []string {
	names := r.HostNames()
	if r.Image != "" && d.looksAtImages() {
		names = append(names, imagesRow)
	}
	return names
}
