// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

var update = flag.Bool("update", false, "write the outputs in testdata/outputs instead of comparing them")

// outputs lists the command lines whose outputs are in testdata/outputs, in one file for each
// group of commands. The ids n-0 and r-0 stand for an answer without any optional value.
var outputs = map[string][]string{
	"availability": {"availability --duration 1h"},
	"besteffort": {
		"besteffort list", "besteffort list --long", "besteffort show r-1", "besteffort show r-0",
		"besteffort submit render --flavor f --image i --duration 1h", "besteffort cancel r-1",
	},
	"calendar": {"calendar", "calendar --long"},
	"decision": {"decision show i-1", "decision show i-0"},
	"demo":     {"demo server create web", "demo server list", "demo server list --long", "demo server delete s-1"},
	"doctor":   {"doctor", "doctor --fix"},
	"energy": {
		"energy status", "energy mode auto", "energy mode auto --dry-run", "energy stop", "energy resume", "energy reset-breaker",
		"energy plan", "energy plan --long", "energy approve p-1", "energy audit", "energy audit --long",
		"energy explain n-1", "energy explain n-0", "energy backtest --trace - --step 30m --ahead 30m",
	},
	"energy-host": {
		"energy host list", "energy host list --long", "energy host show n-1", "energy host show n-0", "energy host on n-1",
		"energy host off n-1", "energy host off n-1 --dry-run", "energy host standby n-1", "energy host release n-1", "energy host test n-1",
	},
	"group": {
		"group create c --duration 1h --part {}", "group create c --duration 1h --part {} --dry-run", "group list", "group list --long", "group show r-1", "group show r-0",
		"group change r-1 --name d", "group change r-1 --name d --dry-run", "group delete r-1 --yes", "group delete r-1 --dry-run",
	},
	"host": {
		"host list", "host list --long", "host show n-1", "host show n-0", "host set n-1 --reservable", "host set n-[0-1] --reservable",
		"host maintenance n-1 --duration 1h --reason memory", "host maintenance n-1 --duration 1h --reason memory --dry-run",
	},
	"image":  {"image list", "image list --long"},
	"limits": {"limits"},
	"pack": {
		"pack plan", "pack plan --long", "pack apply", "pack apply --dry-run", "pack list", "pack status", "pack status r-0",
		"pack stop", "pack stop r-1",
	},
	"preemptible": {"preemptible list", "preemptible list --long", "preemptible cost --vcpus 1"},
	"offers":      {"offers --duration 1h-2h", "offers --quantity 2-4 --duration 1h --long"},
	"properties":  {"properties", "properties list", "properties set rack --hidden"},
	"readiness":   {"readiness"},
	"reservation": {
		"reservation list", "reservation list --long", "reservation show r-1", "reservation show r-0",
		"reservation create x --duration 1h", "reservation create x --duration 1h --dry-run",
		"reservation extend r-1 --by 1h", "reservation extend r-1 --by 1h --dry-run",
		"reservation change r-1 --quantity 4", "reservation change r-1 --quantity 4 --dry-run",
		"reservation confirm r-1", "reservation confirm r-1 --dry-run",
		"reservation delete r-1 --yes", "reservation delete r-1 --dry-run", "reservation import - --shift-to now+1h", "reservation feed",
	},
	"webhook": {
		"webhook create x --url https://hooks.example.org/ --type reservation.end", "webhook list", "webhook list --long", "webhook show r-1", "webhook show r-0", "webhook delete r-1",
	},
	"series": {
		"series create x --rule FREQ=DAILY;COUNT=9 --start 2026-12-01T09:00 --time-zone UTC --duration 1h",
		"series create x --rule FREQ=DAILY;COUNT=9 --start 2026-12-01T09:00 --time-zone UTC --duration 1h --dry-run",
		"series list", "series list --long", "series show r-1", "series show r-0", "series change r-1 --quantity 4", "series change r-1 --quantity 4 --dry-run",
		"series delete r-1 --yes", "series delete r-1 --dry-run",
	},
	"usage": {"usage", "usage --long", "usage --by host"},
	"whatif": {
		"whatif fit --input ../../docs/examples/whatif/fit.json", "whatif schedule --input ../../docs/examples/whatif/schedule.json",
		"whatif stage --input ../../docs/examples/whatif/stage.json", "whatif power --input ../../docs/examples/whatif/power.json",
		"whatif pack --input ../../docs/examples/whatif/pack.json",
	},
}

// elsewhere lists the commands whose output other tests check.
var elsewhere = []string{"version", "completion", "help", "simulate", "events", "manual"}

func TestTheOutputOfEveryCommandIsHeld(t *testing.T) {
	var held []string
	for _, lines := range outputs {
		for _, line := range lines {
			found, _, err := (&process{now: time.Now}).rootCommand().Find(strings.Fields(line))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, found.CommandPath())
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && !slices.Contains(held, c.CommandPath()) {
			t.Errorf("no test checks the output of %q; add a line to outputs", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			if !slices.Contains(elsewhere, sub.Name()) {
				walk(sub)
			}
		}
	}
	walk((&process{now: time.Now}).rootCommand())
}

func TestOutputsStayAsTheyAre(t *testing.T) {
	for group, lines := range outputs {
		t.Run(group, func(t *testing.T) {
			a := newAPI(t)
			answerEverything(a)
			var got strings.Builder
			for _, line := range lines {
				fmt.Fprintf(&got, "$ almanac %s\n%s", line, everyFormat(t, a, strings.Fields(line)))
			}
			path := filepath.Join("testdata", "outputs", group+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got); write it with -update:\n%s", path, diff)
			}
		})
	}
}

// everyFormat returns the output of a command line as a table and as CSV, and in one line each
// as the answer of the API and as JSON with all columns. The JSON of a list has them anyway.
func everyFormat(t *testing.T, a *api, args []string) string {
	t.Helper()
	stdin := ""
	if slices.Contains(args, "-") {
		stdin = "name,start,end,quantity\nnight,1796119200,1796122800,2\nday,1796122800,1796130000,1\n"
	}
	printed := func(extra ...string) string {
		r := almanacWith(t, a, stdin, append(slices.Clone(args), extra...)...)
		if r.code != exitDone && r.code != exitNoRoom {
			t.Fatalf("%v: exit code %d\n%s", args, r.code, r.stderr)
		}
		return r.stdout
	}
	table := printed("-f", "csv")
	text := printed("-f", "table") + table
	rows := printed(append([]string{"-f", "json"}, chosen(t, table)...)...)
	for _, out := range []string{printed("-f", "api"), rows} {
		var line bytes.Buffer
		if out != "" {
			if err := json.Compact(&line, []byte(out)); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
		text += line.String() + "\n"
	}
	if strings.HasPrefix(rows, "[") {
		if diff := cmp.Diff(rows, printed("-f", "json")); diff != "" {
			t.Errorf("%v: a list in JSON has other columns than its table:\n%s", args, diff)
		}
	}
	return text
}

// chosen returns flags that select all columns of a CSV output.
func chosen(t *testing.T, table string) (flags []string) {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i := range records[:min(1, len(records))] {
		for _, header := range records[i] {
			flags = append(flags, "-c", header)
		}
	}
	return flags
}

// answerEverything answers each call with one element that has all values and one that has none.
func answerEverything(a *api) {
	answer := func(body any, calls ...string) {
		for _, call := range calls {
			a.on(call, http.StatusOK, body)
		}
	}
	member := func(collection string, method string, full, empty any) {
		answer(full, method+" "+collection+"/{id}")
		for _, id := range []string{"n-0", "r-0", "i-0"} {
			answer(empty, method+" "+collection+"/"+id)
		}
	}
	answer(full[v1.Availability](), "GET /v1/availability")
	answer(full[v1.BestEfforts](), "GET /v1/besteffort")
	answer(full[v1.BestEffort](), "POST /v1/besteffort")
	member("/v1/besteffort", "GET", full[v1.BestEffort](), v1.BestEffort{})
	answer(nil, "DELETE /v1/besteffort/{id}")
	calendar := full[v1.Calendar]()
	calendar.Next = "" // this is the only page
	answer(calendar, "GET /v1/calendar")
	answer(full[v1.Limits](), "GET /v1/limits")
	answer(full[v1.Usage](), "GET /v1/usage")
	member("/v1/decisions", "GET", full[v1.Decisions](), v1.Decisions{Decisions: make([]v1.Decision, 1)})
	servers := full[v1.DemoServers]()
	servers.Servers[0].ID = "s-1"
	answer(servers, "GET /v1/demo/servers")
	answer(full[v1.DemoServer](), "POST /v1/demo/servers")
	answer(nil, "DELETE /v1/demo/servers/{id}")
	answer(full[v1.Examination](), "GET /v1/doctor", "POST /v1/doctor")
	answer(full[v1.Energy](), "GET /v1/energy", "PATCH /v1/energy")
	answer(full[v1.EnergyPlan](), "GET /v1/energy/plan", "POST /v1/energy/plan")
	answer(full[v1.EnergyAudit](), "GET /v1/energy/audit")
	answer(full[v1.EnergyHosts](), "GET /v1/energy/hosts")
	member("/v1/energy/hosts", "GET", full[v1.EnergyHost](), v1.EnergyHost{})
	answer(full[v1.EnergyHost](), "POST /v1/energy/hosts/{id}")
	member("/v1/groups", "GET", full[v1.Group](), v1.Group{})
	answer(full[v1.Groups](), "GET /v1/groups")
	a.mux.HandleFunc("POST /v1/groups", offered(full[v1.Group](), full[v1.GroupOfferAnswer]()))
	a.mux.HandleFunc("PATCH /v1/groups/{id}", offered(full[v1.Group](), full[v1.GroupOfferAnswer]()))
	a.mux.HandleFunc("DELETE /v1/groups/{id}", offered(nil, full[v1.GroupCancellation]()))
	answer(full[v1.HostList](), "GET /v1/hosts")
	member("/v1/hosts", "GET", full[v1.Host](), v1.Host{})
	member("/v1/hosts", "PATCH", full[v1.Host](), v1.Host{})
	answer(full[v1.Images](), "GET /v1/images")
	answer(full[v1.Offers](), "POST /v1/offers")
	answer(full[v1.PackingPlan](), "POST /v1/packing")
	answer(full[v1.PackingRuns](), "GET /v1/packing/runs")
	answer(full[v1.PackingRun](), "POST /v1/packing/runs", "DELETE /v1/packing/runs/{id}")
	member("/v1/packing/runs", "GET", full[v1.PackingRun](), v1.PackingRun{})
	answer(full[v1.PreemptibleInstances](), "GET /v1/preemptible")
	answer(full[v1.PreemptionCosts](), "GET /v1/preemptible/cost")
	answer(full[v1.Properties](), "GET /v1/properties")
	answer(full[v1.Property](), "PATCH /v1/properties/{id}")
	answer(full[v1.Readiness](), "GET /v1/readiness")
	answer(full[v1.Reservations](), "GET /v1/reservations")
	member("/v1/reservations", "GET", full[v1.Reservation](), v1.Reservation{})
	a.mux.HandleFunc("POST /v1/reservations", offered(full[v1.Reservation](), full[v1.OfferAnswer]()))
	a.mux.HandleFunc("PATCH /v1/reservations/{id}", offered(full[v1.Reservation](), full[v1.OfferAnswer]()))
	a.mux.HandleFunc("DELETE /v1/reservations/{id}", offered(nil, full[v1.CancellationAnswer]()))
	answer(full[v1.Feed](), "GET /v1/feed")
	answer(full[v1.Webhooks](), "GET /v1/webhooks")
	answer(full[v1.Webhook](), "POST /v1/webhooks")
	answer(nil, "DELETE /v1/webhooks/{id}")
	member("/v1/webhooks", "GET", full[v1.Webhook](), v1.Webhook{})
	answer(full[v1.SeriesList](), "GET /v1/series")
	member("/v1/series", "GET", full[v1.Series](), v1.Series{})
	a.mux.HandleFunc("POST /v1/series", offered(full[v1.Series](), full[v1.SeriesOfferAnswer]()))
	a.mux.HandleFunc("PATCH /v1/series/{id}", offered(full[v1.Series](), full[v1.SeriesOfferAnswer]()))
	a.mux.HandleFunc("DELETE /v1/series/{id}", offered(nil, full[v1.SeriesCancellation]()))
}

// offered answers a dry run with dryRun, and the call itself with body.
func offered(body, dryRun any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("dry_run") {
			answerWith(http.StatusOK, dryRun)(w, r)
			return
		}
		answerWith(http.StatusOK, body)(w, r)
	}
}

// full returns a T in which every field has a different value and every list has two elements,
// the second without values.
func full[T any]() T {
	var value T
	count := 0
	fill(reflect.ValueOf(&value).Elem(), "", &count)
	return value
}

func fill(v reflect.Value, name string, count *int) {
	*count++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(morning.Add(time.Duration(*count) * time.Minute)))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`[">=","$vcpus",8]`)))
		return
	case v1.Marker:
		return // the last page
	}
	if name == "Next" {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s %d", strings.ToLower(name), *count))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*count))
	case reflect.Float64:
		v.SetFloat(float64(*count) + 0.12345)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name, count)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), name, count)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, name, count)
		v.SetMapIndex(reflect.ValueOf(strings.ToLower(name)+" key"), value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(fmt.Sprintf("%s %d", strings.ToLower(name), *count)))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name, count)
		}
	default:
		panic("an answer has a field of an unexpected kind: " + v.Kind().String())
	}
}
