package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// attempt is a change of one reservation on its way to the records. Its entry and
// the calendar have it from begin on, until settle or adopt knows what became of it.
type attempt struct {
	entry        *entry
	before, next reservation.Reservation // before is empty for a new reservation
	// held is what the calendar has for the reservation meanwhile; nil where that
	// is the claims of before.
	held []calendar.Claim
	// more is where next holds more hosts at once than before.
	more  []excess
	usage Usage
	cause reservation.Cause
	key   *reservation.Key

	// Guarded by Desk.mu:
	sent  bool // it names versions of hosts
	doubt bool // it may have been stored or not; the next look at the records tells
	over  bool // adopt knows better: memory has nothing of it any more
}

// begin puts a change in flight; mu is held, and memory has what it was decided on.
func (d *Desk) begin(a *attempt) *attempt {
	a.more, a.usage = moreHosts(a.before, a.next), usageOf(a.before, a.next)
	a.usage.Raises = len(a.more) > 0
	after := d.held[a.next.ProjectID].HostSeconds
	if a.before.ID != "" { // else it counts already
		after += a.usage.HostSeconds
		d.countMore(a, 1)
	}
	if limit := d.options.Limits.HostSeconds; limit > 0 {
		a.usage.MostHostSeconds = max(limit, after) // where that is more, the decision had leave
	}
	a.entry.attempt = a
	d.attempts[a] = struct{}{}
	return a
}

// commit stores the attempt and settles what memory holds of it.
func (d *Desk) commit(ctx context.Context, a *attempt) error {
	hosts := d.claimedAnew(a.before, a.next)
	unlock, err := d.claiming.lock(ctx, d.claimingKeys(a, hosts)...)
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotSent, err)
		d.settle(a, Commit{}, err)
		return err
	}
	defer unlock()
	c, err := d.commitOf(a, hosts)
	if err == nil {
		err = d.options.Records.Commit(ctx, c)
	}
	d.settle(a, c, err)
	switch {
	case errors.Is(err, reservation.ErrStale):
		d.stale.Add(1)
	case err == nil:
		d.wake()
		if a.isNews() {
			job.Poke(d.news)
		}
		if d.options.Announce != nil {
			d.options.Announce()
		}
	}
	return err
}

// isNews says that more has changed than how far an event is that is being carried out,
// except for an end, which makes room.
func (a *attempt) isNews() bool {
	switch a.cause.Action {
	case reservation.BeginEvent, reservation.PutOff, reservation.Start, reservation.WarnOfEnd:
		return false
	}
	return true
}

// errNotSent says that an attempt has certainly not been stored.
var errNotSent = errors.New("nothing was stored")

// commitOf says what the attempt was decided on, unless that is no longer so. Nobody
// else here claims time on hosts until it is settled; what was claimed here since
// the decision left room for it. What the project was given since may not: that is looked
// at again.
func (d *Desk) commitOf(a *attempt, hosts []string) (Commit, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.over || !d.keepsLimit(a) {
		return Commit{}, reservation.ErrStale
	}
	a.sent = true
	c := Commit{Reservation: a.next, Key: a.key, Hosts: make([]HostVersion, len(hosts)), Usage: a.usage, Cause: a.cause}
	if d.isLimited(a) {
		c.Usage.Known = new(d.projects[a.next.ProjectID])
	}
	for i, host := range hosts {
		c.Hosts[i] = HostVersion{host, d.known[host]}
	}
	return c, nil
}

// settle puts what was stored in place, or what was there before. Where nobody knows
// whether it was stored, memory goes on holding both until the records have told.
func (d *Desk) settle(a *attempt, c Commit, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case a.over:
	case errors.Is(err, errNotSent), errors.Is(err, reservation.ErrStale), errors.Is(err, reservation.ErrKeyUsed):
		d.release(d.holding(a.entry))
		if a.before.ID != "" {
			d.retake(&a.before)
		}
		d.revert(a)
	case err != nil:
		a.doubt = true
	default:
		if !a.holdsNext() {
			d.release(d.holding(a.entry))
			if a.next.Status.Live() {
				d.retake(&a.next)
			}
		}
		d.put(a.next)
		for _, h := range c.Hosts {
			d.known[h.Host] = max(d.known[h.Host], h.Version+1)
		}
		if known := c.Usage.Known; known != nil {
			d.projects[a.next.ProjectID] = max(d.projects[a.next.ProjectID], *known+1)
		}
	}
}

// holdsNext says that the calendar has the claims of next already: of a new reservation, or
// of one whose claims have not changed.
func (a *attempt) holdsNext() bool {
	if !a.next.Status.Live() {
		return false
	}
	if a.before.ID == "" {
		return true
	}
	return a.held == nil && sameClaims(a.before.Claims, a.next.Claims)
}

// sameClaims compares the lists; those of most events are one and the same.
func sameClaims(a, b []reservation.Claim) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// holding is what the calendar has of an entry.
func (d *Desk) holding(e *entry) []calendar.Claim {
	if e.attempt != nil && e.attempt.held != nil {
		return e.attempt.held
	}
	return d.calendarClaims(&e.r, e.r.Claims)
}

// revert takes an attempt out of flight that was not stored; the calendar has what
// it had before.
func (d *Desk) revert(a *attempt) {
	d.land(a.entry)
	if a.before.ID == "" {
		d.forget(a.entry)
	}
}

// put takes over a stored state; the calendar has its claims.
func (d *Desk) put(r reservation.Reservation) {
	e, live := d.live[r.ID]
	if live {
		d.land(e)
	}
	switch {
	case !live:
		d.keep(&entry{r: r, changing: turns.New(1, 0)})
	case r.Status.Live():
		d.replace(e, r)
	default:
		d.forget(e)
		d.left.bury(r.ID, r.Version)
	}
}

// land ends the attempt of an entry, where there is one.
func (d *Desk) land(e *entry) {
	a := e.attempt
	if a == nil {
		return
	}
	if a.before.ID != "" {
		d.countMore(a, -1)
	}
	a.over = true
	delete(d.attempts, a)
	e.attempt = nil
}

// claimedAnew gives the hosts on which after holds what before does not, and the images
// where it holds something else than before; sorted.
func (d *Desk) claimedAnew(before, after reservation.Reservation) []string {
	hosts := hostsAnew(before, after)
	if after.Image != "" && d.looksAtImages() && after.Status.Live() && !sameClaims(before.Claims, after.Claims) {
		hosts = append(hosts, imagesRow)
		slices.Sort(hosts)
	}
	return hosts
}

// hostsAnew gives the hosts on which after holds what before does not, sorted.
func hostsAnew(before, after reservation.Reservation) []string {
	if !after.Status.Live() || sameClaims(before.Claims, after.Claims) {
		return nil
	}
	left := slices.Clone(before.Claims)
	var hosts []string
	for _, c := range after.Claims {
		i := slices.IndexFunc(left, func(b reservation.Claim) bool {
			return b.Host == c.Host && b.Span.Covers(c.Span) && b.Slices >= c.Slices && (b.Slices == 0) == (c.Slices == 0)
		})
		if i < 0 {
			hosts = append(hosts, c.Host)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
