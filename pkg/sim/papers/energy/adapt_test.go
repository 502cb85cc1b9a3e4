// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/workload"
)

// Check A004-10: working hours are from 9 to 18.
func TestRequestsAreAdaptedAsInThePaper(t *testing.T) {
	at := func(hours, minutes int64) int64 { return hours*hour + minutes*60 }
	job := func(submit, start int64) workload.Job {
		return workload.Job{Submit: submit, Reserved: true, Start: start, Runtime: 600, Size: 3}
	}
	for name, c := range map[string]struct {
		job   workload.Job
		shift int64
		start int64
		asked int64
	}{
		"asked for in working hours, for the evening":       {job(at(10, 0), at(20, 0)), 0, at(10, 0), at(10, 0)},
		"asked for in working hours, for working hours":     {job(at(10, 0), at(12, 0)), 0, at(12, 0), at(10, 0)},
		"asked for in the evening, for the evening":         {job(at(22, 0), at(23, 0)), 0, at(23, 0), at(22, 0)},
		"asked for in working hours, for the next night":    {job(at(10, 0), at(26, 0)), 0, at(10, 0), at(10, 0)},
		"asked for in working hours, for the next day":      {job(at(10, 0), at(34, 0)), 0, at(34, 0), at(10, 0)},
		"asked for at nine, which is a working hour":        {job(at(9, 0), at(8+24, 59)), 0, at(9, 0), at(9, 0)},
		"asked for at six, which is none":                   {job(at(18, 0), at(20, 0)), 0, at(20, 0), at(18, 0)},
		"asked for a minute before six, for six":            {job(at(17, 59), at(18, 0)), 0, at(17, 59), at(17, 59)},
		"a workload that begins at two in the afternoon":    {job(0, at(5, 0)), 14 * hour, 0, 0},
		"a clock that is behind":                            {job(at(10, 0), at(12, 0)), -2 * hour, at(12, 0), at(10, 0)},
		"best effort":                                       {workload.Job{Submit: at(22, 0), Runtime: 600, Size: 3}, 0, at(22, 0), at(22, 0)},
		"one that started before it was asked for, by OAR":  {job(at(20, 0), at(19, 0)), 0, at(19, 0), at(19, 0)},
		"asked for in working hours, for when it was asked": {job(at(10, 0), at(10, 0)), 0, at(10, 0), at(10, 0)},
	} {
		got := adapt(&c.job, clock{Hours{9, 18}, c.shift})
		want := request{start: c.start, asked: c.asked, duration: 600, hosts: 3, own: c.job.Reserved}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" {
			t.Errorf("%s: want -, got +\n%s", name, diff)
		}
	}
}

func TestThePeakIsTheMostHostsInUseAtOnce(t *testing.T) {
	requests := []request{
		{start: 0, duration: 10, hosts: 4}, {start: 5, duration: 10, hosts: 3},
		{start: 10, duration: 5, hosts: 4}, // as the first ends
		{start: 15, duration: 1, hosts: 6},
	}
	if got := peak(requests); got != 7 {
		t.Errorf("%d hosts, want 7", got)
	}
	if got := peak(nil); got != 0 {
		t.Errorf("%d hosts without a request", got)
	}
}
