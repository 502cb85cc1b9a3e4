// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/workload"
)

// made is a Stream that makes its jobs one by one.
type made struct {
	n, of  int64
	submit func(n int64) int64
}

func (m *made) Next() (workload.Job, error) {
	if m.n == m.of {
		return workload.Job{}, io.EOF
	}
	m.n++
	return workload.Job{Line: m.n, Submit: m.submit(m.n), Runtime: 1, Size: 1}, nil
}

// listed is a Stream of the jobs in a list.
type listed []workload.Job

func (l *listed) Next() (workload.Job, error) {
	if len(*l) == 0 {
		return workload.Job{}, io.EOF
	}
	job := (*l)[0]
	*l = (*l)[1:]
	return job, nil
}

func TestJobsComeInOrderAndEqualsAsTheyStood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		submits := rapid.SliceOfN(rapid.Int64Range(0, 20), 0, 50).Draw(t, "submits")
		ahead := rapid.IntRange(1, 60).Draw(t, "ahead")
		var in listed
		for i, s := range submits {
			in = append(in, workload.Job{Line: int64(i + 1), Submit: s})
		}
		sorted := slices.Clone(in)
		slices.SortStableFunc(sorted, func(a, b workload.Job) int { return int(a.Submit - b.Submit) })
		o := workload.InOrder(&in, ahead)
		var got []workload.Job
		for {
			job, err := o.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if n := len(got); n > 0 && got[n-1].Submit > job.Submit {
				t.Fatalf("job %d comes after job %d", job.Line, got[n-1].Line)
			}
			got = append(got, job)
		}
		late := 0
		for _, s := range o.Late().Skipped {
			late += int(s.Lines)
		}
		if len(got)+late != len(submits) {
			t.Fatalf("%d returned and %d late of %d", len(got), late, len(submits))
		}
		if ahead >= len(submits) && fmt.Sprint(got) != fmt.Sprint([]workload.Job(sorted)) {
			t.Fatalf("got %v, want %v", got, sorted)
		}
	})
}

func TestWhatIsTooFarOutOfOrderIsCounted(t *testing.T) {
	var in listed
	for i, s := range []int64{10, 20, 30, 5, 25, 40} {
		in = append(in, workload.Job{Line: int64(i + 1), Submit: s})
	}
	o := workload.InOrder(&in, 2)
	var submits []int64
	for _, j := range rest(t, o) {
		submits = append(submits, j.Submit)
	}
	same(t, "submits", submits, []int64{10, 20, 25, 30, 40})
	same(t, "late", o.Late().Skipped, []workload.Skipped{{Reason: workload.TooLate, Lines: 1, First: []int64{4}}})
}

// swfLines is the text of a log, made while the reader reads it.
type swfLines struct {
	made
	rest []byte
}

func (s *swfLines) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		job, err := s.Next()
		if err != nil {
			return 0, err
		}
		s.rest = fmt.Appendf(s.rest[:0], "%d %d 0 10 4 -1 -1 4 20 -1 1 1 1 -1 -1 -1 -1 -1\n", job.Line, job.Submit)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// A reader needs no more memory after ten times as many lines.
func TestALogOfAnyLengthIsReadInBoundedMemory(t *testing.T) {
	total, ahead := int64(500_000), 2_000
	if testing.Short() {
		total = 100_000
	}
	text := &swfLines{made: made{of: total, submit: func(n int64) int64 { return n + 500*(n%3) }}}
	f, err := workload.Read(text, "made.swf", workload.OpenOptions{Ahead: ahead})
	if err != nil {
		t.Fatal(err)
	}
	var early, n int64
	for ; ; n++ {
		if _, err := f.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n == total/10 {
			early = heap()
		}
		if n == total-total/100 {
			if grown := heap() - early; grown > 1<<20 {
				t.Errorf("the heap has grown by %d bytes from line %d to line %d", grown, total/10, n)
			}
		}
	}
	if a := f.Account(); n != total || a.Jobs != total || a.Lines != total || len(a.Skipped) != 0 {
		t.Errorf("%d jobs of %d were returned: %+v", n, total, a)
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMergedStreamsComeInOrderAndEqualsByStream(t *testing.T) {
	a := listed{{ID: "a1", Submit: 1}, {ID: "a5", Submit: 5}, {ID: "a9", Submit: 9}}
	b := listed{{ID: "b0", Submit: 0}, {ID: "b5", Submit: 5}}
	var ids []string
	for _, j := range rest(t, workload.Merge(&a, &b, &listed{})) {
		ids = append(ids, j.ID)
	}
	same(t, "merged", ids, []string{"b0", "a1", "a5", "b5", "a9"})
}

// broken is a Stream that fails after its jobs.
type broken struct{ listed }

var errBroken = errors.New("it breaks off")

func (b *broken) Next() (workload.Job, error) {
	job, err := b.listed.Next()
	if err != nil {
		err = errBroken
	}
	return job, err
}

func TestAMergeGivesWhatComesBeforeAMistakeAndThenTheMistake(t *testing.T) {
	s := workload.Merge(&broken{listed{{ID: "a", Submit: 1}}}, &listed{{ID: "b", Submit: 0}})
	for _, want := range []string{"b", "a"} {
		job, err := s.Next()
		if err != nil || job.ID != want {
			t.Fatalf("got %q, %v; want %q", job.ID, err, want)
		}
	}
	if _, err := s.Next(); !errors.Is(err, errBroken) {
		t.Errorf("at its end the merge returns %v", err)
	}
}
