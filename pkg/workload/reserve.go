// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math/rand/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Reserved is a Stream that turns a share of the jobs of another stream into reservations. Such a
// job starts at its former Submit and has an earlier Submit, so the load stays the same.
type Reserved struct {
	from        Stream
	chance      *rand.Rand
	share       float64
	least, most int64
	waiting     bySubmit
	next        *Job // the first job that is not waiting yet
	end         error
}

// Reserve turns a share of the jobs of a stream, from 0 to 1, into reservations. They are requested
// between least and most seconds ahead, uniformly distributed, but not before second 0. Jobs that
// are Reserved already stay as they are. The random numbers do not depend on the share: the
// reservations of a smaller share are also reservations with a larger one.
func Reserve(from Stream, chance *rand.Rand, share float64, least, most int64) (*Reserved, error) {
	switch {
	case !(share >= 0 && share <= 1):
		return nil, fault.Field("share", "must be from 0 to 1, not %v", share)
	case least < 0 || most < least:
		return nil, fault.Field("ahead", "must be at least 0 s, and the least not more than the most")
	}
	return &Reserved{from: from, chance: chance, share: share, least: least, most: most}, nil
}

// Next returns the next job in the order of the new Submit.
func (s *Reserved) Next() (Job, error) {
	for s.end == nil && (s.waiting.len() == 0 || s.next == nil || s.next.Submit-s.most < s.waiting.first()) {
		if s.next != nil {
			s.enter(*s.next)
			s.next = nil
		}
		switch job, err := s.from.Next(); {
		case err != nil:
			s.end = err
		default:
			s.next = &job
		}
	}
	if s.waiting.len() > 0 {
		return s.waiting.take(), nil
	}
	return Job{}, s.end
}

// enter draws whether a job becomes a reservation, and buffers it.
func (s *Reserved) enter(job Job) {
	drawn, ahead := s.chance.Float64(), s.least+s.chance.Int64N(s.most-s.least+1)
	if drawn < s.share && !job.Reserved {
		job.Reserved, job.Start = true, job.Submit
		job.Submit = min(job.Submit, max(0, job.Submit-ahead))
	}
	s.waiting.put(job)
}
