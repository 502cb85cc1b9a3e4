// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"container/heap"
	"errors"
	"io"
)

// DefaultAhead is the number of jobs that a reader buffers to sort them by submission.
const DefaultAhead = 100_000

// TooLate is the reason to skip a job that is so far out of order that the buffer cannot sort it.
const TooLate = "is out of order by more than the reader looks ahead"

// AfterGap is the reason to skip a job whose submission is too long after the job before it; see
// OpenOptions.Longest.
const AfterGap = "comes longer after the job before it than the limit"

// InOrder returns the jobs of a stream sorted by Submit; jobs with equal Submit keep their order.
// It buffers ahead jobs. A job that is further out of order is skipped and counted.
func InOrder(s Stream, ahead int) *Ordered {
	return &Ordered{stream: s, ahead: max(1, ahead)}
}

// Ordered is a Stream sorted by Submit.
type Ordered struct {
	stream Stream
	ahead  int
	ended  error // the error of the stream after its last job
	// mostGap is the maximum time between two jobs in seconds; 0 means no bound.
	mostGap int64

	waiting bySubmit
	last    int64 // the Submit of the last returned job
	late    ledger
}

// Next implements Stream. An error of the underlying stream is returned after the jobs before it.
func (o *Ordered) Next() (Job, error) {
	for {
		for o.ended == nil && o.waiting.len() < o.ahead {
			job, err := o.stream.Next()
			switch {
			case err != nil:
				o.ended = err
			case o.late.jobs > 0 && job.Submit < o.last:
				o.late.skip(TooLate, job.Line)
			default:
				o.waiting.put(job)
			}
		}
		if o.waiting.len() == 0 {
			return Job{}, o.ended
		}
		job := o.waiting.take()
		if o.mostGap > 0 && o.late.jobs > 0 && job.Submit-o.last > o.mostGap {
			o.late.skip(AfterGap, job.Line)
			continue
		}
		o.last = job.Submit
		o.late.jobs++
		return job, nil
	}
}

// Late counts the skipped jobs. Its Jobs is the number of returned jobs.
func (o *Ordered) Late() Account { return o.late.account() }

// bySubmit is a queue of jobs, sorted by Submit; jobs with equal Submit keep the order in which
// they were put.
type bySubmit struct {
	heap turns
	jobs []Job // in places, so that the heap moves little
	free []int // places
	came int64
}

func (q *bySubmit) len() int { return len(q.heap) }

// first returns the Submit of the first job.
func (q *bySubmit) first() int64 { return q.heap[0].submit }

// put adds a job to the queue.
func (q *bySubmit) put(job Job) {
	place := len(q.jobs)
	if n := len(q.free); n > 0 {
		place, q.free = q.free[n-1], q.free[:n-1]
		q.jobs[place] = job
	} else {
		q.jobs = append(q.jobs, job)
	}
	q.came++
	heap.Push(&q.heap, turn{job.Submit, q.came, place})
}

// take removes and returns the first job.
func (q *bySubmit) take() Job {
	place := heap.Pop(&q.heap).(turn).place
	job := q.jobs[place]
	q.jobs[place] = Job{}
	q.free = append(q.free, place)
	return job
}

// turn is an element of the heap: the Submit of a job, its sequence number, and where the job is
// stored.
type turn struct {
	submit, came int64
	place        int
}

// turns implements heap.Interface.
type turns []turn

func (w turns) Len() int { return len(w) }
func (w turns) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(w[i].submit, w[j].submit), cmp.Compare(w[i].came, w[j].came)) < 0
}
func (w turns) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *turns) Push(x any)   { *w = append(*w, x.(turn)) }
func (w *turns) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// Merge returns the jobs of several streams sorted by Submit. Jobs with equal Submit come in the
// order of the streams.
func Merge(streams ...Stream) Stream { return &merged{streams: streams} }

type merged struct {
	streams []Stream
	next    []Job // of each stream; nil before the first call
	ended   []bool
	failed  error // returned after the jobs before it
}

// Next implements Stream.
func (m *merged) Next() (Job, error) {
	if m.next == nil {
		m.next, m.ended = make([]Job, len(m.streams)), make([]bool, len(m.streams))
		for i := range m.streams {
			m.advance(i)
		}
	}
	if m.failed != nil {
		return Job{}, m.failed
	}
	first := -1
	for i := range m.next {
		if !m.ended[i] && (first < 0 || m.next[i].Submit < m.next[first].Submit) {
			first = i
		}
	}
	if first < 0 {
		return Job{}, io.EOF
	}
	job := m.next[first]
	m.advance(first)
	return job, nil
}

// advance reads the next job of stream i.
func (m *merged) advance(i int) {
	job, err := m.streams[i].Next()
	switch {
	case errors.Is(err, io.EOF):
		m.ended[i] = true
	case err != nil && m.failed == nil:
		m.failed = err
	}
	m.next[i] = job
}
