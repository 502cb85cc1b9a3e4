// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestTheDoctorExitsByWhetherFindingsRemain(t *testing.T) {
	stranger := v1.Finding{Kind: "stranger", Subject: "i-1", Message: "it does not belong on node-01", Remedy: "ask its owner"}
	orphan := v1.Finding{Kind: "orphan_flavor", Subject: "reservation:r1", Message: "it is left", Remedy: "the fix deletes it", Fixable: true}
	became := func(f v1.Finding, outcome, detail string) v1.Finding {
		f.Outcome, f.Detail = outcome, detail
		return f
	}
	for name, tc := range map[string]struct {
		call, body string
		args       []string
		answer     v1.Examination
		code       int
		stdout     string
		stderr     string
	}{
		"healthy": {
			call: "GET", answer: v1.Examination{Cloud: true}, code: exitDone, stderr: "all is well\n",
		},
		"a cloudless Almanac": {
			call: "GET", code: exitDone, stderr: "there is no cloud to examine",
		},
		"a report": {
			call: "GET", answer: v1.Examination{Cloud: true, Findings: []v1.Finding{orphan, stranger}}, code: exitNoRoom,
			stdout: "orphan_flavor reservation:r1 it is left the fix deletes it\nstranger i-1 it does not belong on node-01 ask its owner\n", stderr: "2 findings remain",
		},
		"all fixed": {
			call: "POST", body: `{"dry_run":false}`, args: []string{"--fix"}, code: exitDone,
			answer: v1.Examination{Cloud: true, Findings: []v1.Finding{became(orphan, "fixed", "")}},
			stdout: "orphan_flavor reservation:r1 it is left fixed\n",
		},
		"an untrusted inventory": {
			call: "POST", body: `{"dry_run":false}`, args: []string{"--fix"}, code: exitNoRoom,
			answer: v1.Examination{Cloud: true, Untrusted: "the hosts are old", Findings: []v1.Finding{became(orphan, "refused", "it is untrusted"), stranger}},
			stdout: "orphan_flavor reservation:r1 it is left refused: it is untrusted\nstranger i-1 it does not belong on node-01 left: ask its owner\n",
			stderr: "the doctor removes nothing while the inventory is untrusted: the hosts are old",
		},
		"a plan": {
			call: "POST", body: `{"dry_run":true}`, args: []string{"--fix", "--dry-run"}, code: exitNoRoom,
			answer: v1.Examination{Cloud: true, Findings: []v1.Finding{became(orphan, "planned", "")}},
			stdout: "orphan_flavor reservation:r1 it is left planned\n", stderr: "1 finding remains",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.on(tc.call+" /v1/doctor", http.StatusOK, tc.answer)
			got := almanac(t, a, append([]string{"doctor", "-f", "value"}, tc.args...)...)
			if got.code != tc.code || got.stdout != tc.stdout || !strings.Contains(got.stderr, tc.stderr) {
				t.Errorf("exit code %d, stdout:\n%sstderr:\n%s", got.code, got.stdout, got.stderr)
			}
			if diff := cmp.Diff([]ask{{Line: tc.call + " /v1/doctor", Body: tc.body}}, a.asked()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADoctorWithoutFindingsPrintsOnlyASentence(t *testing.T) {
	for format, stdout := range map[string]string{"table": "", "csv": "Kind,Subject,Message,Remedy\n"} {
		a := newAPI(t)
		a.on("GET /v1/doctor", http.StatusOK, v1.Examination{Cloud: true, Findings: []v1.Finding{}})
		if got := almanac(t, a, "doctor", "-f", format); got.code != exitDone || got.stdout != stdout || got.stderr != "all is well\n" {
			t.Errorf("as %s: exit code %d, stdout:\n%sstderr:\n%s", format, got.code, got.stdout, got.stderr)
		}
	}
}

func TestADryRunWithoutAFixIsAMistake(t *testing.T) {
	a := newAPI(t)
	almanac(t, a, "doctor", "--dry-run").wantFailure(t, exitUsage, "--dry-run requires --fix")
	if asked := a.lines(); len(asked) > 0 {
		t.Errorf("the requests are %v", asked)
	}
}
