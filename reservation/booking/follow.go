// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// followLimit bounds one read of the log, and one comparison with all records.
const followLimit = time.Minute

// Following reads what other replicas have stored, and adds it to memory.
type Following struct {
	*memory
	reading contextMutex // held while the records are read
	follows job.Shared[struct{}]
}

func newFollowing(m *memory) *Following {
	f := &Following{memory: m, reading: newContextMutex()}
	f.follows = job.Shared[struct{}]{Limit: followLimit, Read: func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f.poll(ctx, Recall{})
	}}
	return f
}

// readAll reads all live reservations into a memory that has none.
func (f *Following) readAll(ctx context.Context) error {
	asked := f.options.Now()
	all, err := f.options.Records.Recall(ctx, Recall{All: true, Projects: f.projectVersion})
	if err != nil {
		return fmt.Errorf("load reservations: %w", err)
	}
	if err := f.load(all.Reservations); err != nil {
		return err
	}
	f.openings.note(f.liveIndex.waiting, planning.Freed{All: true})
	for _, h := range all.Hosts {
		f.known[h.Host] = h.Version
	}
	for _, p := range all.Projects {
		f.projects[p.Project] = p.Version
	}
	f.logCursor.begin(all.Log)
	f.followed = asked
	return nil
}

// Follow reads what other replicas have stored, and adds it to memory.
func (f *Following) Follow(ctx context.Context) error {
	_, err := f.follows.Get(ctx)
	return err
}

// Resync compares all reservations and hosts in memory with the records, to find what Follow may
// have missed.
func (f *Following) Resync(ctx context.Context) error {
	if err := f.reading.lock(ctx); err != nil {
		return err
	}
	defer f.reading.unlock()
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	return f.resync(ctx)
}

func (f *Following) resync(ctx context.Context) (err error) {
	for range 3 { // reservations that are stored during the read may be over in the answer
		live, stored := f.versions()
		if err = f.recall(ctx, Recall{All: true, IDs: live}, stored); !errors.Is(err, errContradiction) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("compare the reservations with the records: %w", err)
	}
	return nil
}

// versions returns the ids of the live reservations in memory, and the versions of those
// without a change in flight.
func (f *Following) versions() (live []string, stored map[string]int64) {
	f.mu.lockToLook()
	s := f.stateNow()
	changing := make(map[string]bool, len(f.attempts))
	for a := range f.attempts {
		changing[a.next.ID] = true
	}
	f.mu.Unlock()
	stored = make(map[string]int64)
	for _, some := range []iter.Seq[*reservation.Reservation]{s.live.byStart.until(span.Forever), s.live.waiting.all()} {
		for r := range some {
			if live = append(live, r.ID); !changing[r.ID] {
				stored[r.ID] = r.Version
			}
		}
	}
	return live, stored
}

// poll reads the change log and what q selects, and adds it to memory.
func (f *Following) poll(ctx context.Context, q Recall) error {
	if err := f.reading.lock(ctx); err != nil {
		return err
	}
	defer f.reading.unlock()
	err := f.recall(ctx, q, nil)
	if errors.Is(err, errContradiction) {
		// A reservation in memory that is over contradicts the answer, since the log does not
		// contain its end yet.
		err = f.resync(ctx)
	}
	if errors.Is(err, errContradiction) {
		err = &fault.Error{
			Kind: fault.Unavailable, Message: "the records change faster than they can be read; try again in a moment",
			RetryAfter: time.Second, Err: err,
		}
	}
	return err
}

// errContradiction is the error if what was read does not fit together with what memory contains.
var errContradiction = errors.New("the records contradict what is known")

// recall reads the records and adds the answer to memory. It removes reservations that were
// selected by id but are not stored, if memory still has them in the version in stored.
func (f *Following) recall(ctx context.Context, q Recall, stored map[string]int64) error {
	f.mu.RLock()
	q.Since, q.Known = max(q.Since, f.logCursor.low), f.version
	q.IDs = slices.Clone(q.IDs)
	if f.options.Limits.Hosts > 0 {
		q.Projects = f.projectVersion
	}
	var doubts []*attempt
	for a := range f.attempts {
		if a.doubt {
			doubts, q.IDs = append(doubts, a), append(q.IDs, a.next.ID)
		}
	}
	f.mu.RUnlock()
	asked := f.options.Now()
	got, err := f.options.Records.Recall(ctx, q)
	if err != nil {
		return fmt.Errorf("read what has changed: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.adopt(got, doubts, stored); err != nil {
		return err
	}
	if !q.All && q.Since == f.logCursor.low {
		f.logCursor.advance(got.Log, f.elapsed())
		f.followed = max(f.followed, asked)
	}
	return nil
}

// version returns the version of a stored reservation in memory, or the one in which it ended.
// A change in flight does not count as stored.
func (f *Following) version(id string) int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if e, ok := f.live[id]; ok {
		return e.stored()
	}
	return f.tombstones.version(id)
}

// stored returns the version of the reservation that is certainly stored.
func (e *entry) stored() int64 {
	if e.attempt != nil {
		return e.attempt.before.Version
	}
	return e.r.Version
}

// adopt adds the records of one moment to memory, all of them or none; the caller holds mu. doubts
// are the attempts in doubt whose reservations were selected: those that the records do not contain
// were not stored.
func (f *Following) adopt(got Recalled, doubts []*attempt, stored map[string]int64) error {
	x := f.exchangeOf(got, doubts)
	x.gone = f.gone(got, stored)
	if err := f.exchange(x); err != nil {
		return err
	}
	for _, a := range x.reverted {
		f.revert(a)
	}
	for _, e := range x.gone {
		f.tell(e, nil)
		f.openings.learn(f.liveIndex.waiting, e, nil, f.options.Now())
		f.forget(e)
	}
	for _, r := range x.news {
		f.put(r)
	}
	moved := len(x.reverted)+len(x.gone)+len(x.news) > 0
	for _, h := range got.Hosts {
		if f.known[h.Host] < h.Version {
			f.known[h.Host], moved = h.Version, true
		}
	}
	for _, p := range got.Projects {
		if f.projects[p.Project] < p.Version {
			f.projects[p.Project], moved = p.Version, true
		}
	}
	if moved {
		f.adoptions.Add(1)
		f.wake()
		job.Poke(f.news)
	}
	return nil
}

// exchange is what memory must remove and add to agree with the records.
type exchange struct {
	news     []reservation.Reservation // stored states that memory does not have
	gone     []*entry                  // reservations that the records no longer have
	reverted []*attempt                // changes that were not stored, and will not be
}

func (f *Following) exchangeOf(got Recalled, doubts []*attempt) exchange {
	var x exchange
	touched, strange := make(map[string]bool), make(map[string]bool)
	lags := f.lags(got, false)
	for _, r := range got.Reservations {
		e, live := f.live[r.ID]
		switch {
		case live && e.stored() >= r.Version, !live && f.tombstones.version(r.ID) >= r.Version:
			continue
		case !live && !r.Status.Live():
			f.tombstones.add(r.ID, r.Version)
			continue
		case !live && slices.ContainsFunc(r.HostNames(), lags):
			continue // it ended before memory last read all live reservations of these hosts
		}
		x.news, touched[r.ID] = append(x.news, r), true
		f.admit(r.HostNames())
		if own := live && e.attempt != nil && e.attempt.next.Version == r.Version && slices.Equal(e.attempt.next.Claims, r.Claims); !own {
			for _, host := range f.versioned(&r) {
				strange[host] = true
			}
		}
	}
	raised := make(map[string]bool)
	for _, h := range got.Hosts {
		raised[h.Host] = f.known[h.Host] < h.Version
	}
	failed := func(a *attempt) bool {
		// The records refuse an attempt that is based on an older version of a host. An attempt
		// that has not named a version yet was decided without these claims of other replicas.
		refused := slices.ContainsFunc(f.claimedAnew(a.before, a.next), func(host string) bool {
			return raised[host] && (a.sent || strange[host])
		})
		return refused || touched[a.next.ID] || slices.Contains(doubts, a)
	}
	for a := range f.attempts {
		if !touched[a.next.ID] && slices.ContainsFunc(a.together, failed) {
			x.reverted = append(x.reverted, a)
		}
	}
	return x
}

// gone returns the entries to remove: those that are not stored, if they still have their version
// in stored. It keeps an entry if the answer is older than memory and may not contain the entry
// yet.
func (f *Following) gone(got Recalled, stored map[string]int64) (list []*entry) {
	lags := f.lags(got, true)
	for _, id := range got.Gone {
		version, asked := stored[id]
		e, live := f.live[id]
		if !asked || !live || e.attempt != nil || e.r.Version != version {
			continue
		}
		if !slices.ContainsFunc(e.r.HostNames(), lags) {
			list = append(list, e)
		}
	}
	return list
}

// lags returns a function that reports whether the answer about a host is older than memory: it was
// read before something that memory contains was stored, or on a server that has not received it
// yet. For a host that the answer does not contain, the function returns unnamed.
func (f *Following) lags(got Recalled, unnamed bool) func(host string) bool {
	versions := make(map[string]int64, len(got.Hosts))
	for _, h := range got.Hosts {
		versions[h.Host] = h.Version
	}
	return func(host string) bool {
		if version, named := versions[host]; named {
			return version < f.known[host]
		}
		return unnamed
	}
}

// exchange replaces claims in the calendar. After an error the calendar is unchanged.
func (f *Following) exchange(x exchange) error {
	var out []*entry
	var in [][]calendar.Claim
	for _, a := range x.reverted {
		if out = append(out, a.entry); a.before.ID != "" {
			in = append(in, f.calendarClaims(&a.before, a.before.Claims))
		}
	}
	out = append(out, x.gone...)
	for _, r := range x.news {
		if e, live := f.live[r.ID]; live {
			out = append(out, e)
		}
		if r.Status.Live() {
			in = append(in, f.calendarClaims(&r, r.Claims))
		}
	}
	for _, e := range out {
		f.release(f.holding(e))
	}
	for i, claims := range in {
		err := f.calendar.Restore(claims...)
		if err == nil {
			continue
		}
		for _, entered := range in[:i] {
			f.release(entered)
		}
		for _, e := range out {
			f.restore(f.holding(e))
		}
		return fmt.Errorf("%w: %w", errContradiction, err)
	}
	return nil
}

func (f *Following) elapsed() time.Duration {
	if f.options.Elapsed == nil {
		return time.Duration(f.options.Now()) * time.Second
	}
	return f.options.Elapsed()
}
