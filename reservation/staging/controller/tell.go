// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// State is the state of a reservation's image on one of its hosts.
type State string

// The states.
const (
	Scheduled    State = "scheduled"
	Transferring State = "transferring"
	Present      State = "there"
	Late         State = "late"   // it will arrive after the start
	Refused      State = "failed" // it was tried and failed, or is impossible
	Held         State = "waiting"
)

// States lists all states.
var States = []State{Present, Transferring, Scheduled, Late, Held, Refused}

// HostImage is the image of a reservation on one of its hosts. Start and End are the start and the
// end of its transfer or, if the image is there, of the time for which the host has it; 0 means
// unknown.
type HostImage struct {
	Host       string
	State      State
	Start, End span.Instant
	Detail     string
	tried      bool // a transfer was tried and failed
}

// Of returns the state of a reservation's image on each of its hosts, sorted by host; nil if the
// reservation has no image, or if no records have been read yet.
func (c *Controller) Of(r *reservation.Reservation) []HostImage {
	if r.Image == "" || !r.Status.Promised() || !c.Glance.IsID(r.Image) {
		return nil
	}
	p := c.latest(r)
	if p == nil {
		return nil
	}
	return p.of(r)
}

// latest returns the last plan. If records have been published since, or if the plan does not
// contain r in its present state, it makes a new plan first. It returns nil before the first
// records have been read.
func (c *Controller) latest(r *reservation.Reservation) *plan {
	c.laying.Lock()
	defer c.laying.Unlock()
	c.mu.Lock()
	s, read, generation := c.stored, c.read, c.generation
	c.mu.Unlock()
	if !read {
		return nil
	}
	if l := c.laid.Load(); l != nil && l.generation == generation && (r == nil || l.has(r)) {
		return l.plan
	}
	p := c.decide(&s, c.live(), c.Now())
	c.laid.Store(&laid{p, generation})
	return p
}

// has reports whether the plan contains a reservation in its present state, or need not contain it.
func (p *plan) has(r *reservation.Reservation) bool {
	if r.Status != reservation.Pending || r.Span.Start <= p.now {
		return true
	}
	for _, host := range r.HostNames() {
		if !slices.Contains(p.users[imageOnHost{r.Image, host}], r.ID) {
			return false
		}
	}
	i := slices.IndexFunc(p.waiting, func(o reservation.Reservation) bool { return o.ID == r.ID })
	return i >= 0 && p.waiting[i].Span == r.Span
}

func (p *plan) of(r *reservation.Reservation) []HostImage {
	var list []HostImage
	for _, host := range slices.Sorted(slices.Values(r.HostNames())) {
		list = append(list, p.on(r, host))
	}
	return list
}

func (p *plan) on(r *reservation.Reservation, host string) HostImage {
	at, h := imageOnHost{r.Image, host}, HostImage{Host: host}
	if t, coming := p.at[at]; coming {
		h.State, h.Start, h.End = Scheduled, t.Start, t.End
		if t.Started {
			h.State = Transferring
		}
		if t.End > r.Span.Start && p.now < r.Span.Start {
			h.State, h.Detail = Late, "it will arrive after the start"
			if t.Started {
				h.Detail = "it is under way, and will arrive after the start"
			}
		}
		if failed := p.failures[at]; len(failed) > 0 && h.Detail == "" {
			h.Detail, h.tried = "an earlier attempt: "+failed[len(failed)-1].Detail, true
		}
		if u, is := p.lost[at]; is && h.Detail == "" {
			h.Detail, h.tried = "an earlier attempt: "+u.Detail, true
		}
		return h
	}
	if why, held := p.held[at]; held {
		h.State, h.Detail = Held, why.reason
		if why.failed {
			h.State = Refused
		}
		return h
	}
	if one, there := p.there[at]; there {
		h.State, h.Start = Present, one.Since
		return h
	}
	if failed := p.failures[at]; len(failed) > 0 {
		last := failed[len(failed)-1]
		return HostImage{host, Refused, last.Started, last.Finished, last.Detail, true}
	}
	h.State, h.Detail = Refused, "nothing was put there before the start"
	return h
}

// problem describes, for its owner, what is wrong with the image of a reservation that has not
// begun; "" if the image will be there. The owner does not know the hosts yet, so it names none. It
// names no times, since they change from step to step.
func problem(hosts []HostImage, gone bool) string {
	count := map[State]int{}
	for _, h := range hosts {
		count[h.State]++
	}
	const boots = "; a host without it downloads it when an instance boots"
	switch failed, late := count[Refused], count[Late]; {
	case gone && count[Present] < len(hosts):
		return fmt.Sprintf("the image was deleted: %d of %d hosts do not have it, and instances cannot boot from it there", len(hosts)-count[Present], len(hosts))
	case failed > 0 && late > 0:
		return fmt.Sprintf("the image could not be put on %d of %d hosts so far, and will be late on %d", failed, len(hosts), late) + boots
	case failed > 0:
		return fmt.Sprintf("the image could not be put on %d of %d hosts so far", failed, len(hosts)) + boots
	case late > 0:
		return fmt.Sprintf("the image will be late on %d of %d hosts", late, len(hosts)) + boots
	}
	return ""
}

// fine is the sentence that ends an earlier problem.
const fine = "the image will be there in time on all hosts"

// remark adds a sentence to the log of reservations that have not begun when there is a problem
// with their images, and when it has ended.
func (c *Controller) remark(ctx context.Context, p *plan) error {
	var errs []error
	for _, r := range p.waiting {
		hosts := p.of(&r)
		sentence, last := problem(hosts, p.images[r.Image].Gone), r.LastRemark()
		if again := slices.ContainsFunc(hosts, func(h HostImage) bool { return h.tried }); sentence == "" && last != "" && !again {
			sentence = fine
		}
		if sentence == last || sentence == "" {
			continue
		}
		changed, err := c.Promises.Remark(ctx, r.ID, sentence)
		if err != nil {
			errs = append(errs, fmt.Errorf("store an event about the image of reservation %s: %w", r.ID, err))
		}
		if changed {
			c.Log.WarnContext(ctx, "stored an event about the image of a reservation", "reservation", r.ID, "project", r.ProjectID, "image", r.Image, "told", sentence)
		}
	}
	return errors.Join(errs...)
}

// Short returns the number of reservations that have not begun and will lack their image on a host.
func (c *Controller) Short() (n int) {
	p := c.latest(nil)
	if p == nil {
		return 0
	}
	for _, r := range p.waiting {
		if problem(p.of(&r), false) != "" {
			n++
		}
	}
	return n
}
