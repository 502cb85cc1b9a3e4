// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func TestTheExitCodeTellsTheAnswer(t *testing.T) {
	for _, tc := range []struct {
		status int
		kind   string
		want   int
	}{
		{http.StatusBadRequest, "invalid", exitUsage},
		{http.StatusRequestEntityTooLarge, "too_large", exitUsage},
		{http.StatusUnprocessableEntity, "unprocessable", exitUsage},
		{http.StatusNotFound, "not_found", exitNotFound},
		{http.StatusUnauthorized, "unauthorized", exitDenied},
		{http.StatusForbidden, "denied", exitDenied},
		{http.StatusConflict, "conflict", exitNoRoom},
		{http.StatusConflict, "refused", exitNoRoom},
		{http.StatusPreconditionFailed, "precondition", exitNoRoom},
		{http.StatusInternalServerError, "internal", exitFailed},
		{http.StatusServiceUnavailable, "unavailable", exitFailed},
		{http.StatusTeapot, "", exitFailed},
	} {
		t.Run(fmt.Sprint(tc.status, tc.kind), func(t *testing.T) {
			a := newAPI(t)
			a.mux.HandleFunc("GET /v1/hosts/n1", fail(tc.status, tc.kind, "it went wrong"))
			almanac(t, a, "host", "show", "n1").wantFailure(t, tc.want)
		})
	}
}

func TestTimeIsUpHasItsOwnExitCode(t *testing.T) {
	if got := codeOf(&client.Error{Kind: "unavailable", Err: context.DeadlineExceeded}); got != exitTimedOut {
		t.Errorf("no answer in time: got %d", got)
	}
	if got := codeOf(fmt.Errorf("wait: %w", context.DeadlineExceeded)); got != exitTimedOut {
		t.Errorf("no time left: got %d", got)
	}
}

func TestWithoutAServerTheMessageSaysHowToNameOne(t *testing.T) {
	a := newAPI(t)
	a.Close()
	almanac(t, a, "host", "list").wantFailure(t, exitFailed, "no Almanac answers at "+a.URL, "almanacd", "--url", "ALMANAC_URL")
}

func TestMistakesInTheCommandLineAreUsage(t *testing.T) {
	a := newAPI(t)
	for line, mention := range map[string]string{
		"":                                     "needs a command",
		"reservatoin":                          `did you mean "reservation"?`,
		"reservation":                          "create",
		"reservation crate":                    `did you mean "create"?`,
		"properties hide":                      `no command "hide"`,
		"completion tcsh":                      `no command "tcsh"`,
		"host list extra":                      "extra",
		"host show":                            "needs one NAME",
		"host show a b":                        "needs one NAME",
		"host list --lon":                      "--lon",
		"host list -f xml":                     `no format "xml"`,
		"host list --limit -1":                 "--limit",
		"host list --timeout soon":             "--timeout",
		"host list --url here":                 "url",
		"host set n1":                          "property",
		"host set n1 --property rack":          "NAME=VALUE",
		"host set n1 --property a=1 --unset a": "twice",
		"host set n1 --reservable --not-reservable":              "not-reservable",
		"properties set rack":                                    "hidden",
		"reservation create x --start 2026-12-01T10:00":          "add Z for UTC",
		"reservation create x --properties [1":                   "JSON",
		"reservation create x --properties @/no/such/file":       "/no/such/file",
		"reservation create x --duration 1h --dry-run --wait":    "dry-run",
		"reservation extend r-1":                                 "set --by or --until",
		"reservation extend r-1 --by 1h --until +2h":             "--by and --until exclude each other",
		"reservation create x":                                   "set --duration, or --end",
		"reservation create x --duration 1h --quantity two":      `--quantity: "two" is not a whole number`,
		"reservation create x --duration 1h --wait=perhaps":      `--wait: "perhaps" is not true or false`,
		"reservation drop a":                                     `there is no command "drop"`,
		"reservation rename a b":                                 `there is no command "rename"; did you mean "change"?`,
		"reservation rename a --name b":                          `there is no command "rename"; did you mean "change"?`,
		"reservation remove a --dry-run":                         `there is no command "remove"; did you mean "delete"?`,
		"host unset n1 --property rack":                          `there is no command "unset"; did you mean "set"?`,
		"properties lst --long":                                  `there is no command "lst"; did you mean "list"?`,
		"reservatoin list --all-projects":                        `there is no command "reservatoin"; did you mean "reservation"?`,
		"reservation --all-projects":                             "unknown flag: --all-projects",
		"reservation change r-1":                                 "quantity",
		"reservation change r-1 --start now":                     "+1m",
		"reservation delete":                                     "at least 1",
		"reservation import /no/such/file":                       "/no/such/file",
		"reservation import x --workers 0":                       "--workers",
		"reservation import - --trace-format xls --shift-to +1h": `--trace-format: there is no format "xls"`,
	} {
		t.Run(line, func(t *testing.T) {
			almanac(t, a, strings.Fields(line)...).wantFailure(t, exitUsage, mention)
		})
	}
	if asked := a.lines(); len(asked) > 0 {
		t.Errorf("the requests are %v", asked)
	}
}

func TestAFieldAtFaultIsNamedAsTheFlagThatSetIt(t *testing.T) {
	for field, want := range map[string]string{
		"start_time":      "--start: is past",
		"host_properties": "--properties: is past",
		"before_end":      "--before-end: is past",
		"resources":       "resources: is past",
		"":                "almanac: is past",
	} {
		a := newAPI(t)
		a.on("POST /v1/reservations", http.StatusBadRequest, v1.ErrorAnswer{Error: v1.Error{Kind: "invalid", Field: field, Message: "is past"}})
		almanac(t, a, "reservation", "create", "x", "--duration", "1h").wantFailure(t, exitUsage, want)
	}
}

func refusal() v1.ErrorAnswer {
	answer := v1.ErrorAnswer{
		Error: v1.Error{Kind: "refused", Message: "not enough hosts available", RequestID: "req-7"},
		Refusal: &v1.Refusal{
			Constraint: "free_hosts", Matched: 8, Free: 1,
			EarliestStart: new(morning.Add(2 * time.Hour)), LargestQuantity: 1,
		},
	}
	for i := range 7 {
		answer.Refusal.BlockedBy = append(answer.Refusal.BlockedBy, v1.Block{
			Host: fmt.Sprintf("node-%02d", i), Start: morning, End: morning.Add(2 * time.Hour),
		})
	}
	return answer
}

func TestARefusalSaysWhyAndWhatWouldDo(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/reservations", http.StatusConflict, refusal())
	got := almanac(t, a, "reservation", "create", "x", "--duration", "1h", "--quantity", "2")
	got.wantFailure(t, exitNoRoom)
	want := `almanac: not enough hosts available
  constraint:       free_hosts
  matched:          8
  free:             1
  blocked by:       node-00 from 2026-12-01T09:00:00Z to 2026-12-01T11:00:00Z
                    node-01 from 2026-12-01T09:00:00Z to 2026-12-01T11:00:00Z
                    node-02 from 2026-12-01T09:00:00Z to 2026-12-01T11:00:00Z
                    node-03 from 2026-12-01T09:00:00Z to 2026-12-01T11:00:00Z
                    node-04 from 2026-12-01T09:00:00Z to 2026-12-01T11:00:00Z
                    and 2 more
  earliest start:   2026-12-01T11:00:00Z
  largest quantity: 1
  hint: try --start 2026-12-01T11:00:00Z, or --quantity 1
`
	if diff := cmp.Diff(want, got.stderr); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

func TestARefusalInJSONIsTheAnswerOfTheAPI(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/reservations", http.StatusConflict, refusal())
	got := almanac(t, a, "reservation", "create", "x", "--duration", "1h", "-f", "json")
	got.wantFailure(t, exitNoRoom)
	var answer v1.ErrorAnswer
	if err := json.Unmarshal([]byte(got.stderr), &answer); err != nil {
		t.Fatalf("stderr is not JSON: %v\n%s", err, got.stderr)
	}
	if diff := cmp.Diff(refusal(), answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestAHintNamesOnlyFlagsOfTheCommand(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations/r-1", http.StatusOK, training())
	answers := map[string]v1.Refusal{
		"properties": {Constraint: "host_properties"},
		"length":     {Constraint: "max_duration"},
		"far":        {Constraint: "max_start_ahead"},
		"pool":       {Constraint: "pool"},
		"later":      {Constraint: "free_hosts", EarliestStart: new(morning)},
	}
	a.mux.HandleFunc("POST /v1/reservations", func(w http.ResponseWriter, r *http.Request) {
		var body v1.ReservationRequest
		_ = json.NewDecoder(r.Body).Decode(&body)
		answerWith(http.StatusConflict, v1.ErrorAnswer{Error: v1.Error{Kind: "refused", Message: "no"}, Refusal: new(answers[body.Name])})(w, r)
	})
	a.on("PATCH /v1/reservations/r-1", http.StatusConflict, refusal())
	short := training()
	short.ID = "r-2"
	a.on("GET /v1/reservations/r-2", http.StatusOK, short)
	a.on("PATCH /v1/reservations/r-2", http.StatusConflict, v1.ErrorAnswer{
		Error: v1.Error{Kind: "refused", Field: "end_time", Message: "no"}, Refusal: &v1.Refusal{Constraint: "free_hosts", LatestEnd: new(morning)},
	})
	for line, want := range map[string]string{
		"reservation extend r-2 --by 1h":              "  latest end:       2026-12-01T09:00:00Z\n  hint: try --until 2026-12-01T09:00:00Z\n",
		"reservation change r-2 --end +9h":            "hint: try --end 2026-12-01T09:00:00Z\n",
		"reservation create properties --duration 1h": "hint: try other --properties ('almanac properties' lists the properties that exist)\n",
		"reservation create length --duration 1h":     "hint: try a shorter --duration\n",
		"reservation create far --duration 1h":        "hint: try an earlier --start\n",
		"reservation create pool --duration 1h":       "largest quantity: 0\n",
		"reservation create later --end +1h":          "hint: try --start 2026-12-01T09:00:00Z with a later --end\n",
		"reservation change r-1 --quantity 3":         "hint: try --start 2026-12-01T11:00:00Z --end 2026-12-01T13:00:00Z, or --quantity 1\n",
		"reservation extend r-1 --by 1h":              "hint: try 'almanac reservation change --start 2026-12-01T11:00:00Z --end 2026-12-01T14:00:00Z'\n",
	} {
		got := almanac(t, a, strings.Fields(line)...)
		if !strings.HasSuffix(got.stderr, want) {
			t.Errorf("%s: want %q at the end of\n%s", line, want, got.stderr)
		}
	}
}

func TestEveryCommandHasAShortTextAndAnExample(t *testing.T) {
	p := &process{now: func() time.Time { return morning }}
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" && !c.HasSubCommands() {
			t.Errorf("%s: short text %q, example %q", c.CommandPath(), c.Short, c.Example)
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(p.rootCommand())
}
