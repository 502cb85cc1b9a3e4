// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// all returns the jobs of a text and its account.
func all(t *testing.T, text, name string, o workload.OpenOptions) ([]workload.Job, workload.Account) {
	t.Helper()
	f, err := workload.Read(strings.NewReader(text), name, o)
	if err != nil {
		t.Fatal(err)
	}
	return rest(t, f), f.Account()
}

func rest(t *testing.T, s workload.Stream) (jobs []workload.Job) {
	t.Helper()
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

// skipped returns the reasons of an account with the lines of each.
func skipped(a workload.Account) map[string][]int64 {
	lines := make(map[string][]int64)
	for _, s := range a.Skipped {
		lines[s.Reason] = s.First
	}
	return lines
}

// same compares values by their printed forms.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

const swfText = `; Version: 2.2
; Computer: A machine of tests
; MaxProcs: 64
; MaxNodes: 8
; UnixStartTime: 843480031
; Note: a value: with colons
1   0 10  100 16 -1 -1 16  200 -1 1 7 1 -1 -1 -1 -1 -1
2   5 -1  0.4  8 -1 -1  8   -1 -1 1 -1 1 -1 -1 -1 -1 -1
3  10  3   50 -1 -1 -1 12   60 -1 0 8 1 -1 -1 -1 -1 -1
`

func TestSWFTakesWhatWasAllocatedAndElseWhatWasRequested(t *testing.T) {
	f, err := workload.Read(strings.NewReader(swfText), "", workload.OpenOptions{ProcsPerHost: 8})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "header", f.Header(), workload.Header{Computer: "A machine of tests", MaxProcs: 64, MaxNodes: 8, UnixStart: 843480031})
	same(t, "jobs", rest(t, f), []workload.Job{
		{ID: "1", Line: 7, Submit: 0, Runtime: 100, Estimate: 200, Waited: 10, Size: 2, User: "7"},
		{ID: "2", Line: 8, Submit: 5, Runtime: 1, Waited: -1, Size: 1},
		{ID: "3", Line: 9, Submit: 10, Runtime: 50, Estimate: 60, Waited: 3, Size: 2, User: "8"},
	})
	same(t, "account", f.Account(), workload.Account{Lines: 3, Jobs: 3})
	same(t, "format", f.Format(), "swf")
}

// The Standard Workload Format 2.2 describes the status of a line in its field 11.
func TestThePartsOfAnInterruptedJobAreNoJobs(t *testing.T) {
	const text = `1  0 10 100 16 -1 -1 16 200 -1 1 7 1 -1 -1 -1 -1 -1
1  0 10  60 16 -1 -1 16 200 -1 2 7 1 -1 -1 -1 -1 -1
1 -1 40  40 16 -1 -1 16 200 -1 3 7 1 -1 -1 -1 -1 -1
2  5 -1  30  8 -1 -1  8  -1 -1 3 7 1 -1 -1 -1 -1 -1
3  9 -1  30  8 -1 -1  8  -1 -1 0 7 1 -1 -1 -1 -1 -1
3  9 -1  30  8 -1 -1  8  -1 -1 4 7 1 -1 -1 -1 -1 -1
`
	jobs, a := all(t, text, "parts.swf", workload.OpenOptions{})
	var ids []string
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	same(t, "jobs", ids, []string{"1", "2", "3"}) // of the second, no line contains all
	same(t, "skipped", skipped(a), map[string][]int64{"is a part of the job of a line before it": {2, 3, 6}})
}

func TestCSVReadsATimeToTheMinuteInAnyZone(t *testing.T) {
	for _, text := range []string{
		"2026-12-10T05:00Z", "2026-12-10 05:00", "2026-12-10T07:00+02:00", "2026-12-10 02:00-03:00", "2026-12-10 05:00:00Z", "1796878800", "1796878800.9",
	} {
		jobs, a := all(t, "start,runtime\n"+text+",60\n", "jobs.csv", workload.OpenOptions{})
		if len(jobs) != 1 || jobs[0].Start != 1796878800 {
			t.Errorf("%s is read as %+v, %v", text, jobs, a.Skipped)
		}
	}
}

// In Haizea's rows of SDSC Blue Horizon, column 8 counts nodes of 8 processors, and a request
// that was canceled in the queue has -1 in column 5.
func TestSWFOfBlueHorizonCountsProcessorsAndSkipsWhatNeverRan(t *testing.T) {
	const text = `13 0 22 43 32 0.03 -1 4 64800 -1 1 96 -1 -1 3 -1 -1 -1
14 9 20 -1 -1 -1 -1 4 64800 -1 5 96 -1 -1 3 -1 -1 -1
`
	jobs, a := all(t, text, "blue.swf", workload.OpenOptions{ProcsPerHost: 8})
	same(t, "jobs", jobs, []workload.Job{{ID: "13", Line: 1, Runtime: 43, Estimate: 64800, Waited: 22, Size: 4, User: "96"}})
	same(t, "skipped", skipped(a), map[string][]int64{"never ran": {2}})
}

func TestGWFIsReadAsSWFWithMoreColumns(t *testing.T) {
	const text = "# JobID\tSubmitTime: epoch\n1\t1136070024\t203761\t138467\t2\t1\t9\t1\t259200\t-1\t1\tuser1\tg\te\tq\tp\ts\ts\tUNITARY\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\n"
	f, err := workload.Read(strings.NewReader(text), "das2.txt", workload.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "format", f.Format(), "gwf")
	same(t, "jobs", rest(t, f), []workload.Job{{ID: "1", Line: 2, Submit: 1136070024, Runtime: 138467, Estimate: 259200, Waited: 203761, Size: 2, User: "user1"}})
}

const lwfText = `<?xml version="1.0"?>
<lease-workload name="test">
  <site><resource-types names="CPU Memory"/><nodes><node-set numnodes="4"><res type="CPU" amount="100"/></node-set></nodes></site>
  <lease-requests>
    <!-- <lease-request arrival="00:00:00"><lease/></lease-request> -->
    <lease-request arrival="00:00:00.00">
      <realduration time="00:30:00.00"/>
      <lease id="1" preemptible="true">
        <nodes><node-set numnodes="1"><res amount="100" type="CPU"/><res amount="1024" type="Memory"/></node-set></nodes>
        <start/><duration time="01:00:00.00"/>
        <software><disk-image id="foobar.img" size="1024"/></software>
      </lease>
    </lease-request>
    <lease-request arrival="00:15:00">
      <lease id="2" preemptible="false">
        <nodes><node-set numnodes="2"><res amount="150" type="CPU"/></node-set><node-set numnodes="1"><res amount="50" type="CPU"/><res amount="2048" type="Memory"/></node-set></nodes>
        <start><exact time="1:00:30:00"/></start><duration time="30:00:00"/><deadline time="3:00:00:00"/><software><none/></software>
      </lease>
    </lease-request>
    <lease-request arrival="00:20:00">
      <lease id="3"><nodes><node-set numnodes="1"/></nodes><start><now/></start><duration time="600"/></lease>
    </lease-request>
    <lease-request arrival="00:21:00"><lease id="4"><nodes><node-set numnodes="x"/></nodes><start/><duration time="600"/></lease></lease-request>
    <lease-request arrival="half past"><lease id="5"><nodes><node-set numnodes="1"/></nodes><start/><duration time="600"/></lease></lease-request>
    <lease-request arrival="00:22:00"><lease id="6"><nodes><node-set numnodes="1"/></nodes><start/></lease></lease-request>
    <lease-request arrival="00:23:00"><lease id="7"><nodes><node-set numnodes="1"/></nodes><start/><duration time="600"/><software><disk-image id="a" size="-1"/></software></lease></lease-request>
  </lease-requests>
</lease-workload>
`

func TestLWFKnowsReservationsBestEffortAndNow(t *testing.T) {
	f, err := workload.Read(strings.NewReader(lwfText), "", workload.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "site", f.Header().MaxNodes, 4)
	same(t, "jobs", rest(t, f), []workload.Job{
		{ID: "1", Line: 6, Runtime: 1800, Estimate: 3600, Waited: -1, Size: 1, Shape: resource.Vector{VCPUs: 1, MemoryMB: 1024}, Image: "foobar.img", ImageSize: 1 << 30, Preemptible: true},
		{ID: "2", Line: 14, Submit: 900, Reserved: true, Start: 86400 + 1800, Deadline: 3 * 86400, Runtime: 108000, Estimate: 108000, Waited: -1, Size: 3, Shape: resource.Vector{VCPUs: 2, MemoryMB: 2048}},
		{ID: "3", Line: 20, Submit: 1200, Runtime: 600, Estimate: 600, Waited: -1, Size: 1},
	})
	same(t, "skipped", skipped(f.Account()), map[string][]int64{
		"has a number of nodes that is none":                    {23},
		"has a time that is not as HH:MM:SS":                    {24},
		"has no duration":                                       {25},
		"has a disk image whose size is no number of megabytes": {26},
	})
}

func TestLWFOfHaizeaBeforeXMLIsRead(t *testing.T) {
	jobs, _ := all(t, "0 86400 14082 13000 21 1 1024 0 'NONE.img' 600\n7 -1 60 60 2 1 1024 0 '600M.img' 600\n", "work_5-dur_4h-size_3large.lwf", workload.OpenOptions{})
	same(t, "jobs", jobs, []workload.Job{
		{Line: 1, Reserved: true, Start: 86400, Runtime: 13000, Estimate: 14082, Waited: -1, Size: 21},
		{Line: 2, Submit: 7, Runtime: 60, Estimate: 60, Waited: -1, Size: 2, Image: "600M.img", ImageSize: 600 << 20, Preemptible: true},
	})
}

const oarText = "# Generated by get-clean-log.py\r\n\r\n# Format: JobID<TAB>StartTime<TAB>StopTime\r\n\r\n" +
	"840\t1081771500\t-1\r\n841\t1084363551\t1084364024\r\n842\t-1\t-1\r\n843\t1084363551\t1084363551\r\n9\t946684000\t946685000\r\n17\t1163300000\t1163300100\r\n895\t1084363552\t1084364024\r\n"

func TestOARCountsWhatWasCanceledAndWhatIsBackwardsOrStray(t *testing.T) {
	jobs, a := all(t, oarText, "", workload.OpenOptions{})
	same(t, "jobs", jobs, []workload.Job{
		{ID: "841", Line: 6, Submit: 1084363551, Reserved: true, Start: 1084363551, Runtime: 473, Waited: -1, Size: 1},
		{ID: "895", Line: 11, Submit: 1084363552, Reserved: true, Start: 1084363552, Runtime: 472, Waited: -1, Size: 1},
	})
	same(t, "skipped", skipped(a), map[string][]int64{
		"is blank": {2, 4}, "was canceled before its start": {5, 7}, "ends before it starts, or as it starts": {8}, "starts outside of the time of the log": {9, 10},
	})
	same(t, "lines", a.Lines, 9)
}

func TestOARMakesUpSizesAndSubmissionsWhereAskedToAndSaysSo(t *testing.T) {
	f, err := workload.Read(strings.NewReader(oarText), "", workload.OpenOptions{MakeUp: true})
	if err != nil {
		t.Fatal(err)
	}
	jobs := rest(t, f)
	// 895 = 18·48 + 31 = 111·8 + 7; 841 = 17·48 + 25 = 105·8 + 1.
	same(t, "first", []int64{jobs[0].Submit, int64(jobs[0].Size)}, []int64{1084363552 - 31*3600, 8})
	same(t, "second", []int64{jobs[1].Submit, int64(jobs[1].Size)}, []int64{1084363551 - 25*3600, 2})
	same(t, "said", f.Header().MadeUp, workload.OARMadeUp)
}

func TestCSVTakesAnyColumnsThatSayWhenAndHowLong(t *testing.T) {
	const text = `User, start,end,Size,vcpus,memory_mb,preemptible,id,deadline
"Doe, ""J""",2026-01-02T00:00:00+01:00,2026-01-02 00:30:00,3,4,8192,yes,a,
b,1767400000,1767400060.9,,,,,,2026-01-03
`
	jobs, a := all(t, text, "", workload.OpenOptions{})
	same(t, "jobs", jobs, []workload.Job{
		{ID: "a", Line: 2, Submit: 1767308400, Reserved: true, Start: 1767308400, Runtime: 5400, Waited: -1, Size: 3, Shape: resource.Vector{VCPUs: 4, MemoryMB: 8192}, Preemptible: true, User: `Doe, "J"`},
	})
	same(t, "skipped", skipped(a), map[string][]int64{"has a deadline before which it cannot be over": {3}})

	jobs, _ = all(t, "submit,runtime,estimate\n5,1h,7200\n9,30,\n", "jobs.csv", workload.OpenOptions{})
	same(t, "jobs", jobs, []workload.Job{
		{Line: 2, Submit: 5, Runtime: 3600, Estimate: 7200, Waited: -1, Size: 1},
		{Line: 3, Submit: 9, Runtime: 30, Waited: -1, Size: 1},
	})
}

func TestCSVNamesEachMistakeOfALine(t *testing.T) {
	const text = "submit,start,runtime,size,preemptible\n" +
		"soon,,5,1,\n,,5,1,\n1,,long,1,\n1,,5,1,perhaps\n1,,,1,\n\"1,,5,1,\n1,2\n9,5,5,1,\n1,,5,0,\n1,,5,99999999999,\n-1,,5,1,\n1,,0,1,\n1,,5,1.5,\n"
	jobs, a := all(t, text, "", workload.OpenOptions{})
	same(t, "jobs", len(jobs), 0)
	same(t, "skipped", skipped(a), map[string][]int64{
		"has a time that is neither seconds nor as 2026-01-31T12:00:00Z": {2},
		"has neither submit nor start":                                   {3},
		"has a duration that is neither seconds nor as 2h30m":            {4},
		"has a preemptible that is neither true nor false":               {5},
		"has neither runtime nor end":                                    {6},
		"has quotes that do not end":                                     {7},
		"has too few or too many columns":                                {8},
		"starts before it was submitted":                                 {9},
		"has a size that is not positive":                                {10},
		"has a number out of range":                                      {11},
		"was submitted at a negative time":                               {12},
		"has a run time that is not positive":                            {13},
		"has a fraction where a whole number should be":                  {14},
	})
	same(t, "lines", a.Lines, 13)
}

func TestCSVRefusesAWrongHeader(t *testing.T) {
	for header, want := range map[string]string{
		"submit,runtme": `runtime`, "submit,runtime,submit": "twice", "start,size": "neither a column runtime nor", "runtime,size": "neither a column submit nor",
		"": "no header", "submit\x00,runtime": "NUL",
	} {
		_, err := workload.Read(strings.NewReader(header+"\n1,2\n"), "", workload.OpenOptions{Format: "csv"})
		if header == "" {
			_, err = workload.Read(strings.NewReader("\n\n"), "", workload.OpenOptions{Format: "csv"})
		}
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) || fault.Of(err).Field != "trace" {
			t.Errorf("header %q: %v; want an Invalid fault with %q", header, err, want)
		}
	}
}

func TestBadLinesAreCountedWithTheirNumbers(t *testing.T) {
	good := func(id, submit int) string {
		return fmt.Sprintf("%d %d 0 10 4 -1 -1 4 20 -1 1 1 1 -1 -1 -1 -1 -1", id, submit)
	}
	lines := []string{
		good(1, 0) + "\r", "", "1 2 3", good(2, 1) + " 19", strings.Replace(good(3, 2), "-1", "\x00", 1), strings.Repeat("9 ", 1<<20),
		strings.Replace(good(4, 3), "20", "twenty", 1), good(5, 1<<50), good(6, -1), strings.Replace(good(7, 3), " 4 ", " 4000 ", 1), "; a comment", good(8, 5),
		strings.Replace(good(9, 6), " 10 ", " 1e300 ", 1), strings.Replace(good(9, 6), " 10 ", " NaN ", 1), good(10, 7),
	}
	jobs, a := all(t, strings.Join(lines, "\n"), "x.swf", workload.OpenOptions{MostSize: 100})
	var ids []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	same(t, "jobs", ids, []string{"1", "8", "10"})
	same(t, "skipped", skipped(a), map[string][]int64{
		"is blank": {2}, "has too few or too many columns": {3, 4}, "holds a NUL byte": {5}, "is longer than 1 MiB": {6},
		"has something else where a number should be": {7}, "has a number out of range": {8, 13, 14}, "was submitted at a negative time": {9}, "is larger than the machine": {10},
	})
	same(t, "lines", a.Lines, a.Jobs+11)
}

func TestAnAccountKeepsTheFirstTenLinesOfAReason(t *testing.T) {
	_, a := all(t, swfText+strings.Repeat("x\n", 1000), "", workload.OpenOptions{})
	same(t, "skipped", a.Skipped, []workload.Skipped{{Reason: "has too few or too many columns", Lines: 1000, First: []int64{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}}})
}

func TestTheFormatIsToldFromTheContentAndElseFromTheName(t *testing.T) {
	const bare = "1 2 3\n"
	for _, c := range []struct{ text, name, want string }{
		{swfText, "data.csv", "swf"}, {lwfText, "x", "lwf"}, {oarText, "x.log", "oar"}, {"submit,runtime\n", "x", "csv"}, {bare, "x", "oar"},
		{"", "x.swf", "swf"}, {"broken\n", "x.swf.gz", "swf"}, {"; only a header\n", "", "swf"}, {"\ufeffstart,end\n", "", "csv"}, {"0 1 2 3 4 5 6 7 'i' 9", "", "lwf"},
	} {
		f, err := workload.Read(strings.NewReader(c.text), c.name, workload.OpenOptions{})
		if err != nil {
			t.Errorf("%.20q in %s: %v", c.text, c.name, err)
			continue
		}
		same(t, c.name, f.Format(), c.want)
	}
	_, err := workload.Read(strings.NewReader("what is this?\n"), "notes.txt", workload.OpenOptions{})
	if !fault.Is(err, fault.Invalid) || fault.Of(err).Field != "trace_format" {
		t.Errorf("an unknown format: got %v; want an Invalid fault on trace_format", err)
	}
	_, err = workload.Read(strings.NewReader("\n \n"), "notes.txt", workload.OpenOptions{})
	if !fault.Is(err, fault.Invalid) || fault.Of(err).Field != "trace" {
		t.Errorf("an empty text: got %v; want an Invalid fault on trace", err)
	}
}

func zip(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGzipIsToldByTheContent(t *testing.T) {
	f, err := workload.Read(bytes.NewReader(zip(t, swfText)), "plain.txt", workload.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "jobs", len(rest(t, f)), 3)
}

func TestAFileThatBreaksOffGivesWhatItHasAndThenSaysSo(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "%d %d 0 %d 4 -1 -1 4 20 -1 1 1 1 -1 -1 -1 -1 -1\n", i, i, 1+i*i%97)
	}
	zipped := zip(t, text.String())
	f, err := workload.Read(bytes.NewReader(zipped[:len(zipped)/2]), "", workload.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	jobs := 0
	for ; err == nil; jobs++ {
		_, err = f.Next()
	}
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "breaks off after line") || jobs < 5000 {
		t.Errorf("after %d jobs: %v; want an Invalid fault after half of them", jobs, err)
	}

	f, err = workload.Read(strings.NewReader(lwfText[:strings.Index(lwfText, `<lease id="3"`)]), "", workload.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for jobs = 0; err == nil; jobs++ {
		_, err = f.Next()
	}
	if !fault.Is(err, fault.Invalid) || jobs != 3 {
		t.Errorf("XML that breaks off: got %v after %d jobs; want an Invalid fault after 2", err, jobs-1)
	}
}

// The header states the size of the machine: a header that breaks off must not pass for one
// without a size.
func TestAFileThatBreaksOffInItsHeaderIsRefusedAtOnceAndSaysSoOnce(t *testing.T) {
	header := zip(t, strings.Repeat("; Note: nothing\n", 3)+"; MaxProcs: 64\n")
	for name, text := range map[string][]byte{
		"a.gz": header[:5], "b.gz": header[:len(header)-12], "c.swf.gz": header[:len(header)-12], "d.csv.gz": header[:12],
		"e.lwf": []byte(lwfText[:strings.Index(lwfText, "<nodes>")]),
	} {
		_, err := workload.Open(file(t, name, text), workload.OpenOptions{})
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Field != "trace" || strings.Count(err.Error(), "EOF") != 1 ||
			name != "e.lwf" && !strings.Contains(err.Error(), "breaks off") {
			t.Errorf("%s: %v; want an Invalid fault on trace that states once that the file breaks off", name, err)
		}
	}
}

func file(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyARegularFileIsOpened(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "is read several times and has to be a file", "/dev/null": "has to be a file", folder: "is a directory"} {
		_, err := workload.Open(path, workload.OpenOptions{})
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Field != "trace" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an Invalid fault on trace with %q", path, err, want)
		}
	}
}

func TestXMLThatIsNoLeaseWorkloadIsRefused(t *testing.T) {
	for _, text := range []string{"<html><body/></html>", `<lease-workload><lease-requests><lease-request arrival="` + strings.Repeat("0", 2<<20) + `"/>`} {
		f, err := workload.Read(strings.NewReader(text), "", workload.OpenOptions{})
		if err == nil {
			_, err = f.Next()
		}
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%.40s: %v; want an Invalid fault", text, err)
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for field, o := range map[string]workload.OpenOptions{
		"trace_format": {Format: "swff"}, "procs_per_host": {ProcsPerHost: -1}, "hosts": {MostSize: -1}, "ahead": {Ahead: -1},
	} {
		if err := o.Check(); fault.Of(err) == nil || fault.Of(err).Field != field || !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: got %v; want an Invalid fault on %s", o, err, field)
		}
	}
	_, err := workload.Open("there/is/no.swf", workload.OpenOptions{})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "there/is/no.swf") {
		t.Errorf("a missing file: got %v", err)
	}
	if !slices.Contains(workload.Formats, "oar") {
		t.Error("oar is no format")
	}
}

func TestWhatLastsOrLiesLongerAheadThanIsLookedAtIsCounted(t *testing.T) {
	const text = `submit,start,runtime,estimate
0,,10,99999
1,,2000,
2,1500,10,
2000,,10,
900,,10,
`
	jobs, a := all(t, text, "", workload.OpenOptions{Longest: 1000})
	same(t, "jobs", len(jobs), 2)
	same(t, "estimate", jobs[0].Estimate, 1000)
	same(t, "skipped", skipped(a), map[string][]int64{
		"lasts longer than the limit": {3}, "starts farther ahead than the limit": {4}, workload.AfterGap: {5},
	})
	same(t, "account", []int64{a.Lines, a.Jobs}, []int64{5, 2})
}
