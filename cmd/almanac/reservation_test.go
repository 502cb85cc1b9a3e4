// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestCreateSendsWhatTheFlagsSay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "filter.json")
	if err := os.WriteFile(file, []byte("[\"=\", \"$gpu\", \"a100\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"now, for a time": {
			[]string{"--duration", "2h"},
			`{"name":"x","duration":7200,"quantity":1}`,
		},
		"now is left to the service": {
			[]string{"--start", "now", "--duration", "90", "--end", "+1h"},
			`{"name":"x","end_time":"2026-12-01T10:00:00Z","duration":90,"quantity":1}`,
		},
		"a window": {
			[]string{"--start", "+1d", "--end", "2026-12-03T10:00+01:00", "--policy", "pe-best-fit", "--quantity", "4"},
			`{"name":"x","start_time":"2026-12-02T09:00:00Z","end_time":"2026-12-03T09:00:00Z","quantity":4,"policy":"pe-best-fit"}`,
		},
		"a filter": {
			[]string{"--duration", "1h", "--properties", `["=", "$gpu", "a100"]`},
			`{"name":"x","host_properties":["=","$gpu","a100"],"duration":3600,"quantity":1}`,
		},
		"a filter in a file": {
			[]string{"--duration", "1h", "--properties", "@" + file},
			`{"name":"x","host_properties":["=","$gpu","a100"],"duration":3600,"quantity":1}`,
		},
		"a filter from standard input": {
			[]string{"--duration", "1h", "--properties", "@-"},
			`{"name":"x","host_properties":["=","$zone","az1"],"duration":3600,"quantity":1}`,
		},
		"instances": {
			[]string{"--duration", "1h", "--kind", "instance", "--vcpus", "2", "--memory-mb", "4096", "--disk-gb", "8", "--affinity", "different"},
			`{"name":"x","kind":"instance","duration":3600,"quantity":1,"resources":{"vcpus":2,"memory_mb":4096,"disk_gb":8},"affinity":"different"}`,
		},
		"what happens at the end": {
			[]string{"--duration", "1h", "--image", "debian", "--on-end", "shelve", "--before-end", "0"},
			`{"name":"x","duration":3600,"quantity":1,"image":"debian","on_end":"shelve","before_end":0}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.on("POST /v1/reservations", http.StatusCreated, training())
			got := almanacWith(t, a, `["=", "$zone", "az1"]`, append([]string{"reservation", "create", "x", "-f", "value", "-c", "ID"}, tc.args...)...)
			got.wantDone(t)
			if got.stdout != "r-1\n" || got.stderr != "" {
				t.Errorf("stdout %q, stderr %q", got.stdout, got.stderr)
			}
			asked := a.asked()
			if diff := cmp.Diff([]string{"POST /v1/reservations", tc.want}, []string{asked[0].Line, asked[0].Body}); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimesFromNowOnCountFromTheServicesTime(t *testing.T) {
	a := newAPI(t)
	a.clock = morning.Add(100 * 24 * time.Hour)
	a.on("POST /v1/reservations", http.StatusCreated, training())
	almanac(t, a, "reservation", "create", "x", "--start", "now+1h", "--end", "+2h").wantDone(t)
	want := `{"name":"x","start_time":"2027-03-11T10:00:00Z","end_time":"2027-03-11T11:00:00Z","quantity":1}`
	if asked := a.asked(); asked[0].Body != want {
		t.Errorf("asked for %s, want %s", asked[0].Body, want)
	}
}

func TestEachCreateHasAKeyOfItsOwnUnlessOneIsGiven(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/reservations", http.StatusCreated, training())
	create := []string{"reservation", "create", "x", "--duration", "1h"}
	almanac(t, a, create...).wantDone(t)
	almanac(t, a, create...).wantDone(t)
	almanac(t, a, append(create, "--idempotency-key", "mine")...).wantDone(t)
	asked := a.asked()
	if asked[0].Key == "" || asked[0].Key == asked[1].Key || asked[2].Key != "mine" {
		t.Errorf("keys %q, %q, %q", asked[0].Key, asked[1].Key, asked[2].Key)
	}
}

func TestABusyServiceIsAskedAgainWithTheSameKey(t *testing.T) {
	a := newAPI(t)
	busy := true
	a.mux.HandleFunc("POST /v1/reservations", func(w http.ResponseWriter, r *http.Request) {
		if busy {
			busy = false
			w.Header().Set("Retry-After", "1")
			fail(http.StatusServiceUnavailable, "unavailable", "locked")(w, r)
			return
		}
		answerWith(http.StatusCreated, training())(w, r)
	})
	almanac(t, a, "reservation", "create", "x", "--duration", "1h").wantDone(t)
	asked := a.asked()
	if len(asked) != 2 || asked[0] != asked[1] {
		t.Errorf("the requests are %v", asked)
	}
}

func TestADryRunShowsTheOffer(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/reservations", http.StatusOK, v1.OfferAnswer{Offer: v1.Offer{
		Start: morning, End: morning.Add(time.Hour), Quantity: 2, Kind: "host", Policy: "first-fit", Hosts: []string{}, Matched: 8,
	}})
	got := almanac(t, a, "reservation", "create", "x", "--duration", "1h", "--dry-run", "-f", "csv")
	got.wantDone(t)
	want := "Start,End,Quantity,Kind,Policy,Policy Reason,Hosts,Matched,Delayed By Boot,Together,Held Until,Wait Until\n" +
		"2026-12-01T09:00:00Z,2026-12-01T10:00:00Z,2,host,first-fit,,,8,false,,,\n"
	if diff := cmp.Diff(want, got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if asked := a.asked(); asked[0].Line != "POST /v1/reservations?dry_run=true" || asked[0].Key != "" {
		t.Errorf("the requests are %v", asked)
	}
	if !strings.Contains(got.stderr, "nothing is reserved") {
		t.Errorf("stderr %q", got.stderr)
	}
}

func TestAStartDelayedByBootIsSaid(t *testing.T) {
	a := newAPI(t)
	delayed := training()
	delayed.DelayedByBoot = true
	a.on("POST /v1/reservations", http.StatusCreated, delayed)
	got := almanac(t, a, "reservation", "create", "x", "--duration", "1h")
	if !strings.Contains(got.stderr, "delayed until 2026-12-01T10:00:00Z") {
		t.Errorf("stderr %q", got.stderr)
	}
}

// --wait-until lets the reservation wait for room, and --wait the command for the reservation.
func TestAReservationThatWaitsIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		want   int
		stderr string
	}{
		"alone": {nil, exitDone, "there is no room yet: the reservation waits, place 2 of 5, until 2026-12-03T09:00:00Z; then held for 10m; " +
			"'almanac reservation delete r-1' takes it back\n"},
		"and is waited for": {[]string{"--wait", "--wait-timeout", "0"}, exitTimedOut, "reservation r-1 still waits for room, until 2026-12-03T09:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			waiting := named("r-1", "x", "waiting")
			waiting.Waiting = &v1.Waiting{Until: morning.Add(48 * time.Hour), Place: 2, Of: 5, Hold: 600}
			a.on("POST /v1/reservations", http.StatusCreated, waiting)
			got := almanac(t, a, append([]string{"reservation", "create", "x", "--duration", "1h", "--wait-until", "+2d"}, tc.args...)...)
			if got.code != tc.want || !strings.Contains(got.stderr, tc.stderr) || strings.Contains(got.stderr, "is booked from") {
				t.Errorf("exit status %d, stderr %q", got.code, got.stderr)
			}
			if asked, want := a.asked()[0].Body, `{"name":"x","duration":3600,"quantity":1,"wait_until":"2026-12-03T09:00:00Z"}`; asked != want {
				t.Errorf("asked for %s, want %s", asked, want)
			}
		})
	}
}

func TestWaitLooksUntilTheReservationIsActive(t *testing.T) {
	for name, tc := range map[string]struct {
		statuses []string // at each poll; the last one stays
		args     []string
		want     int
		mention  string
	}{
		"active at last":    {[]string{"pending", "starting", "active"}, nil, exitDone, ""},
		"after it waited":   {[]string{"waiting", "waiting", "pending", "active"}, nil, exitDone, ""},
		"waited in vain":    {[]string{"waiting", "canceled"}, nil, exitFailed, "will not become active"},
		"active at once":    {[]string{"active"}, nil, exitDone, ""},
		"failed":            {[]string{"starting", "failed"}, nil, exitFailed, "will not become active"},
		"canceled":          {[]string{"pending", "canceled"}, nil, exitFailed, "will not become active"},
		"still not active":  {[]string{"pending"}, []string{"--wait-timeout", "5s"}, exitTimedOut, "reservation show r-1"},
		"not waited at all": {[]string{"pending"}, []string{"--wait-timeout", "0"}, exitTimedOut, "still pending"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			looks := 0
			look := func(status int) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					now := named("r-1", "x", tc.statuses[min(looks, len(tc.statuses)-1)])
					looks++
					answerWith(status, now)(w, r)
				}
			}
			a.mux.HandleFunc("POST /v1/reservations", look(http.StatusCreated))
			a.mux.HandleFunc("GET /v1/reservations/r-1", look(http.StatusOK))
			got := almanac(t, a, append([]string{"reservation", "create", "x", "--duration", "1h", "--wait", "-f", "value", "-c", "Status"}, tc.args...)...)
			if tc.want != exitDone {
				got.wantFailure(t, tc.want, tc.mention)
				return
			}
			got.wantDone(t)
			if got.stdout != "active\n" || looks != len(tc.statuses) {
				t.Errorf("stdout %q after %d polls", got.stdout, looks)
			}
		})
	}
}

func TestWaitingStopsWhenItsTimeIsUp(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/reservations", http.StatusCreated, training())
	a.on("GET /v1/reservations/r-1", http.StatusOK, training())
	got := almanac(t, a, "reservation", "create", "x", "--duration", "1h", "--wait", "--wait-timeout", "5s")
	got.wantFailure(t, exitTimedOut)
	if looks := len(a.asked()) - 1; looks != 3 || got.waited != 5*time.Second {
		t.Errorf("polled %d times in %v", looks, got.waited)
	}
}

func TestExtendMovesTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"by a duration": {[]string{"--by", "90m"}, "2026-12-01T13:30:00Z"},
		"until a time":  {[]string{"--until", "2026-12-01T14:00+01:00"}, "2026-12-01T13:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.on("GET /v1/reservations/r-1", http.StatusOK, training())
			a.on("PATCH /v1/reservations/r-1", http.StatusOK, training())
			almanac(t, a, append([]string{"reservation", "extend", "r-1"}, tc.args...)...).wantDone(t)
			if got, want := a.asked()[1].Body, `{"end_time":"`+tc.want+`"}`; got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
		})
	}
}

func TestTheVerbsOfOpenstackWork(t *testing.T) {
	for line, want := range map[string]string{
		"reservation set r-1 --quantity 4":    "PATCH /v1/reservations/r-1",
		"reservation update r-1 --quantity 4": "PATCH /v1/reservations/r-1",
		"reservation cancel r-1 --yes":        "DELETE /v1/reservations/r-1",
	} {
		a := newAPI(t)
		a.on("GET /v1/reservations/r-1", http.StatusOK, training())
		a.on("PATCH /v1/reservations/r-1", http.StatusOK, training())
		a.on("DELETE /v1/reservations/r-1", http.StatusNoContent, nil)
		almanac(t, a, strings.Fields(line)...).wantDone(t)
		if asked := a.lines(); asked[len(asked)-1] != want {
			t.Errorf("%s: the requests are %v", line, asked)
		}
	}
}

func TestExtendDoesNotShorten(t *testing.T) {
	for _, args := range [][]string{{"--until", "+1h"}, {"--by", "0"}} {
		a := newAPI(t)
		a.on("GET /v1/reservations/r-1", http.StatusOK, training())
		almanac(t, a, append([]string{"reservation", "extend", "r-1"}, args...)...).wantFailure(t, exitUsage, "ends at 2026-12-01T12:00:00Z")
		if len(a.asked()) != 1 {
			t.Errorf("the requests are %v", a.lines())
		}
	}
}

func TestChangeSendsOnlyWhatIsGiven(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations/r-1", http.StatusOK, training())
	a.on("PATCH /v1/reservations/r-1", http.StatusOK, training())
	for line, want := range map[string]string{
		"--quantity 4":           `{"quantity":4}`,
		"--name y --end +5h":     `{"name":"y","end_time":"2026-12-01T14:00:00Z"}`,
		"--start +2h --name=":    `{"name":"","start_time":"2026-12-01T11:00:00Z"}`,
		"--quantity 0 --end +5h": `{"quantity":0,"end_time":"2026-12-01T14:00:00Z"}`,
	} {
		almanac(t, a, append([]string{"reservation", "change", "r-1"}, strings.Fields(line)...)...).wantDone(t)
		asked := a.asked()
		if got := asked[len(asked)-1]; got.Line != "PATCH /v1/reservations/r-1" || got.Body != want {
			t.Errorf("%s: sent %v, want %s", line, got, want)
		}
	}
}

func TestADryRunOfAChangeShowsTheOffer(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations/r-1", http.StatusOK, training())
	a.on("PATCH /v1/reservations/r-1", http.StatusOK, v1.OfferAnswer{Offer: v1.Offer{Quantity: 4}})
	got := almanac(t, a, "reservation", "change", "r-1", "--quantity", "4", "--dry-run", "-f", "value", "-c", "Quantity")
	got.wantDone(t)
	if got.stdout != "4\n" || a.lines()[1] != "PATCH /v1/reservations/r-1?dry_run=true" {
		t.Errorf("stdout %q, requests %v", got.stdout, a.lines())
	}
}

// deletable answers calls for a reservation. A deletion makes each of its servers what becomes lists.
func (a *api) deletable(id, name string, becomes ...string) {
	foreseen := v1.Cancellation{ID: id, Name: name, Status: "active", Servers: []v1.CanceledServer{}}
	for i, what := range becomes {
		foreseen.Servers = append(foreseen.Servers, v1.CanceledServer{ID: fmt.Sprintf("s-%d", i+1), Name: "node", Status: "ACTIVE", Becomes: what})
	}
	a.on("GET /v1/reservations/"+id, http.StatusOK, named(id, name, "active"))
	a.mux.HandleFunc("DELETE /v1/reservations/"+id, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("dry_run") == "true" {
			answerWith(http.StatusOK, v1.CancellationAnswer{Cancellation: foreseen})(w, r)
			return
		}
		answerWith(http.StatusNoContent, nil)(w, r)
	})
}

func (a *api) deleted(id string) bool {
	return slices.Contains(a.lines(), "DELETE /v1/reservations/"+id)
}

func TestDeleteGoesOnAfterAFailure(t *testing.T) {
	a := newAPI(t)
	a.deletable("r-1", "x")
	a.deletable("r-3", "x")
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{})
	almanac(t, a, "reservation", "delete", "r-1", "r-2", "r-3").wantFailure(t, exitNotFound, "r-1 x is canceled", `"r-2"`, "r-3 x is canceled")
}

func TestADryRunOfDeleteOnlyListsAndNamesTheServers(t *testing.T) {
	a := newAPI(t)
	a.deletable("r-1", "x", "deleted")
	got := almanac(t, a, "reservation", "delete", "r-1", "--dry-run", "--yes", "-f", "value", "-c", "ID")
	got.wantDone(t)
	if a.deleted("r-1") || got.stdout != "r-1\n" || !strings.Contains(got.stderr, "server s-1 node (ACTIVE) of reservation r-1 x would be deleted") {
		t.Errorf("stdout %q, stderr %q, requests %v", got.stdout, got.stderr, a.lines())
	}
}

func TestDeleteAsksBeforeServersAreDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		becomes  []string
		terminal bool
		stdin    string
		args     []string
		deletes  bool
	}{
		"without servers nobody is asked":  {nil, false, "", nil, true},
		"servers that stay are only named": {[]string{"shelved", "left"}, false, "", nil, true},
		"without a terminal it refuses":    {[]string{"shelved", "deleted"}, false, "y\n", nil, false},
		"without a terminal, with --yes":   {[]string{"deleted"}, false, "", []string{"--yes"}, true},
		"somebody agrees":                  {[]string{"deleted"}, true, "y\n", nil, true},
		"somebody does not":                {[]string{"deleted"}, true, "n\n", nil, false},
		"somebody says nothing":            {[]string{"deleted"}, true, "\n", nil, false},
		"the terminal is closed":           {[]string{"deleted"}, true, "", nil, false},
		"with --yes nobody is asked":       {[]string{"deleted"}, true, "", []string{"-y"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.deletable("r-1", "x", tc.becomes...)
			got := almanacAt(t, a, tc.terminal, tc.stdin, append([]string{"reservation", "delete", "r-1"}, tc.args...)...)
			if a.deleted("r-1") != tc.deletes {
				t.Errorf("deleted %v, want %v; stderr:\n%s", !tc.deletes, tc.deletes, got.stderr)
			}
			if tc.deletes {
				got.wantDone(t)
			} else {
				got.wantFailure(t, exitNoRoom, "would be deleted", "r-1 x stays", "--yes")
			}
			for i, what := range tc.becomes {
				if line := fmt.Sprintf("server s-%d node (ACTIVE) of reservation r-1 x would be %s", i+1, what); len(tc.args) == 0 && !strings.Contains(got.stderr, line) {
					t.Errorf("stderr does not mention %q:\n%s", line, got.stderr)
				}
			}
		})
	}
}

func TestEachAnswerIsForOneReservation(t *testing.T) {
	a := newAPI(t)
	for _, id := range []string{"r-1", "r-2"} {
		a.deletable(id, "x", "deleted")
	}
	got := almanacAt(t, a, true, "n\nyes\n", "reservation", "delete", "r-1", "r-2")
	if a.deleted("r-1") || !a.deleted("r-2") || got.code != exitNoRoom {
		t.Errorf("exit code %d, requests %v", got.code, a.lines())
	}
}

func TestAReservationIsFoundByItsName(t *testing.T) {
	for name, tc := range map[string]struct {
		named []v1.Reservation
		want  string // the id; empty for a failure
		code  int
		says  string
	}{
		"the only one":          {[]v1.Reservation{named("r-1", "x", "pending")}, "r-1", exitDone, ""},
		"the one that is over":  {[]v1.Reservation{named("r-1", "x", "ended")}, "r-1", exitDone, ""},
		"the one that is alive": {[]v1.Reservation{named("r-1", "x", "ended"), named("r-2", "x", "active")}, "r-2", exitDone, ""},
		"two alive":             {[]v1.Reservation{named("r-1", "x", "active"), named("r-2", "x", "pending")}, "", exitUsage, "r-1, r-2"},
		"none":                  {nil, "", exitNotFound, `id or name "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: tc.named})
			for _, r := range tc.named {
				a.on("GET /v1/reservations/"+r.ID, http.StatusOK, r)
			}
			got := almanac(t, a, "reservation", "show", "x", "-f", "value", "-c", "ID")
			if tc.code != exitDone {
				got.wantFailure(t, tc.code, tc.says)
				return
			}
			got.wantDone(t)
			if got.stdout != tc.want+"\n" || a.lines()[1] != "GET /v1/reservations?name=x" {
				t.Errorf("stdout %q, requests %v", got.stdout, a.lines())
			}
		})
	}
}

func TestAnUnknownIDIsNotTakenForAName(t *testing.T) {
	a := newAPI(t)
	almanac(t, a, "reservation", "show", "5f1c3f0e-31f7-4ad9-a2f9-2b1f1c1b7e55").wantFailure(t, exitNotFound)
	if len(a.asked()) != 1 {
		t.Errorf("the requests are %v", a.lines())
	}
}

func TestListAsksForWhatIsSelected(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{
		named("r-1", "a", "active"), named("r-2", "b", "active"), named("r-3", "c", "active"),
	}, Next: "r-3"})
	got := almanac(t, a, "reservation", "list", "--status", "active,pending", "--status", "ended", "--kind", "host",
		"--all-projects", "--limit", "2", "-f", "value", "-c", "ID")
	got.wantDone(t)
	want := "GET /v1/reservations?all_projects=true&kind=host&limit=2&status=active%2Cpending%2Cended"
	if got.stdout != "r-1\nr-2\n" || a.lines()[0] != want || len(a.lines()) != 1 {
		t.Errorf("stdout %q, requests %v", got.stdout, a.lines())
	}
}
