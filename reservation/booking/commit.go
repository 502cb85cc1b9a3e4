package booking

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// tries bounds how often a decision is made anew because others were faster. Each
// time somebody else's was stored.
const tries = 20

// attempt is a change of one reservation on its way to the records.
type attempt struct {
	entry        *entry
	before, next reservation.Reservation // before is empty for a new reservation
	// held is what the calendar has for the reservation meanwhile; nil where that
	// is the claims of before.
	held  []calendar.Claim
	cause reservation.Cause
	key   *reservation.Key
	// outdated says that memory has learned of others' claims on its hosts since it
	// was decided; guarded by Desk.mu.
	outdated bool
}

// begin notes that a change of a reservation is in flight; mu is held.
func (d *Desk) begin(a *attempt) *attempt {
	a.entry.busy = true
	d.inFlight[a] = struct{}{}
	return a
}

// commit stores the attempt and settles what memory holds of it.
func (d *Desk) commit(ctx context.Context, a *attempt) error {
	hosts := claimedAnew(a.before.Claims, a.next.Claims)
	defer d.claiming.lock(hosts...)()
	c, err := d.commitOf(a, hosts)
	if err == nil {
		err = d.options.Records.Commit(ctx, c)
	}
	d.settle(a, c, err)
	if err == nil {
		d.wake()
		if d.options.Announce != nil {
			d.options.Announce()
		}
	}
	return err
}

// commitOf says what the attempt was decided on, unless that is no longer so. Nobody
// else here claims time on hosts until it is settled; what was claimed here since
// the decision left room for it.
func (d *Desk) commitOf(a *attempt, hosts []string) (Commit, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if a.outdated {
		return Commit{}, reservation.ErrStale
	}
	c := Commit{Reservation: a.next, Key: a.key, Hosts: make([]HostVersion, len(hosts)), Cause: a.cause}
	for i, host := range hosts {
		c.Hosts[i] = HostVersion{host, d.known[host]}
	}
	after := d.held[a.next.ProjectID]
	if a.before.ID != "" {
		after.add(&a.before, -1)
		after.add(&a.next, 1)
		c.Usage.Add.add(&a.before, -1)
	}
	if a.next.Status.Live() {
		c.Usage.Add.add(&a.next, 1)
	} else {
		after.add(&a.next, -1)
	}
	c.Usage.Most = d.options.Limits.most(after)
	return c, nil
}

// most is what a project may hold once it holds after: a decision that went over a
// limit had leave to do so.
func (l Limits) most(after Held) (most Held) {
	if l.Hosts > 0 {
		most.Hosts = max(l.Hosts, after.Hosts)
	}
	if l.HostSeconds > 0 {
		most.HostSeconds = max(l.HostSeconds, after.HostSeconds)
	}
	return most
}

// settle puts what was stored in place, or what was there before.
func (d *Desk) settle(a *attempt, c Commit, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.held != nil {
		d.release(a.held)
	}
	switch {
	case err == nil && !a.next.Status.Live():
		d.release(d.calendarClaims(&a.before, a.before.Claims))
		d.forget(a.entry)
		d.left.bury(a.next.ID, a.next.Version)
	case err == nil:
		if a.held != nil {
			d.retake(&a.next)
		}
		d.replace(a.entry, a.next)
		d.learnAfter(c.Hosts)
	case a.before.ID == "":
		d.forget(a.entry)
	case a.held != nil:
		d.retake(&a.before)
	}
	if err != nil && !errors.Is(err, reservation.ErrStale) && !errors.Is(err, reservation.ErrKeyUsed) {
		d.doubtful[a.next.ID] = true
	}
	a.entry.busy = false
	delete(d.inFlight, a)
	close(d.settled)
	d.settled = make(chan struct{})
}

// learn takes over versions of hosts whose claims memory has by now, and says
// whether one was new. What is in flight on such a host was decided without those
// claims.
func (d *Desk) learn(hosts []HostVersion) (moved bool) {
	raised := make(map[string]bool)
	for _, h := range hosts {
		if d.known[h.Host] < h.Version {
			d.known[h.Host], raised[h.Host] = h.Version, true
		}
	}
	for a := range d.inFlight {
		a.outdated = a.outdated || slices.ContainsFunc(a.next.Claims, func(c reservation.Claim) bool { return raised[c.Host] })
	}
	return len(raised) > 0
}

// learnAfter takes over the versions that a commit has made.
func (d *Desk) learnAfter(hosts []HostVersion) {
	for _, h := range hosts {
		d.known[h.Host] = max(d.known[h.Host], h.Version+1)
	}
}

// claimedAnew gives the hosts on which after claims what before does not, sorted.
func claimedAnew(before, after []reservation.Claim) []string {
	var hosts []string
	for _, c := range after {
		if !slices.Contains(before, c) {
			hosts = append(hosts, c.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// retry decides whether a decision is made again.
type retry struct {
	fresh bool // memory is not older than the request
	count int
}

// after reads what has changed where err may come from what memory did not know.
// It gives nil where the decision is to be made again, else what to answer.
func (t *retry) after(ctx context.Context, d *Desk, err error, q Recall) error {
	_, refused := errors.AsType[*reservation.Refusal](err)
	switch {
	case refused && !t.fresh:
		t.fresh = true
		moved, pollErr := d.poll(ctx, Recall{})
		if pollErr != nil {
			return pollErr
		}
		if !moved {
			return err
		}
		return nil
	case !errors.Is(err, reservation.ErrStale):
		return err
	}
	t.fresh = true
	if t.count++; t.count == tries {
		return &fault.Error{
			Kind: fault.Unavailable, Message: "the hosts asked for are in great demand; try again in a moment",
			RetryAfter: time.Second, Err: err,
		}
	}
	if !d.limited() {
		q.Project = ""
	}
	_, err = d.poll(ctx, q)
	return err
}

// limited says that a limit counts what a project holds together.
func (d *Desk) limited() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.options.Limits.Hosts > 0 || d.options.Limits.HostSeconds > 0
}
