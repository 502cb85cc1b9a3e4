// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/workload"
)

// every is a Stream of n jobs, one each gap seconds.
type every struct{ n, gap, at int64 }

func (e *every) Next() (workload.Job, error) {
	if e.n--; e.n < 0 {
		return workload.Job{}, io.EOF
	}
	e.at += e.gap
	return workload.Job{ID: string(rune('a' + e.n%26)), Submit: e.at, Runtime: 60, Size: 1, Line: e.at}, nil
}

func reserved(t *testing.T, share float64, n int64) (jobs []workload.Job) {
	t.Helper()
	s, err := workload.Reserve(&every{n: n, gap: 100}, rand.New(rand.NewPCG(1, 2)), share, 3600, 7200)
	if err != nil {
		t.Fatal(err)
	}
	for {
		job, err := s.Next()
		if errors.Is(err, io.EOF) {
			return jobs
		}
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job)
	}
}

func TestAShareOfTheJobsIsAskedForAheadAndBeginsAsBefore(t *testing.T) {
	const n = 4000
	ahead, ids := 0, map[int64]bool{}
	jobs := reserved(t, 0.25, n)
	for i, job := range jobs {
		if i > 0 && job.Submit < jobs[i-1].Submit {
			t.Fatalf("job %d is submitted at %d, after one at %d", i, job.Submit, jobs[i-1].Submit)
		}
		ids[job.Line] = true
		if !job.Reserved {
			if job.Submit != job.Line {
				t.Fatalf("one that is not reserved comes at %d instead of %d", job.Submit, job.Line)
			}
			continue
		}
		ahead++
		if lead := job.Start - job.Submit; job.Start != job.Line || lead > 7200 || lead < 3600 && job.Submit != 0 {
			t.Fatalf("a reservation of %d is requested at %d for %d", job.Line, job.Submit, job.Start)
		}
	}
	if len(ids) != n || ahead < n/4-150 || ahead > n/4+150 {
		t.Errorf("%d of %d jobs are reserved, want a quarter of %d", ahead, len(ids), n)
	}
}

func TestThoseOfASmallerShareAreAmongThoseOfALarger(t *testing.T) {
	submit := map[int64]int64{}
	for _, job := range reserved(t, 0.7, 500) {
		if job.Reserved {
			submit[job.Line] = job.Submit
		}
	}
	for _, job := range reserved(t, 0.3, 500) {
		if at, too := submit[job.Line]; job.Reserved && (!too || at != job.Submit) {
			t.Fatalf("the job of %d is reserved at a share of 0.3 and not at 0.7, or at another time", job.Line)
		}
	}
	if n := len(submit); n < 300 || n > 400 {
		t.Errorf("%d of 500 are reserved, want about 350", n)
	}
}

func TestSharesAndTimesAheadThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range []struct {
		share       float64
		least, most int64
	}{{-0.1, 0, 1}, {1.1, 0, 1}, {0.5, -1, 1}, {0.5, 2, 1}} {
		if _, err := workload.Reserve(&every{}, nil, c.share, c.least, c.most); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
