// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/workload"
)

// logs returns the folder of the real logs, which are not in this repository.
func logs(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("ALMANAC_DATA")
	if folder == "" {
		t.Skip("ALMANAC_DATA does not name the folder of the real logs")
	}
	return folder
}

func TestRealLogsHaveAsManyJobsAsIsKnownOfThem(t *testing.T) {
	folder := logs(t)
	const negative = "has a run time that is not positive"
	for _, c := range []struct {
		file    string
		hosts   int // processors per host
		lines   int64
		skipped map[string]int64
	}{
		{"pwa/KTH-SP2-1996-2.swf.gz", 1, 28489, nil},
		{"pwa/HPC2N-2002-alea-first-3170.swf.gz", 2, 3171, map[string]int64{"is blank": 1, negative: 25}},
		{"haizea/blue-1000requests.swf.gz", 8, 1000, map[string]int64{"never ran": 48, negative: 1}},
		{"haizea/blue-15days.swf.gz", 8, 3383, map[string]int64{"never ran": 298, negative: 1}},
		{"haizea/blue-30days.swf.gz", 8, 5545, map[string]int64{"never ran": 431, negative: 6}},
		{"haizea/blue-60days.swf.gz", 8, 10280, map[string]int64{"never ran": 816, negative: 11}},
		{"synthetic/lublin_256.swf.gz", 1, 10000, nil},
		{"grid5000/grid5000_reservation_jobs.log.gz", 1, 69189 + 4, map[string]int64{
			// All stray lines are among these.
			"is blank": 4, "was canceled before its start": 20118, "ends before it starts, or as it starts": 859,
		}},
	} {
		f, err := workload.Open(filepath.Join(folder, c.file), workload.OpenOptions{ProcsPerHost: c.hosts, MakeUp: true})
		if err != nil {
			t.Error(err)
			continue
		}
		jobs := int64(len(rest(t, f)))
		a := f.Account()
		left := a.Lines
		for _, s := range a.Skipped {
			left -= s.Lines
			if want, known := c.skipped[s.Reason]; !known || want != s.Lines {
				t.Errorf("%s: %d lines: it %s; want %v", c.file, s.Lines, s.Reason, c.skipped)
			}
		}
		if a.Lines != c.lines || a.Jobs != jobs || left != jobs || len(a.Skipped) != len(c.skipped) {
			t.Errorf("%s: %d jobs: %+v; want %d lines", c.file, jobs, a, c.lines)
		}
		t.Logf("%s: %s, %d lines, %d jobs, %+v", c.file, f.Format(), a.Lines, a.Jobs, a.Skipped)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAllLeaseWorkloadsOfHaizeaAreRead(t *testing.T) {
	from, err := os.Open(filepath.Join(logs(t), "haizea", "haizea-lwf-traces.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	text, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	files, leases, before := 0, 0, int64(0)
	for members := tar.NewReader(text); ; {
		member, err := members.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(member.Name, ".lwf") {
			continue
		}
		f, err := workload.Read(members, member.Name, workload.OpenOptions{})
		if err != nil {
			t.Errorf("%s: %v", member.Name, err)
			continue
		}
		files++
		leases += len(rest(t, f))
		a := f.Account()
		for _, s := range a.Skipped {
			before += s.Lines
			if s.Reason != "was submitted at a negative time" {
				t.Errorf("%s: %d leases: it %s", member.Name, s.Lines, s.Reason)
			}
		}
		if f.Format() != "lwf" {
			t.Errorf("%s: %s, %+v", member.Name, f.Format(), a)
		}
	}
	if files != 262 || leases != 105_387 || before != 14 {
		t.Errorf("%d files with %d leases and %d submitted before 0; want 262, 105387 and 14", files, leases, before)
	}
}
