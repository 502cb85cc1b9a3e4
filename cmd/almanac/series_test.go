// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// lab returns a series on three days. The second has no reservation, and the third begins an hour later than by the rule.
func lab() v1.Series {
	s := v1.Series{ID: "s-1", Name: "lab", Left: 2,
		Rule: "FREQ=DAILY;COUNT=3", TimeZone: "Europe/Paris", LocalStart: "2026-12-02T09:00:00", Duration: 3600,
	}
	for i := range 3 {
		start := morning.Add(time.Duration(23+24*i) * time.Hour)
		s.Occurrences = append(s.Occurrences, v1.Occurrence{Local: start.Add(time.Hour).Format(localForm), Start: start, End: start.Add(time.Hour)})
	}
	for i, at := range map[int]time.Duration{0: 0, 2: time.Hour} {
		o := &s.Occurrences[i]
		o.ReservationID, o.Status, o.Quantity = fmt.Sprintf("r-%d", i+1), "pending", 2
		o.Start, o.End = o.Start.Add(at), o.End.Add(at)
	}
	return s
}

const createLab = "series create lab --rule FREQ=DAILY;COUNT=3 --start 2026-12-02T09:00 --time-zone Europe/Paris --duration 1h"

func TestASeriesIsAskedForByTheFlags(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/series", http.StatusCreated, lab())
	got := almanac(t, a, append(strings.Fields(createLab+" --quantity 2 --kind instance --vcpus 2 --affinity different --on-end shelve --before-end 10m --together rack"+
		" --except 2026-12-03,2026-12-04T09:00 --also 2026-12-09T09:00 --skip-refused --idempotency-key once"), "--properties", `["=", "$gpu", true]`)...)
	got.wantDone(t)
	asked := a.asked()
	if len(asked) != 1 || asked[0].Line != "POST /v1/series" || asked[0].Key != "once" {
		t.Fatalf("asked %+v", asked)
	}
	want := `{"name":"lab","kind":"instance","host_properties":["=","$gpu",true],"quantity":2,"resources":{"vcpus":2},` +
		`"affinity":"different","on_end":"shelve","before_end":600,"together":{"by":"rack","rule":"same"},"rule":"FREQ=DAILY;COUNT=3","time_zone":"Europe/Paris",` +
		`"local_start":"2026-12-02T09:00:00","duration":3600,"except":["2026-12-03","2026-12-04T09:00"],"also":["2026-12-09T09:00"],"skip_refused":true}`
	if diff := cmp.Diff(want, asked[0].Body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestABookedSeriesNamesItsFirstAndLastAndWhatWasSkipped(t *testing.T) {
	a := newAPI(t)
	made := lab()
	made.Refused = refusedOccurrences(1)
	a.on("POST /v1/series", http.StatusCreated, made)
	got := almanac(t, a, append(strings.Fields(createLab), "--skip-refused")...)
	got.wantDone(t)
	want := `series s-1 is booked: 2 occurrences from 2026-12-02T09:00:00 to 2026-12-04T09:00:00
1 occurrence skipped:
  2026-12-03T09:00:00: no room
`
	if diff := cmp.Diff(want, got.stderr); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
	if key := a.asked()[0].Key; key == "" {
		t.Error("the request has no key")
	}
	for _, line := range []string{"| Reservations | 2 ", "| First Start  | 2026-12-02T08:00:00Z |", "| Last End     | 2026-12-04T10:00:00Z |"} {
		if !strings.Contains(got.stdout, line) {
			t.Errorf("stdout lacks %q:\n%s", line, got.stdout)
		}
	}
}

// refusedOccurrences returns so many occurrences from 3 December on that have no room.
func refusedOccurrences(n int) (list []v1.RefusedOccurrence) {
	for i := range n {
		start := morning.Add(time.Duration(47+24*i) * time.Hour)
		list = append(list, v1.RefusedOccurrence{Local: start.Add(time.Hour).Format(localForm), Start: start, Constraint: "free_hosts", Message: "no room"})
	}
	return list
}

func TestARefusedSeriesNamesItsRefusedOccurrencesAndWhatWouldDo(t *testing.T) {
	a := newAPI(t)
	refused := refusal()
	refused.Error.Message = "12 of 60 occurrences cannot be had"
	refused.Refusal.Occurrences = refusedOccurrences(12)
	a.on("POST /v1/series", http.StatusConflict, refused)
	got := almanac(t, a, append(strings.Fields(createLab), "--quantity", "2")...)
	got.wantFailure(t, exitNoRoom)
	want := "almanac: 12 of 60 occurrences cannot be had\n  constraint:       free_hosts\n"
	for day := 3; day < 13; day++ {
		label := "        "
		if day == 3 {
			label = "refused:"
		}
		want += fmt.Sprintf("  %s          2026-12-%02dT09:00:00: no room\n", label, day)
	}
	want += "                    and 2 more\n  largest quantity: 1\n  hint: try --skip-refused, or --quantity 1\n"
	if diff := cmp.Diff(want, got.stderr); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

func TestAHintForASeriesIsOneThatHelps(t *testing.T) {
	a := newAPI(t)
	answers := map[string]v1.Refusal{
		"free":    {Constraint: "free_hosts", EarliestStart: new(morning)},
		"pool":    {Constraint: "pool", LargestQuantity: 3},
		"match":   {Constraint: "host_properties"},
		"length":  {Constraint: "max_duration"},
		"far":     {Constraint: "max_start_ahead"},
		"hundred": {Constraint: "free_hosts", Occurrences: refusedOccurrences(100)},
	}
	answer := func(w http.ResponseWriter, r *http.Request) {
		var body v1.SeriesRequest
		_ = json.NewDecoder(r.Body).Decode(&body)
		refused := answers[body.Name]
		if refused.Occurrences == nil {
			refused.Occurrences = refusedOccurrences(1)
		}
		answerWith(http.StatusConflict, v1.ErrorAnswer{Error: v1.Error{Kind: "refused", Message: "no"}, Refusal: &refused})(w, r)
	}
	a.mux.HandleFunc("POST /v1/series", answer)
	a.mux.HandleFunc("PATCH /v1/series/s-1", answer)
	a.on("GET /v1/series/s-1", http.StatusOK, lab())
	const line = "  refused:          2026-12-03T09:00:00: no room\n"
	for arguments, want := range map[string]string{
		strings.Replace(createLab, "lab", "free", 1):                     line + "  hint: try --skip-refused\n",
		strings.Replace(createLab, "lab", "free", 1) + " --skip-refused": line,
		strings.Replace(createLab, "lab", "pool", 1):                     line + "  largest quantity: 3\n  hint: try --quantity 3\n",
		strings.Replace(createLab, "lab", "match", 1):                    line + "  hint: try other --properties ('almanac properties' lists the properties that exist)\n",
		strings.Replace(createLab, "lab", "length", 1):                   line + "  hint: try a shorter --duration\n",
		strings.Replace(createLab, "lab", "far", 1):                      line + "  hint: try a --rule that ends earlier, or --skip-refused\n",
		strings.Replace(createLab, "lab", "hundred", 1):                  "and at least 90 more\n  hint: try --skip-refused\n",
		"series change s-1 --name free":                                  line,
		"series change s-1 --name free --dry-run":                        line,
	} {
		got := almanac(t, a, strings.Fields(arguments)...)
		if got.code != exitNoRoom || !strings.HasSuffix(got.stderr, want) {
			t.Errorf("%s: want %q at the end of\n%s", arguments, want, got.stderr)
		}
	}
}

func TestASeriesIsFoundByItsNameForEachCommand(t *testing.T) {
	for arguments, want := range map[string]string{
		"series show lab":                               "GET /v1/series/s-1", // with its occurrences
		"series change lab --name d":                    "PATCH /v1/series/s-1",
		"series change lab --name d --dry-run":          "PATCH /v1/series/s-1?dry_run=true",
		"series delete lab --yes":                       "DELETE /v1/series/s-1",
		"series delete lab --dry-run":                   "DELETE /v1/series/s-1?dry_run=true",
		"reservation list --series lab":                 "GET /v1/reservations?limit=1000&series_id=s-1",
		"series delete lab --yes --from +1d":            "DELETE /v1/series/s-1?from=2026-12-02T09%3A00%3A00Z",
		"series delete lab --yes --from 2026-12-03":     "DELETE /v1/series/s-1?from=2026-12-03T00%3A00%3A00",
		"series change lab --name d --from 2026-12-04":  "PATCH /v1/series/s-1?from=2026-12-04T00%3A00%3A00",
		"series delete lab -y --from 2026-12-02T09:01":  "DELETE /v1/series/s-1?from=2026-12-02T09%3A01%3A00",
		"series delete lab -y --from 2026-12-03T08:00Z": "DELETE /v1/series/s-1?from=2026-12-03T08%3A00%3A00Z",
	} {
		a := tagging(t, `"7-0123456789abcdef"`)
		almanac(t, a, strings.Fields(arguments)...)
		if asked := a.lines(); asked[len(asked)-1] != want {
			t.Errorf("%s asks %v, last want %s", arguments, asked, want)
		}
	}
}

func TestTheTimesOfASeriesAreLocalTimes(t *testing.T) {
	a := tagging(t, `"7-0123456789abcdef"`)
	for arguments, mention := range map[string]string{
		strings.Replace(createLab, "T09:00", "T09:00Z", 1): "--time-zone tells where",
		strings.Replace(createLab, "T09:00", "", 1):        "is no local time",
		strings.Replace(createLab, "2026-12-02", "now", 1): "is no local time",
		strings.Replace(createLab, "T09:00", "T24:00", 1):  "is no local time",
		"series change lab --time-of-day 9am":              "is no time of day",
		"series change lab --time-of-day 24:00":            "is no time of day",
		"series change lab --from 2026-12-03":              "set --name or --quantity",
		"series change lab --name x --from tomorrow":       "is not a time",
		"series create lab --rule FREQ=DAILY":              `"duration", "start", "time-zone" not set`,
		"series delete lab --from 2026-12-03 --if-match":   "--if-match",
	} {
		almanac(t, a, strings.Fields(arguments)...).wantFailure(t, exitUsage, mention)
	}
	almanac(t, a, "series", "change", "lab", "--time-of-day", "9:30").wantFailure(t, exitUsage, "write one such as 09:30")
	almanac(t, a, "series", "change", "lab", "--time-of-day", "09:30", "--if-match", "*").wantDone(t)
	asked := a.asked()
	if body := asked[len(asked)-1].Body; body != `{"time_of_day":"09:30:00"}` {
		t.Errorf("the body is %s", body)
	}
}

func TestAWrongFieldOfASeriesIsNamedAsItsFlag(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/series/s-1", http.StatusOK, lab())
	for field, want := range map[string]string{
		"local_start": "--start: is wrong", "start_time": "--start: is wrong", "time_zone": "--time-zone: is wrong", "rule": "--rule: is wrong",
		"except": "--except: is wrong", "host_properties": "--properties: is wrong", "skip_refused": "--skip-refused: is wrong",
	} {
		a := newAPI(t)
		a.on("POST /v1/series", http.StatusBadRequest, v1.ErrorAnswer{Error: v1.Error{Kind: "invalid", Field: field, Message: "is wrong"}})
		almanac(t, a, strings.Fields(createLab)...).wantFailure(t, exitUsage, want)
	}
	a.on("PATCH /v1/series/s-1", http.StatusBadRequest, v1.ErrorAnswer{Error: v1.Error{Kind: "invalid", Field: "start_time", Message: "is past"}})
	almanac(t, a, "series", "change", "s-1", "--time-of-day", "09:00").wantFailure(t, exitUsage, "--time-of-day: is past")
}

// What one instance has is written as a whole: the amounts without a flag are those of the first occurrence that changes.
func TestASizeKeepsTheAmountsWithoutAFlag(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/series/s-1", http.StatusOK, lab())
	one, three := named("r-1", "lab", "pending"), named("r-3", "lab", "pending")
	one.Occurrence, three.Occurrence = lab().Occurrences[0].Local, lab().Occurrences[2].Local
	one.Start, one.Resources = lab().Occurrences[0].Start, &v1.Resources{VCPUs: 1, MemoryMB: 1}
	three.Start, three.Resources = lab().Occurrences[2].Start, &v1.Resources{VCPUs: 2, MemoryMB: 512, DiskGB: 7}
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{one, three}})
	a.on("PATCH /v1/series/s-1", http.StatusOK, lab())
	almanac(t, a, strings.Fields("series change s-1 --vcpus 4 --from 2026-12-03")...).wantDone(t)
	asked := a.asked()
	if !slices.Contains(a.lines(), "GET /v1/reservations?series_id=s-1&status=pending") {
		t.Errorf("asked %v", a.lines())
	}
	if body := asked[len(asked)-1].Body; body != `{"resources":{"vcpus":4,"memory_mb":512,"disk_gb":7}}` {
		t.Errorf("the body is %s", body)
	}
}

func TestServersOfASeriesAreDeletedOnlyWhenTheUserAgrees(t *testing.T) {
	foreseen := v1.SeriesCancellation{Reservations: []v1.Cancellation{
		{ID: "r-1", Name: "lab", Status: "active", Servers: []v1.CanceledServer{{ID: "v-1", Name: "web", Status: "ACTIVE", Becomes: "deleted"}}},
		{ID: "r-3", Name: "lab", Status: "pending"},
	}}
	const server = "reservation r-1 at 2026-12-02T09:00:00, which is active, would be canceled\nserver v-1 web (ACTIVE) of reservation r-1 lab would be deleted\n"
	for _, tc := range []struct {
		arguments, stdin string
		terminal         bool
		code             int
		stderr           string
		deletes          bool
	}{
		{arguments: "", code: exitNoRoom, stderr: server + "almanac: series s-1 lab stays: canceling it would delete servers; add --yes to delete them\n"},
		{arguments: "", terminal: true, stdin: "n\n", code: exitNoRoom, stderr: server + "Cancel series s-1 lab and delete 1 of its servers? [y/N]\n" +
			"almanac: series s-1 lab stays: canceling it would delete servers; add --yes to delete them\n"},
		{arguments: "", terminal: true, stdin: "y\n", stderr: server + "Cancel series s-1 lab and delete 1 of its servers? [y/N]\nseries s-1 lab is canceled\n", deletes: true},
		{arguments: "--yes", stderr: "series s-1 lab is canceled\n", deletes: true},
		{arguments: "--yes --from 2026-12-03", stderr: "series s-1 lab from 2026-12-03T00:00:00 on is canceled\n", deletes: true},
		{arguments: "--dry-run", stderr: server + "reservation r-3 at 2026-12-04T09:00:00, which is pending, would be canceled\ndry run: nothing is canceled\n"},
	} {
		a := newAPI(t)
		a.on("GET /v1/series/s-1", http.StatusOK, lab())
		deleted := false
		a.mux.HandleFunc("DELETE /v1/series/s-1", func(w http.ResponseWriter, r *http.Request) {
			deleted = deleted || !r.URL.Query().Has("dry_run")
			offered(nil, foreseen)(w, r)
		})
		got := almanacAt(t, a, tc.terminal, tc.stdin, append([]string{"series", "delete", "s-1"}, strings.Fields(tc.arguments)...)...)
		if diff := cmp.Diff(tc.stderr, got.stderr); diff != "" || got.code != tc.code || deleted != tc.deletes {
			t.Errorf("%q: exit code %d, deleted %v, stderr (-want +got):\n%s", tc.arguments, got.code, deleted, diff)
		}
	}
}

func TestOfSeveralSeriesWithANameNoneIsChosen(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/series", http.StatusOK, v1.SeriesList{Series: []v1.Series{{ID: "s-1", Name: "lab", Left: 1}, {ID: "s-2", Name: "lab", Left: 2}}})
	almanac(t, a, "series", "delete", "lab").wantFailure(t, exitUsage, "2 series have the name \"lab\"; use the id of one: s-1, s-2")
}
