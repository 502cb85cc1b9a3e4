// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// reads checks what holds for any text: a reader fails only with an Invalid fault, all jobs are
// valid and in order, and skipped lines are counted.
func reads(t *testing.T, format string, text []byte) {
	f, err := workload.Read(bytes.NewReader(text), "", workload.OpenOptions{Format: format, MostSize: 1000, ProcsPerHost: 4, MakeUp: true, Ahead: 3})
	if err != nil {
		if !fault.Is(err, fault.Invalid) {
			t.Fatalf("not an Invalid fault: %v", err)
		}
		return
	}
	var before, jobs int64
	for {
		job, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("not an Invalid fault: %v", err)
			}
			break
		}
		jobs++
		if job.Submit < before || job.Runtime < 1 || job.Size < 1 || job.Size > 1000 || job.Estimate < 0 || job.Waited < -1 ||
			job.Line < 1 || job.Reserved && job.Start < job.Submit || !job.Reserved && job.Start != 0 {
			t.Fatalf("a job that makes no sense: %+v", job)
		}
		before = job.Submit
	}
	a := f.Account()
	counted := a.Jobs
	for _, s := range a.Skipped {
		counted += s.Lines
		if s.Reason == "" || len(s.First) == 0 {
			t.Fatalf("skipped without a reason or lines: %+v", s)
		}
	}
	if counted != a.Lines || a.Jobs != jobs {
		t.Fatalf("the reader returned %d jobs: %+v", jobs, a)
	}
}

func fuzz(f *testing.F, format string, seeds ...string) {
	for _, seed := range append(seeds, "", "\n", "\x00", "\x1f\x8b", "-1 -1 -1", "9999999999999999999") {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { reads(t, format, text) })
}

func FuzzSWF(f *testing.F) { fuzz(f, "swf", swfText) }
func FuzzGWF(f *testing.F) {
	fuzz(f, "gwf", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29\n")
}
func FuzzLWF(f *testing.F) {
	fuzz(f, "lwf", lwfText, "0 86400 14082 13000 21 1 1024 0 'NONE.img' 600\n")
}
func FuzzOAR(f *testing.F) { fuzz(f, "oar", oarText) }
func FuzzCSV(f *testing.F) {
	fuzz(f, "csv", "submit,start,end,size,preemptible,user\n1,2,3,1,yes,\"a\"\"b\"\n", "start,runtime,deadline\n2026-01-02,1h,2026-01-03\n")
}

// FuzzAny detects the format from the text.
func FuzzAny(f *testing.F) { fuzz(f, "", swfText, lwfText, oarText, "submit,runtime\n1,2\n") }
