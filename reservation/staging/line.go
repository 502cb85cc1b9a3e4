// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// line is the transfers of a state that one repository sends one after the other, without limits on
// pools. A further demand changes only what comes later, so line finds out whether a transfer is then
// late without laying out all of them. Limits of links do not matter beside a single repository,
// except for the duration of each transfer.
//
// Two facts make this possible. Earliest deadline first is optimal here, so a strategy has no layout
// if that has none. And hopeless transfers yield to others: a layout has a late transfer that is
// not hopeless only if the others are late without them too.
type line struct {
	site Site
	now  span.Instant
	// free is the instant from which no transfer under way occupies the channel.
	free span.Instant
	// waiting are the transfers that are not under way, and jobs those of them that are not
	// hopeless, by deadline.
	waiting, jobs []job
	// places contains, by transfer of the state, its index in jobs; -1 if it is not there.
	places []int32
	late   []int32 // indices of the jobs that are late
	delays []int64 // see delaysOf
	// end is when all transfers have ended if they run one after the other, without a lifetime.
	end span.Instant
}

// job is a transfer that waits for the channel.
type job struct {
	deadline, release, due span.Instant
	seconds                int64
	free                   span.Instant // from when the channel is free of the jobs before it
	transfer               int32        // index in the state
}

// newLine returns the line of a state, or nil if line does not describe what the site does.
func newLine(site Site, s State) *line {
	if len(site.Repositories) != 1 || site.Limit > 0 {
		return nil
	}
	l := &line{site: site, now: s.At, free: s.At, end: s.At, places: make([]int32, len(s.Transfers)), waiting: make([]job, 0, len(s.Transfers))}
	for i := range s.Transfers {
		if t := &s.Transfers[i]; t.Started {
			if t.Start > s.At {
				return nil
			}
			l.free = max(l.free, t.End)
		}
	}
	l.end = l.free
	for i := range s.Transfers {
		t := &s.Transfers[i]
		if l.places[i] = -1; t.Started {
			continue
		}
		j := l.job(t)
		l.end = l.end.Add(j.seconds)
		j.transfer = int32(i)
		l.waiting = append(l.waiting, j)
	}
	l.order(s.Transfers)
	return l
}

// order sorts the jobs and lays them out.
func (l *line) order(transfers []Transfer) {
	byDeadline := func(a, b job) int {
		return cmp.Or(cmp.Compare(a.deadline, b.deadline), cmp.Compare(transfers[a.transfer].Entered, transfers[b.transfer].Entered))
	}
	if !slices.IsSortedFunc(l.waiting, byDeadline) {
		slices.SortStableFunc(l.waiting, byDeadline)
	}
	l.jobs = l.waiting
	if slices.ContainsFunc(l.waiting, func(j job) bool { return j.hopeless() }) {
		l.jobs = slices.DeleteFunc(slices.Clone(l.waiting), func(j job) bool { return j.hopeless() })
	}
	free := l.free
	for i := range l.jobs {
		j := &l.jobs[i]
		j.free, l.places[j.transfer] = free, int32(i)
		var end span.Instant
		if free, end = j.run(free); end > j.due {
			l.late = append(l.late, int32(i))
		}
	}
	l.delays = delaysOf(l.jobs)
}

func (l *line) job(t *Transfer) job {
	return job{deadline: t.Deadline, release: l.site.release(t, l.now), due: l.site.due(t), seconds: l.site.fastest(t)}
}

// hopeless is Site.hopeless.
func (j *job) hopeless() bool { return j.release.Add(j.seconds) > j.due }

// run returns the end of a job on a channel that is free from an instant on, and from when the
// channel is free then. A job that takes no time never waits.
func (j *job) run(free span.Instant) (after, end span.Instant) {
	if j.seconds == 0 {
		return free, j.release
	}
	end = max(free, j.release).Add(j.seconds)
	return end, end
}

// hurt returns a transfer that is late in the state before after a change, other than hopeless ones.
// If there is none, hopeless reports whether the change has a hopeless one.
func (l *line) hurt(before *State, c change) (late *Transfer, hopeless bool) {
	if len(c.fresh) == 0 {
		return nil, false // no transfer is late because another one is not needed
	}
	more := make([]job, 0, len(c.fresh))
	for i := range c.fresh {
		j := l.job(&c.fresh[i])
		if j.transfer = int32(^i); j.hopeless() {
			hopeless = true
		} else {
			more = append(more, j)
		}
	}
	first, end := l.firstLate(c.fresh[0].Deadline, more, l.indices(c.gone))
	switch {
	case first == nil:
		return nil, hopeless
	case first.transfer < 0:
		late = new(c.fresh[^first.transfer])
	default:
		late = new(before.Transfers[first.transfer])
	}
	late.End = end
	return late, false
}

// indices returns the indices in jobs, sorted, of transfers of the state.
func (l *line) indices(transfers []int) []int {
	var list []int
	for _, t := range transfers {
		if i := l.places[t]; i >= 0 {
			list = append(list, int(i))
		}
	}
	slices.Sort(list)
	return list
}

// firstLate returns the first job that is late, and its end, if more jobs have this deadline, and
// the jobs with the indices gone are left out; nil if none is late.
func (l *line) firstLate(deadline span.Instant, more []job, gone []int) (late *job, end span.Instant) {
	at := sort.Search(len(l.jobs), func(i int) bool { return l.jobs[i].deadline > deadline })
	i := at
	if len(gone) > 0 {
		i = min(i, gone[0])
	}
	if len(l.late) > 0 && int(l.late[0]) < i {
		return l.lateFrom(0)
	}
	for free := l.freeAt(i); ; i++ {
		if i == at {
			for k := range more {
				if free, end = more[k].run(free); end > more[k].due {
					return &more[k], end
				}
			}
		}
		if i == len(l.jobs) {
			return nil, 0
		}
		j := &l.jobs[i]
		switch {
		case len(gone) > 0 && gone[0] == i:
			gone = gone[1:]
		case i >= at && len(gone) == 0 && free == j.free: // from here on all is as before
			return l.lateFrom(i)
		default:
			if free, end = j.run(free); end > j.due {
				return j, end
			}
		}
	}
}

// freeAt returns from when the channel is free of the jobs before that with the index i.
func (l *line) freeAt(i int) span.Instant {
	switch {
	case i < len(l.jobs):
		return l.jobs[i].free
	case i == 0:
		return l.free
	}
	last := &l.jobs[i-1]
	free, _ := last.run(last.free)
	return free
}

// lateFrom returns the first job at or after the index i that is late without a change, and its end.
func (l *line) lateFrom(i int) (late *job, end span.Instant) {
	k, _ := slices.BinarySearch(l.late, int32(i))
	if k == len(l.late) {
		return nil, 0
	}
	late = &l.jobs[l.late[k]]
	_, end = late.run(late.free)
	return late, end
}

// following returns when a transfer of the image to each of the nodes, one after the other, would
// have ended after all others.
func (l *line) following(image Image, nodes []string) span.Instant {
	end := l.end
	for _, node := range nodes {
		end = end.Add(l.site.fastest(&Transfer{Image: image, Node: node}))
	}
	return end
}
