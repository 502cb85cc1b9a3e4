package workload

import (
	"container/heap"
	"errors"
	"io"
	"math/rand/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Reserved is a Stream of which a share of the jobs is asked for ahead. Such a job begins when
// it came before, and is submitted earlier, so that what is used when stays the same.
type Reserved struct {
	from        Stream
	chance      *rand.Rand
	share       float64
	least, most int64
	waiting     submissions
	entered     int64
	next        *Job // the first that is not waiting yet
	end         error
}

// Reserve turns a share of the jobs of a stream, from 0 to 1, into reservations that are asked
// for from least to most seconds ahead, uniformly, but not before 0. Jobs that are reserved
// already stay as they are. Whether a job is among them, and how far ahead, is drawn in the
// same way whatever the share is, so that those of a smaller share are among those of a larger.
func Reserve(from Stream, chance *rand.Rand, share float64, least, most int64) (*Reserved, error) {
	switch {
	case !(share >= 0 && share <= 1):
		return nil, fault.Field("share", "must be from 0 to 1, not %v", share)
	case least < 0 || most < least:
		return nil, fault.Field("ahead", "must be from 0 s on, and the least not more than the most")
	}
	return &Reserved{from: from, chance: chance, share: share, least: least, most: most}, nil
}

// Next gives the next job by its new Submit.
func (s *Reserved) Next() (Job, error) {
	for s.end == nil && (len(s.waiting) == 0 || s.next == nil || s.next.Submit-s.most < s.waiting[0].job.Submit) {
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
	switch {
	case len(s.waiting) > 0:
		return heap.Pop(&s.waiting).(submission).job, nil
	case errors.Is(s.end, io.EOF):
		return Job{}, io.EOF
	default:
		return Job{}, s.end
	}
}

// enter draws whether a job is asked for ahead.
func (s *Reserved) enter(job Job) {
	drawn, ahead := s.chance.Float64(), s.least+s.chance.Int64N(s.most-s.least+1)
	if drawn < s.share && !job.Reserved {
		job.Reserved, job.Start = true, job.Submit
		job.Submit = min(job.Submit, max(0, job.Submit-ahead))
	}
	s.entered++
	heap.Push(&s.waiting, submission{job, s.entered})
}

// submissions is a heap of jobs by Submit, equals as they came.
type submissions []submission

type submission struct {
	job     Job
	entered int64
}

func (h submissions) Len() int { return len(h) }
func (h submissions) Less(i, j int) bool {
	if h[i].job.Submit != h[j].job.Submit {
		return h[i].job.Submit < h[j].job.Submit
	}
	return h[i].entered < h[j].entered
}
func (h submissions) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *submissions) Push(x any)   { *h = append(*h, x.(submission)) }
func (h *submissions) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
