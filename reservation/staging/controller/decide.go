// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// plan is the plan for the images of reservations at one instant.
type plan struct {
	now   span.Instant
	facts *staging.Facts
	// transfers are scheduled or under way, sorted by Start; at contains their indexes by image and
	// host.
	transfers []staging.Transfer
	at        map[imageOnHost]staging.Transfer
	// renewals are the images on hosts to request again, so that hosts keep them; by image and host.
	renewals []staging.Transfer
	// held contains, for each transfer that is needed but not begun now, the reason.
	held map[imageOnHost]hold
	// failures are the transfers that have failed since the last success; lost are those that have
	// not reached the cloud since then.
	failures map[imageOnHost][]Transfer
	lost     map[imageOnHost]Transfer
	// users are the ids of the reservations that need an image on a host and for which it is
	// transferred.
	users map[imageOnHost][]string
	// waiting are the reservations that have not begun; images and there are the stored records of
	// images and of what hosts have.
	waiting []reservation.Reservation
	images  map[string]Image
	there   map[imageOnHost]Cached
}

// hold is the reason why a transfer is not begun.
type hold struct {
	reason string
	failed bool // it was tried and failed, or is impossible
}

// newPlan schedules the transfers for the demands of the reservations. unready returns the reason
// why a host cannot receive images now; "" if it can.
func (r *Rules) newPlan(s *Stored, f *staging.Facts, live []reservation.Reservation, demands []staging.Demand, unready func(host string) string, now span.Instant) *plan {
	p := &plan{
		now: now, facts: f, at: map[imageOnHost]staging.Transfer{}, held: map[imageOnHost]hold{}, users: map[imageOnHost][]string{},
		waiting: waiting(live, now), images: imagesByID(s), there: map[imageOnHost]Cached{},
	}
	for _, one := range s.Cached {
		p.there[imageOnHost{one.Image, one.Host}] = one
	}
	for _, d := range demands {
		if !f.Wants(now, d) {
			continue
		}
		for _, host := range d.Nodes {
			if at := (imageOnHost{d.Image.ID, host}); !slices.Contains(p.users[at], d.ID) {
				p.users[at] = append(p.users[at], d.ID)
			}
		}
	}
	state := f.State(now, demands)
	p.failures, p.lost = failuresOf(s.Transfers, p.there)
	p.renewals = slices.DeleteFunc(r.expiring(state, f, demands, now), func(t staging.Transfer) bool {
		return unready(t.Node) != "" || r.hold(p, t).reason != ""
	})
	state.Transfers = slices.DeleteFunc(state.Transfers, func(t staging.Transfer) bool {
		at := imageOnHost{t.Image.ID, t.Node}
		if t.Started {
			return false
		}
		if len(p.users[at]) == 0 { // its user begins just now
			return true
		}
		h := r.hold(p, t)
		if why := unready(t.Node); h.reason == "" && why != "" {
			h = hold{reason: why}
		}
		if h.reason != "" {
			p.held[at] = h
		}
		return h.reason != ""
	})
	p.transfers = inTime(state, f.Site, now)
	for _, t := range p.transfers {
		at := imageOnHost{t.Image.ID, t.Node}
		if t.Start >= span.Forever {
			p.held[at] = hold{reason: "the host keeps too many other images until then"}
			continue
		}
		if first, there := p.at[at]; !there || t.Start < first.Start {
			p.at[at] = t
		}
	}
	return p
}

// inTime returns the transfers of a state, scheduled. If some cannot keep the margin, because a step
// began them a little late, they use it up before one makes way for others.
func inTime(state staging.State, site staging.Site, now span.Instant) []staging.Transfer {
	all, late := state.Schedule(site, now)
	if len(late) > 0 {
		site.Strategy, site.Margin = staging.EDF, 0
		if others, fewer := state.Schedule(site, now); len(fewer) < len(late) {
			return others
		}
	}
	return all
}

func imagesByID(s *Stored) map[string]Image {
	all := make(map[string]Image, len(s.Images))
	for _, i := range s.Images {
		all[i.ID] = i
	}
	return all
}

// failuresOf returns, by image and host, the transfers that have failed since the last success
// there, and the last transfer that was lost. If a host was seen to have the image after a failure,
// that counts as a success.
func failuresOf(transfers []Transfer, there map[imageOnHost]Cached) (failed map[imageOnHost][]Transfer, lost map[imageOnHost]Transfer) {
	failed, lost = map[imageOnHost][]Transfer{}, map[imageOnHost]Transfer{}
	for _, t := range transfers {
		at := imageOnHost{t.Image, t.Host}
		if one, is := there[at]; is && t.Outcome != "" && t.Finished <= one.LastUsed {
			continue
		}
		switch t.Outcome {
		case TransferFailed:
			failed[at] = append(failed[at], t)
			delete(lost, at)
		case TransferLost:
			lost[at] = t
		case TransferThere, TransferKept, TransferAssumed:
			delete(failed, at)
			delete(lost, at)
		}
	}
	return failed, lost
}

// hold returns the reason why a transfer is not begun now. A transfer that could not reach the
// cloud waits as long again as the cloud has been unreachable, up to a limit. A transfer that the
// host has refused is abandoned after some tries, with one more try shortly before it would be
// late. A reservation that is made later has as many tries as the earlier ones had.
func (r *Rules) hold(p *plan, t staging.Transfer) hold {
	at := imageOnHost{t.Image.ID, t.Node}
	image, known := p.images[at.image]
	switch {
	case !known:
		return hold{reason: "its size is not known yet"}
	case image.Gone:
		return hold{reason: "Glance no longer has it", failed: true}
	}
	last := t.Deadline.Add(-p.facts.Site.Margin - p.facts.Site.Seconds(&t, p.facts.Site.Repositories[0]) - lastChance)
	if u, is := p.lost[at]; is {
		again := u.Finished.Add(min(max(int64(u.Finished-u.Started), r.RetryDelay), longestWait))
		if again <= p.now {
			return hold{}
		}
		return hold{
			reason: fmt.Sprintf("%s; Almanac asks Nova again at %s", u.Detail, again),
			failed: p.now >= last || u.Finished >= u.Started.Add(longestWait),
		}
	}
	failed := p.failures[at]
	tries := triesOf(failed, p.users[at])
	if tries == 0 {
		return hold{}
	}
	before := failed[len(failed)-1]
	if tries > r.Retries {
		switch {
		case before.Started >= last:
			return hold{reason: fmt.Sprintf("%s after %d attempts", before.Detail, tries), failed: true}
		case p.now < last:
			return hold{reason: fmt.Sprintf("%s after %d attempts; the last attempt is at %s", before.Detail, tries, last), failed: true}
		}
		return hold{}
	}
	delay := min(r.RetryDelay<<min(tries-1, 20), longestDelay)
	if again := before.Finished.Add(delay); again > p.now {
		return hold{reason: fmt.Sprintf("%s; the next attempt is at %s", before.Detail, again), failed: true}
	}
	return hold{}
}

// triesOf returns the number of failures that count for the reservation with the fewest.
func triesOf(failed []Transfer, users []string) int {
	tries := len(failed)
	for _, id := range users {
		n := 0
		for _, t := range failed {
			if slices.Contains(t.Reservations, id) {
				n++
			}
		}
		tries = min(tries, n)
	}
	return tries
}

// due returns the transfers to begin now, as the calls to send. A call contains consecutive
// transfers of the same image. If a transfer is due, those that follow it without a gap are
// included, and so are all that become due within that many seconds, before the next step. Renewals
// come last.
func (p *plan) due(within int64) (calls [][]staging.Transfer) {
	taken := map[imageOnHost]bool{}
	took := int64(0) // in the last call
	for _, t := range p.transfers {
		if t.Started {
			continue
		}
		if len(taken) == most || len(calls) == 0 && t.Start > p.now {
			break
		}
		at := imageOnHost{t.Image.ID, t.Node}
		if taken[at] {
			continue
		}
		if n := len(calls); n > 0 && took < longCall && calls[n-1][0].Image.ID == t.Image.ID && t.Start <= calls[n-1][len(calls[n-1])-1].End {
			calls[n-1] = append(calls[n-1], t)
		} else if n == 0 || t.Start <= p.now.Add(within) {
			calls, took = append(calls, []staging.Transfer{t}), 0
		} else {
			break
		}
		taken[at] = true
		took += t.Seconds
	}
	for i, t := range p.renewals[:min(len(p.renewals), most-len(taken))] {
		if n := len(calls); i > 0 && t.Image.ID == p.renewals[i-1].Image.ID {
			calls[n-1] = append(calls[n-1], t)
		} else {
			calls = append(calls, []staging.Transfer{t})
		}
	}
	return calls
}

// busy returns for how many more seconds transfers are under way.
func (p *plan) busy() (seconds int64) {
	for _, t := range p.transfers {
		if t.Started {
			seconds = max(seconds, int64(t.End-p.now))
		}
	}
	return seconds
}

// begin returns the transfers of a call in the form in which they are stored before the call is
// sent. queued is for how many seconds earlier calls occupy the channel. A lost transfer reuses its
// row, so that an outage leaves one row for each transfer.
func (r *Rules) begin(batch []staging.Transfer, p *plan, call string, newID func() string, queued int64) []Transfer {
	rows := make([]Transfer, len(batch))
	for i, t := range batch {
		queued += t.Seconds
		at := imageOnHost{t.Image.ID, t.Node}
		rows[i] = Transfer{
			Call: call, Image: t.Image.ID, Host: t.Node, Bytes: t.Image.Size, Reservations: slices.Clone(p.users[at]),
			Deadline: t.Deadline, Started: p.now, Expected: p.now.Add(queued), Expire: t.Expire,
			Bound: p.now.Add(slack + int64(math.Ceil(r.Factor*float64(queued)))),
		}
		if u, is := p.lost[at]; is {
			rows[i].ID = u.ID
		} else {
			rows[i].ID = newID()
		}
	}
	return rows
}

// decide returns the plan for what the live reservations need.
func (c *Controller) decide(s *Stored, live []reservation.Reservation, now span.Instant) *plan {
	f := c.Known.facts.Load()
	return c.Rules.newPlan(s, f, live, c.Demands(f, live), c.unready(), now)
}
