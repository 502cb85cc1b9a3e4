// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client/bulk"
)

// trace is a file in the format of GWA-T-2. Of the rows 841 to 848, only 842 and 844 can be
// sent.
const trace = "# Format: JobID<TAB>StartTime<TAB>StopTime\r\n\r\n" +
	"841\t1081771500\t-1\r\n" +
	"842\t1084364100\t1084367700\r\n" +
	"843\t-1\t1084367700\r\n" +
	"844\t1084363500\t1084363560\r\n" +
	"# in between\n" +
	"845\t1084363500\t1084363500\n" +
	"846\t1084363500\n" +
	"seven\t1084363500\t1084363560\n" +
	"848\t1084363500\t999999999999999\n"

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func zipped(t *testing.T, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// booker books requests whose quantity is under most, and refuses the rest.
func booker(a *api, most int) {
	a.mux.HandleFunc("POST /v1/reservations", func(w http.ResponseWriter, r *http.Request) {
		var body v1.ReservationRequest
		_ = json.NewDecoder(r.Body).Decode(&body)
		if *body.Quantity > most {
			answerWith(http.StatusConflict, v1.ErrorAnswer{
				Error:   v1.Error{Kind: "refused", Message: "not enough hosts available"},
				Refusal: &v1.Refusal{Constraint: "pool"},
			})(w, r)
			return
		}
		answerWith(http.StatusCreated, v1.Reservation{ID: "r-" + body.Name})(w, r)
	})
}

func summaryOf(t *testing.T, r result) bulk.Summary {
	t.Helper()
	var sum bulk.Summary
	if err := json.Unmarshal([]byte(r.stdout), &sum); err != nil {
		t.Fatalf("stdout is no summary: %v\n%s%s", err, r.stdout, r.stderr)
	}
	sum.Seconds, sum.RowsPerSecond = 0, 0
	return sum
}

func TestAnImportSendsTheRowsThatCanBeMovedByOneOffset(t *testing.T) {
	a := newAPI(t)
	booker(a, 4)
	report := filepath.Join(t.TempDir(), "report.csv")
	got := almanac(t, a, "reservation", "import", write(t, "trace.log.gz", zipped(t, trace)), "--shift-to", "now+1h", "-f", "json",
		"--policy", "pe-best-fit", "--report", report)
	got.wantDone(t)
	want := bulk.Summary{
		Rows: 8,
		NotSent: map[string]int{
			"was canceled before its start": 1, "ends before it starts, or as it starts": 2, "has too few or too many columns": 1,
			"has something else where a number should be": 1, "has a number out of range": 1,
		},
		Accepted: 1, Refused: map[string]int{"pool": 1},
		ShiftSeconds: 1796119200 - 1084363500, SyntheticSizes: true,
	}
	if diff := cmp.Diff(want, summaryOf(t, got)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	bodies := each(a.asked(), func(q ask) string { return q.Body })
	if diff := cmp.Diff([]string{
		`{"name":"job-842","start_time":"2026-12-01T10:10:00Z","end_time":"2026-12-01T11:10:00Z","quantity":3,"policy":"pe-best-fit"}`,
		`{"name":"job-844","start_time":"2026-12-01T10:00:00Z","end_time":"2026-12-01T10:01:00Z","quantity":5,"policy":"pe-best-fit"}`,
	}, bodies); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	for _, said := range []string{
		"synthetic size 1 + JobID mod 8", "offset of all rows: 711755700 s", "from 2004-05-12T12:05:00Z to 2026-12-01T10:00:00Z", "100 %: 2 of 2 rows",
	} {
		if !strings.Contains(got.stderr, said) {
			t.Errorf("stderr lacks %q:\n%s", said, got.stderr)
		}
	}
	written, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`line,id,start,end,quantity,answer,constraint,message
3,,,,,not sent,,was canceled before its start
4,842,2026-12-01T10:10:00Z,2026-12-01T11:10:00Z,3,accepted,,r-job-842
5,,,,,not sent,,"ends before it starts, or as it starts"
6,844,2026-12-01T10:00:00Z,2026-12-01T10:01:00Z,5,refused,pool,not enough hosts available
8,,,,,not sent,,"ends before it starts, or as it starts"
9,,,,,not sent,,has too few or too many columns
10,,,,,not sent,,has something else where a number should be
11,,,,,not sent,,has a number out of range
`, string(written)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestTheSameImportHasTheSameKeys(t *testing.T) {
	a := newAPI(t)
	booker(a, 8)
	file := write(t, "trace.log", trace)
	for _, shiftTo := range []string{"+1h", "2026-12-01T10:00Z", "+2h"} {
		almanac(t, a, "reservation", "import", file, "--shift-to", shiftTo).wantDone(t)
	}
	keys := each(a.asked(), func(q ask) string { return q.Key })
	if keys[0] != keys[2] || keys[1] != keys[3] {
		t.Errorf("the same rows with the same shift must have the same keys: %v", keys)
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(keys)))
	if len(distinct) != 4 {
		t.Errorf("rows and shifts share keys: %v", keys)
	}
	if !strings.HasPrefix(keys[0], "import-") || !strings.HasSuffix(keys[0], "-4-711755700") || len(keys[0]) != len("import-012345678901-4-711755700") {
		t.Errorf("key %s", keys[0])
	}
}

func TestRowsLimitsTheRowsThatAreRead(t *testing.T) {
	a := newAPI(t)
	booker(a, 8)
	got := almanac(t, a, "reservation", "import", write(t, "trace.log", trace), "--shift-to", "+1h", "--rows", "2", "-f", "json")
	sum := summaryOf(t, got)
	if sum.Rows != 2 || sum.Accepted != 1 || sum.NotSent["was canceled before its start"] != 1 {
		t.Errorf("got %+v", sum)
	}
	// The offset depends only on the rows that are read.
	if sum.ShiftSeconds != 1796119200-1084364100 {
		t.Errorf("shift %d", sum.ShiftSeconds)
	}
}

func TestACSVImport(t *testing.T) {
	a := newAPI(t)
	booker(a, 8)
	table := "\ufeffname,quantity,start,end,properties\n" +
		"# a comment\n" +
		"night,2,2026-12-01T22:00:00+01:00,1796166000,\"[\"\"=\"\", \"\"$gpu\"\", \"\"a100\"\"]\"\n" +
		"half,1,1796166000\n" +
		"none,0,1796119200,1796122800,\n" +
		"many,two,1796119200,1796122800,\n" +
		"bad,1,1796119200,1796122800,[\n" +
		"day,1,1796119200,1796122800,\n" +
		" ,3,1796119200,1796122800,\n"
	got := almanac(t, a, "reservation", "import", write(t, "plan.csv", table), "-f", "json")
	got.wantDone(t)
	want := bulk.Summary{Rows: 7, NotSent: map[string]int{
		"has too few or too many columns": 1, "has a size that is not positive": 1, "has something else where a number should be": 1,
		"has properties that are not JSON": 1,
	}, Accepted: 3, Refused: map[string]int{}}
	if diff := cmp.Diff(want, summaryOf(t, got)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	bodies := each(a.asked(), func(q ask) string { return q.Body })
	if diff := cmp.Diff([]string{
		`{"name":"night","host_properties":["=","$gpu","a100"],"start_time":"2026-12-01T21:00:00Z","end_time":"2026-12-01T23:00:00Z","quantity":2}`,
		`{"name":"day","start_time":"2026-12-01T10:00:00Z","end_time":"2026-12-01T11:00:00Z","quantity":1}`,
		`{"name":"line-9","start_time":"2026-12-01T10:00:00Z","end_time":"2026-12-01T11:00:00Z","quantity":3}`,
	}, bodies); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
}

func TestAnImportCountsFromTheStartThatTheFileStates(t *testing.T) {
	a := newAPI(t)
	booker(a, 8)
	jobs := "; UnixStartTime: 1796256000\n" +
		"1   0 -1 3600 16 -1 -1 16 -1 -1 1 7 1 -1 -1 -1 -1 -1\n" +
		"2 600 -1 3600  9 -1 -1  9 -1 -1 1 7 1 -1 -1 -1 -1 -1\n"
	almanac(t, a, "reservation", "import", write(t, "plan.swf", jobs), "--procs-per-host", "8", "-f", "json").wantDone(t)
	bodies := each(a.asked(), func(q ask) string { return q.Body })
	if diff := cmp.Diff([]string{
		`{"name":"job-1","start_time":"2026-12-03T00:00:00Z","end_time":"2026-12-03T01:00:00Z","quantity":2}`,
		`{"name":"job-2","start_time":"2026-12-03T00:10:00Z","end_time":"2026-12-03T01:10:00Z","quantity":2}`,
	}, bodies); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	almanac(t, a, "reservation", "import", write(t, "plan.swf", jobs), "--procs-per-host", "0").wantFailure(t, exitUsage, "--procs-per-host: a host has at least 1 processor")
}

func TestWhatIsNoWorkloadIsUsage(t *testing.T) {
	a := newAPI(t)
	for content, mention := range map[string]string{
		"":                                   "FILE: the file is empty",
		"name,start,quantity\nx,1,2\n":       "neither a column runtime nor a column end",
		"name,start,end,quantty\nx,1,2,3\n":  `did you mean "quantity"?`,
		"\x1f\x8bbroken":                     "breaks off before its first line",
		trace:                                "--shift-to now+1h", // its first start is in the past
		"name,start,end,quantity\nx,1,2,3\n": "--shift-to now+1h",
	} {
		almanacWith(t, a, content, "reservation", "import", "-").wantFailure(t, exitUsage, mention)
	}
	if len(a.asked()) > 0 {
		t.Errorf("the requests are %v", a.lines())
	}
}

// The columns of a simulation's trace and those of a plan are both accepted.
func TestAnImportReadsEveryFormatOfWorkloads(t *testing.T) {
	const swf = "1 0 5 1200 4 -1 -1 4 3600 -1 1 7 1 -1 -1 -1 -1 -1\n"
	for name, content := range map[string]string{
		"columns of a trace": "id,submit,start,end,size\n1,1796112000,1796119200,1796122800,4\n",
		"columns of a plan":  "name,start,end,quantity\njob-1,1796119200,1796122800,4\n",
		"a log of jobs":      swf,
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			booker(a, 8)
			almanacWith(t, a, content, "reservation", "import", "-", "--shift-to", "now+1h").wantDone(t)
			want := `{"name":"job-1","start_time":"2026-12-01T10:00:00Z","end_time":"2026-12-01T11:00:00Z","quantity":4}`
			if got := a.asked()[0].Body; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestAnImportRefusesATimeThatRESTCannotWrite(t *testing.T) {
	a := newAPI(t)
	got := almanacWith(t, a, "start,end\n1796119200,1000000000000\n", "reservation", "import", "-", "-f", "json")
	got.wantDone(t)
	if sum := summaryOf(t, got); sum.NotSent["ends after the year 9000"] != 1 {
		t.Errorf("got %+v", sum)
	}
}

func TestAnImportOfNothingIsDone(t *testing.T) {
	a := newAPI(t)
	got := almanacWith(t, a, "841\t1081771500\t-1\n", "reservation", "import", "-", "-f", "json")
	got.wantDone(t)
	if sum := summaryOf(t, got); sum.Rows != 1 || sum.Accepted != 0 {
		t.Errorf("got %+v", sum)
	}
}

func TestADryRunOfAnImportBooksNothing(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/reservations", http.StatusOK, v1.OfferAnswer{})
	got := almanacWith(t, a, trace, "reservation", "import", "-", "--shift-to", "+1h", "--dry-run", "-f", "json")
	got.wantDone(t)
	if sum := summaryOf(t, got); !sum.DryRun || sum.Accepted != 2 {
		t.Errorf("got %+v", sum)
	}
	for _, q := range a.asked() {
		if q.Line != "POST /v1/reservations?dry_run=true" || q.Key != "" {
			t.Errorf("sent %v", q)
		}
	}
}

// plenty returns a workload of n rows.
func plenty(n int) string {
	return "name,start,end,quantity\n" + strings.Repeat("x,1796119200,1796122800,1\n", n)
}

func TestARowWithoutAnAnswerMakesTheImportFail(t *testing.T) {
	a := newAPI(t)
	count := 0
	a.mux.HandleFunc("POST /v1/reservations", func(w http.ResponseWriter, r *http.Request) {
		if count++; count == 2 {
			fail(http.StatusInternalServerError, "internal", "something went wrong")(w, r)
			return
		}
		answerWith(http.StatusCreated, training())(w, r)
	})
	got := almanacWith(t, a, plenty(3), "reservation", "import", "-", "-f", "json")
	if sum := summaryOf(t, got); got.code != exitFailed || sum.Accepted != 2 || sum.Failed != 1 {
		t.Errorf("exit code %d, %+v", got.code, sum)
	}
	if !strings.Contains(got.stderr, "1 rows were neither accepted nor refused") {
		t.Errorf("stderr:\n%s", got.stderr)
	}
}

func TestAnImportStopsWhereGoingOnIsOfNoUse(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   int
	}{
		"nobody answers": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, exitFailed},
		"not let in":     {fail(http.StatusForbidden, "denied", "only members may reserve"), exitDenied},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.mux.HandleFunc("POST /v1/reservations", tc.answer)
			got := almanacWith(t, a, plenty(100), "reservation", "import", "-", "-f", "json")
			sum := summaryOf(t, got)
			if got.code != tc.want || sum.Failed != 1 || sum.NotSent["import stopped"] != 99 {
				t.Errorf("exit code %d, %+v", got.code, sum)
			}
		})
	}
}

func TestWorkersSendEveryRowOnce(t *testing.T) {
	a := newAPI(t)
	booker(a, 8)
	got := almanacWith(t, a, plenty(200), "reservation", "import", "-", "--workers", "8", "-f", "json")
	got.wantDone(t)
	keys := slices.Sorted(slices.Values(each(a.asked(), func(q ask) string { return q.Key })))
	if sum := summaryOf(t, got); sum.Accepted != 200 || len(keys) != 200 || len(slices.Compact(keys)) != 200 {
		t.Errorf("%d requests, %+v", len(keys), sum)
	}
	if lines := strings.Count(got.stderr, "%"); lines != 10 {
		t.Errorf("%d lines of progress:\n%s", lines, got.stderr)
	}
}

func TestAnInterruptedImportTellsWhatWasDone(t *testing.T) {
	a := newAPI(t)
	ctx, interrupt := context.WithCancel(t.Context())
	count := 0
	a.mux.HandleFunc("POST /v1/reservations", func(w http.ResponseWriter, r *http.Request) {
		if count++; count == 3 {
			interrupt()
		}
		answerWith(http.StatusCreated, training())(w, r)
	})
	var stdout, stderr bytes.Buffer
	env := func(name string) string { return map[string]string{"ALMANAC_URL": a.URL}[name] }
	code := run(ctx, []string{"reservation", "import", "-", "-f", "json"}, strings.NewReader(plenty(100)), &stdout, &stderr, env,
		func() time.Time { return morning })
	sum := summaryOf(t, result{code: code, stdout: stdout.String(), stderr: stderr.String()})
	if code != exitFailed || sum.Accepted+sum.Failed != 3 || sum.NotSent["import stopped"] != 97 {
		t.Errorf("exit code %d, %+v", code, sum)
	}
	if !strings.Contains(stderr.String(), "almanac: interrupted") {
		t.Errorf("stderr:\n%s", stderr.String())
	}
}
