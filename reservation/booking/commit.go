// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// attempt is a change of one reservation that is being stored. Its entry and the calendar contain
// it from begin on, until applyOutcome or adopt finds out whether it was stored. It is in doubt if
// storing failed with an error that leaves that open.
type attempt struct {
	entry        *entry
	before, next reservation.Reservation // before is empty for a new reservation
	// held contains the claims that the calendar has for the reservation meanwhile; nil means the
	// claims from before the change. If changes are stored together, the first that changes
	// claims contains the claims of all.
	held []calendar.Claim
	// joint is true for a new reservation whose held contains claims of others that move.
	joint bool
	// together lists the attempts that are stored together, this one included.
	together []*attempt
	// more lists the spans in which the project holds more hosts after the change than before, with
	// their number. Of attempts of a project that are stored together, the first has those of all of them.
	more     []excess
	usage    Usage
	cause    reservation.Cause
	key      *reservation.Key
	fallback planning.Fallback // of a new reservation
	pools    []HostVersion     // of the networks whose addresses it claims, when it was decided
	// released are the past claims of before that next does not contain.
	released []reservation.Claim

	// Guarded by memory.mu:
	sent  bool // it names versions of hosts
	doubt bool // it may have been stored or not; the next reading of the records decides
	over  bool // memory no longer contains it, since adopt has newer records
}

// writer stores attempts and updates memory with the outcome.
type writer struct {
	*memory
	claiming locks[string]                   // by host, or project with a limit
	together *job.Together[string, *attempt] // new reservations, by project
	stale    atomic.Int64                    // how often the records refused a commit
	expired  atomic.Int64                    // holds that this process has ended
	moved    atomic.Int64                    // reservations that this process has moved for others
	booked   atomic.Int64                    // waiting reservations that this process has booked
}

func newWriter(m *memory) *writer {
	w := &writer{memory: m}
	w.together = w.companies()
	return w
}

// begin marks changes as being stored together. The caller holds mu, and memory has not changed since the decision.
func (w *writer) begin(attempts ...*attempt) {
	for _, group := range byProject(attempts) {
		w.beginOf(group)
	}
	for _, a := range attempts {
		a.together, a.entry.attempt = attempts, a
		w.attempts[a] = struct{}{}
	}
}

// beginOf sets by how much changes of one project, which are all new reservations or none, change what it holds.
func (w *writer) beginOf(attempts []*attempt) {
	project := attempts[0].next.ProjectID
	attempts[0].more = moreHosts(attempts)
	after := w.held[project].HostSeconds // new reservations are counted already
	for _, a := range attempts {
		a.usage = usageOf(a.before, a.next)
		a.usage.Raises = len(a.more) > 0
		if a.before.ID != "" {
			after += a.usage.HostSeconds
			if !holdsSame(&a.before, &a.next) {
				a.released = reservation.Released(a.before.Claims, a.next.Claims, a.next.Updated)
			}
			w.countMore(a, 1)
		}
	}
	if limit := w.options.Limits.HostSeconds; limit > 0 {
		for _, a := range attempts {
			a.usage.MostHostSeconds = max(limit, after) // the decision may have allowed more than the limit
		}
	}
}

// commit is commitTogether for one attempt.
func (w *writer) commit(ctx context.Context, a *attempt) error {
	return w.commitTogether(ctx, whole{}, a)
}

// whole is what reservations that are stored together belong to, if it is stored with them: a lease, a series, or nothing.
type whole struct {
	lease  *reservation.Lease
	series *reservation.Series
}

// commitTogether stores attempts, and the whole to which they belong, all or none. It updates memory with the outcome.
func (w *writer) commitTogether(ctx context.Context, of whole, attempts ...*attempt) (err error) {
	ctx, end := tracing.Step(ctx, "commit", factsOf(of, attempts)...)
	defer func() { end(err) }()
	hosts := w.claimedTogether(attempts)
	unlock, err := w.claiming.lock(ctx, w.claimingKeys(attempts, hosts)...)
	if err != nil {
		return w.notStored(attempts, err)
	}
	defer unlock()
	c, err := w.commitOf(attempts, hosts)
	if err == nil {
		c.Lease, c.Series = of.lease, of.series
		err = w.options.Records.Commit(ctx, c)
	}
	w.applyOutcome(attempts, c, err)
	switch {
	case errors.Is(err, reservation.ErrStale):
		w.stale.Add(1)
	case err == nil:
		w.countStored(attempts)
		w.wake()
		if slices.ContainsFunc(attempts, (*attempt).isNews) {
			job.Poke(w.news)
		}
		if w.options.Announce != nil {
			w.options.Announce()
		}
	}
	return err
}

// countStored counts what happened to owners without their request.
func (w *writer) countStored(attempts []*attempt) {
	for _, a := range attempts {
		switch a.cause.Action {
		case reservation.ActionBook:
			w.booked.Add(1)
		case reservation.ActionExpire:
			if a.before.Status != reservation.Waiting {
				w.expired.Add(1)
			}
		case reservation.ActionMove:
			w.moved.Add(1)
		}
	}
}

// notStored removes attempts from memory that were not sent because of an error, and returns the
// error.
func (w *writer) notStored(attempts []*attempt, err error) error {
	err = fmt.Errorf("%w: %w", errNotSent, err)
	w.applyOutcome(attempts, Commit{}, err)
	return err
}

// factsOf returns what the trace of a commit states about it. A lease may be stored without
// reservations.
func factsOf(of whole, attempts []*attempt) []slog.Attr {
	facts := []slog.Attr{slog.Int("reservations", len(attempts))}
	if of.lease != nil {
		facts = append(facts, slog.String("lease_id", of.lease.ID))
	}
	if of.series != nil {
		facts = append(facts, slog.String("series_id", of.series.ID))
	}
	if len(attempts) > 0 { // the first stands for all of a lease
		facts = append(facts, slog.String("reservation_id", attempts[0].next.ID))
	}
	return facts
}

// isNews reports whether the attempt changes more than the progress of an event, so that others
// must react. An end does, since it makes room.
func (a *attempt) isNews() bool {
	switch a.cause.Action {
	case reservation.ActionBeginEvent, reservation.ActionPutOff, reservation.ActionStart, reservation.ActionWarnOfEnd:
		return false
	}
	return true
}

// errNotSent is the error of an attempt that was certainly not stored.
var errNotSent = errors.New("nothing was stored")

// commitOf returns the commit with the versions on which the attempts were decided, or ErrStale if
// the decision no longer holds. Until the attempts are over, nothing else in this process claims
// time on their hosts, and claims made since the decision have left room for them. But they may
// have used up the limit of the project, so commitOf checks it again.
func (w *writer) commitOf(attempts []*attempt, hosts []string) (Commit, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range attempts {
		if a.over || !w.keepsLimit(a) {
			return Commit{}, reservation.ErrStale
		}
	}
	c := Commit{Hosts: make([]HostVersion, len(hosts))}
	for _, a := range attempts {
		a.sent = true
		c.Revisions = append(c.Revisions, Revision{a.next, a.cause, a.released})
		if a.key != nil {
			c.Key = a.key
		}
		u := c.usageOf(a.next.ProjectID)
		*u = u.and(a.usage)
		if w.isLimited(a) {
			u.Known = new(w.projects[a.next.ProjectID])
		}
	}
	for i, host := range hosts {
		c.Hosts[i] = HostVersion{host, w.known[host]}
	}
	return c, c.addPools(attempts)
}

// usageOf returns the usage of a project, the first revision being there already.
func (c *Commit) usageOf(project string) *Usage {
	if project == c.Revisions[0].Reservation.ProjectID {
		return &c.Usage
	}
	i := slices.IndexFunc(c.Others, func(u ProjectUsage) bool { return u.Project == project })
	if i < 0 {
		i, c.Others = len(c.Others), append(c.Others, ProjectUsage{Project: project})
	}
	return &c.Others[i].Usage
}

// and returns the usage of two changes together.
func (u Usage) and(more Usage) Usage {
	u.Hosts, u.HostSeconds = u.Hosts+more.Hosts, u.HostSeconds+more.HostSeconds
	u.MostHostSeconds = max(u.MostHostSeconds, more.MostHostSeconds)
	u.Raises = u.Raises || more.Raises
	return u
}

// applyOutcome leaves the new states in memory if they were stored, and the old ones if they were
// not. While that is unknown, memory contains both, until the records have been read.
func (w *writer) applyOutcome(attempts []*attempt, c Commit, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	overtaken := slices.ContainsFunc(attempts, func(a *attempt) bool { return a.over })
	// The one that holds the room of all leaves it first.
	holding := func(a *attempt) int { return min(len(a.held), 1) }
	for _, a := range slices.SortedStableFunc(slices.Values(attempts), func(a, b *attempt) int { return holding(b) - holding(a) }) {
		w.settle(a, err)
	}
	if err != nil || overtaken {
		return // what memory read since then has its own versions
	}
	for _, h := range c.Hosts {
		w.known[h.Host] = max(w.known[h.Host], h.Version+1)
	}
	for _, u := range c.Usages() {
		if u.Known != nil {
			w.projects[u.Project] = max(w.projects[u.Project], *u.Known+1)
		}
	}
}

// settle applies the outcome of one attempt; the caller holds mu. Until the attempts of a commit are
// all settled, each of them has the room for its old and its new claims.
func (w *writer) settle(a *attempt, err error) {
	switch {
	case a.over:
	case errors.Is(err, errNotSent), errors.Is(err, reservation.ErrStale), errors.Is(err, reservation.ErrKeyUsed):
		w.release(w.holding(a.entry))
		if a.before.ID != "" {
			w.restoreClaims(&a.before)
		}
		w.revert(a)
	case err != nil:
		a.doubt = true
	default:
		if !a.holdsNext() {
			w.release(w.holding(a.entry))
			if a.next.Status.Live() {
				w.restoreClaims(&a.next)
			}
		}
		w.put(a.next)
	}
}

// holdsNext reports whether the calendar contains the claims of next already: if the reservation is
// new, or if its claims have not changed.
func (a *attempt) holdsNext() bool {
	if !a.next.Status.Live() {
		return false
	}
	if a.before.ID == "" {
		return !a.joint
	}
	return a.held == nil && holdsSame(&a.before, &a.next)
}

// holdsSame reports whether two states of a reservation hold the same. For most events the claims
// are the same slice.
func holdsSame(a, b *reservation.Reservation) bool {
	claims := len(a.Claims) == len(b.Claims) && (len(a.Claims) == 0 || &a.Claims[0] == &b.Claims[0] || slices.Equal(a.Claims, b.Claims))
	return claims && a.Resources.Equal(b.Resources)
}

// claimedTogether returns, sorted, what claimedAnew returns for the attempts.
func (w *writer) claimedTogether(attempts []*attempt) (hosts []string) {
	for _, a := range attempts {
		hosts = append(hosts, w.claimedAnew(a.before, a.next)...)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// claimedAnew returns, sorted, the hosts on which after claims time that before does not, imagesRow if the claims of
// a reservation with an image change, and holdsRow for a hold that begins, and for a new reservation that waits.
func (m *memory) claimedAnew(before, after reservation.Reservation) []string {
	hosts := hostsAnew(before, after)
	if after.Image != "" && m.looksAtImages() && after.Status.Live() && !holdsSame(&before, &after) {
		hosts = append(hosts, imagesRow)
	}
	if before.HeldUntil() == 0 && after.HeldUntil() != 0 || before.ID == "" && after.Status == reservation.Waiting {
		hosts = append(hosts, holdsRow(after.ProjectID))
	}
	slices.Sort(hosts)
	return hosts
}

// hostsAnew returns, sorted, the hosts on which after claims time that before does not.
func hostsAnew(before, after reservation.Reservation) []string {
	if !after.Status.Live() || holdsSame(&before, &after) {
		return nil
	}
	left := make(map[string][]reservation.Claim, len(before.Claims))
	if after.Resources.Fits(before.Resources) { // otherwise a claim of the same span is larger
		for _, b := range before.Claims {
			left[b.Host] = append(left[b.Host], b)
		}
	}
	var hosts []string
	for _, c := range after.Claims {
		i := slices.IndexFunc(left[c.Host], func(b reservation.Claim) bool {
			return b.Span.Covers(c.Span) && b.Slices >= c.Slices && (b.Slices == 0) == (c.Slices == 0)
		})
		if i < 0 {
			hosts = append(hosts, c.Host)
			continue
		}
		left[c.Host] = slices.Delete(left[c.Host], i, i+1)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
