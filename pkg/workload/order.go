package workload

import (
	"cmp"
	"container/heap"
	"errors"
	"io"
)

// DefaultAhead is how many jobs a reader looks ahead to bring them into the order of their
// submission.
const DefaultAhead = 100_000

// TooLate is the reason for which jobs are skipped that no look ahead has brought into order.
const TooLate = "is out of order by more than the reader looks ahead"

// AfterGap is the reason for which jobs are skipped that come too long after the one before;
// see OpenOptions.Longest.
const AfterGap = "comes longer after the job before it than is looked at"

// InOrder gives the jobs of a stream in the order of their Submit, equals as they came. It
// looks ahead by so many jobs and holds no more of them; one that comes later still is left
// out and counted.
func InOrder(s Stream, ahead int) *Ordered {
	return &Ordered{stream: s, ahead: max(1, ahead)}
}

// Ordered is a Stream in order.
type Ordered struct {
	stream Stream
	ahead  int
	ended  error // what the stream gave after its last job
	// mostGap is how many seconds may lie between two jobs; 0 is no bound.
	mostGap int64

	waiting waiting
	jobs    []Job // in places; those of the waiting are in use
	free    []int // places
	came    int64
	given   int64 // the Submit of the last one given
	late    ledger
}

// Next implements Stream. What is wrong with the whole comes after the jobs before it.
func (o *Ordered) Next() (Job, error) {
	for {
		job, err := o.earliest()
		if err != nil {
			return job, err
		}
		if o.mostGap > 0 && o.late.jobs > 0 && job.Submit-o.given > o.mostGap {
			o.late.skip(AfterGap, job.Line)
			continue
		}
		o.given = job.Submit
		o.late.jobs++
		return job, nil
	}
}

// earliest gives the earliest of the jobs that are waiting, as many as may.
func (o *Ordered) earliest() (Job, error) {
	for o.ended == nil && len(o.waiting) < o.ahead {
		job, err := o.stream.Next()
		switch {
		case err != nil:
			o.ended = err
		case o.late.jobs > 0 && job.Submit < o.given:
			o.late.skip(TooLate, job.Line)
		default:
			o.put(job)
		}
	}
	if len(o.waiting) == 0 {
		return Job{}, o.ended
	}
	place := heap.Pop(&o.waiting).(turn).place
	job := o.jobs[place]
	o.jobs[place] = Job{}
	o.free = append(o.free, place)
	return job, nil
}

func (o *Ordered) put(job Job) {
	place := len(o.jobs)
	if n := len(o.free); n > 0 {
		place, o.free = o.free[n-1], o.free[:n-1]
		o.jobs[place] = job
	} else {
		o.jobs = append(o.jobs, job)
	}
	o.came++
	heap.Push(&o.waiting, turn{job.Submit, o.came, place})
}

// Late counts the jobs that were left out; its Jobs are those given.
func (o *Ordered) Late() Account { return o.late.account() }

// turn is when a job in a place has its turn.
type turn struct {
	submit, came int64
	place        int
}

// waiting is a heap.
type waiting []turn

func (w waiting) Len() int { return len(w) }
func (w waiting) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(w[i].submit, w[j].submit), cmp.Compare(w[i].came, w[j].came)) < 0
}
func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *waiting) Push(x any)   { *w = append(*w, x.(turn)) }
func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// Merge gives the jobs of several streams in the order of their Submit, equals in the order
// of the streams.
func Merge(streams ...Stream) Stream { return &merged{streams: streams} }

type merged struct {
	streams []Stream
	next    []Job // of each stream; made at the first call
	ended   []bool
	failed  error // told once the job before it was given
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
