// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
)

// grid5000Log returns the path of a log of reservations: the real one that ALMANAC_DATA names (the
// reservation table of the Grid Workloads Archive's GWA-T-2, which is not part of Almanac), or one
// of the same form that this function writes.
func grid5000Log(t *testing.T, folder string) string {
	t.Helper()
	if data := os.Getenv("ALMANAC_DATA"); data != "" {
		return filepath.Join(data, "grid5000", "grid5000_reservation_jobs.log.gz")
	}
	var log strings.Builder
	log.WriteString("# Format: JobID<TAB>StartTime<TAB>StopTime\n\n")
	for i := range int64(400) {
		begin := 1_100_000_000 + i*i%7919*60
		end := begin + 600 + i%13*1800
		switch i % 10 {
		case 3:
			end = -1 // canceled before its start
		case 7:
			end = begin // broken
		}
		fmt.Fprintf(&log, "%d\t%d\t%d\n", 1000+i, begin, end)
	}
	path := filepath.Join(folder, "own.log.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(file)
	if _, err := zipped.Write([]byte(log.String())); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// logRow is a row of the log as this test reads it.
type logRow struct{ job, start, stop int64 }

// readLog returns the first rows of a log.
func readLog(t *testing.T, path string, most int) []logRow {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []logRow
	for lines := bufio.NewScanner(unzipped); lines.Scan() && len(rows) < most; {
		var r logRow
		if n, _ := fmt.Sscanf(lines.Text(), "%d\t%d\t%d", &r.job, &r.start, &r.stop); n == 3 {
			rows = append(rows, r)
		}
	}
	return rows
}

// The test imports the first 5,000 rows of a log onto 16 hosts and compares the result with the
// log.
func TestALogOfReservationsIsImported(t *testing.T) {
	folder := built.NewFolder(t, strings.ReplaceAll(built.TenHosts, "[01-10]", "[01-16]"))
	s := built.Start(t, folder, "OS_LIMITS__MAX_START_AHEAD=0", "OS_LIMITS__MAX_DURATION=0")
	path := grid5000Log(t, folder)
	out, messages, exit := s.Almanac(t, "reservation", "import", path, "--rows", "5000", "--shift-to", "now+1h", "--report", "answers.csv", "-f", "json")
	if exit != 0 {
		t.Fatalf("exit %d\n%s", exit, messages)
	}
	var sum struct {
		Rows         int            `json:"rows"`
		NotSent      map[string]int `json:"not_sent"`
		Accepted     int            `json:"accepted"`
		Refused      map[string]int `json:"refused"`
		Failed       int            `json:"failed"`
		ShiftSeconds int64          `json:"shift_seconds"`
	}
	if err := json.Unmarshal([]byte(out), &sum); err != nil {
		t.Fatal(err)
	}
	t.Log(out)

	want := make(map[string]logRow)
	rows := readLog(t, path, 5000)
	for _, r := range rows {
		if r.start >= 0 && r.stop > r.start {
			want[strconv.FormatInt(r.job, 10)] = r
		}
	}
	notSent, refused := 0, 0
	for _, n := range sum.NotSent {
		notSent += n
	}
	for _, n := range sum.Refused {
		refused += n
	}
	if sum.Rows != len(rows) || notSent != len(rows)-len(want) || sum.Accepted+refused != len(want) || sum.Failed != 0 {
		t.Errorf("the log has %d rows, %d of them to send", len(rows), len(want))
	}
	if sum.Accepted == 0 || refused == 0 {
		t.Errorf("%d accepted and %d refused: this log must have both", sum.Accepted, refused)
	}
	mustNotOverlap(t, folder)
	compareAnswers(t, folder, want, sum.ShiftSeconds)

	again, messages, exit := s.Almanac(t, "reservation", "list", "--limit", "100000", "-f", "value", "-c", "ID")
	if got := strings.Count(again, "\n"); exit != 0 || got != sum.Accepted {
		t.Errorf("exit %d, %d reservations listed, %d accepted\n%s", exit, got, sum.Accepted, messages)
	}
}

// compareAnswers checks every answered row and every stored claim against the log.
func compareAnswers(t *testing.T, folder string, want map[string]logRow, shift int64) {
	t.Helper()
	file, err := os.Open(filepath.Join(folder, "answers.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	hostSeconds := int64(0)
	for _, record := range records[1:] {
		row, sent := want[record[1]] // a row without an id was not sent
		switch answer := record[5]; {
		case !sent && answer != "not sent":
			t.Errorf("row %s should not have been sent: %v", record[0], record)
		case answer == "accepted":
			hostSeconds += (row.stop - row.start) * (1 + row.job%8)
		case answer == "refused" && (record[6] == "" || record[7] == ""):
			t.Errorf("row %s is refused without a reason: %v", record[0], record)
		}
	}
	held, earliest := int64(0), int64(1<<62)
	for _, claims := range claimsByHost(t, folder) {
		for _, w := range claims {
			held += w[1] - w[0]
			earliest = min(earliest, w[0])
		}
	}
	if held != hostSeconds {
		t.Errorf("the claims hold %d host-seconds, the accepted rows ask for %d", held, hostSeconds)
	}
	first := int64(1 << 62)
	for _, row := range want {
		first = min(first, row.start)
	}
	if earliest < first+shift {
		t.Errorf("a claim begins at %d, before the first row's shifted start %d", earliest, first+shift)
	}
}
