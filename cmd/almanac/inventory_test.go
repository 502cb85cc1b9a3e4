// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestHostSetSendsTypedValues(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"numbers, truth and lists": {
			[]string{"--property", "rack=4", "--property", "load=0.5", "--property", "nvme=true", "--property", `nets=["a","b"]`},
			`{"properties":{"load":0.5,"nets":["a","b"],"nvme":true,"rack":4}}`,
		},
		"texts": {
			[]string{"--property", "gpu=a100", "--property", "note=a=b, c", "--property", "serial=00417", "--property", "none=null", "--property", `q="5"`},
			`{"properties":{"gpu":"a100","none":"null","note":"a=b, c","q":"\"5\"","serial":"00417"}}`,
		},
		"forced texts":             {[]string{"--property-string", "rack=4", "--property-string", "empty="}, `{"properties":{"empty":"","rack":"4"}}`},
		"removal":                  {[]string{"--unset", "gpu"}, `{"properties":{"gpu":null}}`},
		"pool":                     {[]string{"--reservable"}, `{"reservable":true}`},
		"out of it":                {[]string{"--not-reservable"}, `{"reservable":false}`},
		"not into it":              {[]string{"--reservable=false"}, `{"reservable":false}`},
		"power":                    {[]string{"--power", "sleeping"}, `{"power":"sleeping"}`},
		"power again the source's": {[]string{"--power", "source"}, `{"power":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.on("PATCH /v1/hosts/n1", http.StatusOK, v1.Host{Name: "n1"})
			almanac(t, a, append([]string{"host", "set", "n1"}, tc.args...)...).wantDone(t)
			if got := a.asked()[0].Body; got != tc.want {
				t.Errorf("sent %s, want %s", got, tc.want)
			}
		})
	}
}

func TestHostListPassesTheFilterOn(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/hosts", http.StatusOK, v1.HostList{Hosts: []v1.Host{{
		Name: "n1", Resources: v1.Resources{VCPUs: 8, MemoryMB: 4096, DiskGB: 10}, Zone: "az1", Reservable: true, Power: "on", InstanceCount: 3,
	}}})
	got := almanac(t, a, "host", "list", "--properties", `["=","$gpu","a100"]`)
	got.wantDone(t)
	want := `
+------+-------+-----------+---------+------+------------+-------+-----------+
| Name | VCPUs | Memory MB | Disk GB | Zone | Reservable | Power | Instances |
+------+-------+-----------+---------+------+------------+-------+-----------+
| n1   | 8     | 4096      | 10      | az1  | true       | on    | 3         |
+------+-------+-----------+---------+------+------------+-------+-----------+
`
	if diff := cmp.Diff(want[1:], got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if line := a.lines()[0]; line != "GET /v1/hosts?host_properties="+url.QueryEscape(`["=","$gpu","a100"]`)+"&limit=1000" {
		t.Errorf("the request is %s", line)
	}
}

func TestAFilterWithAPropertyThatNoHostHasIsTold(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/hosts", http.StatusOK, v1.HostList{Hosts: []v1.Host{}, UnknownProperties: []string{"gpuu"}})
	a.on("GET /v1/availability", http.StatusOK, v1.Availability{Windows: []v1.Window{}, UnknownProperties: []string{"gpuu"}})
	for _, line := range []string{"host list", "availability --duration 1h"} {
		got := almanac(t, a, append(strings.Fields(line), "--properties", `["=","$gpuu",1]`, "-f", "api")...)
		got.wantDone(t)
		if !strings.Contains(got.stderr, "no host has a property $gpuu") || !strings.Contains(got.stdout, `"unknown_properties"`) {
			t.Errorf("%s: stdout %s, stderr %s", line, got.stdout, got.stderr)
		}
	}
}

func TestHostShowHasAllOfTheHost(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/hosts/n1", http.StatusOK, v1.Host{
		Name: "n1", Resources: v1.Resources{VCPUs: 8, Custom: map[string]int64{"CUSTOM_FPGA": 2}}, Used: v1.Resources{VCPUs: 2, MemoryMB: 10},
		Aggregates: []string{"a", "b"}, Properties: map[string]any{"rack": 4, "nets": []string{"x", "y"}, "nvme": true},
		FlopsPerWatt: 3e9, BootSeconds: 180,
	})
	got := almanac(t, a, "host", "show", "n1", "-f", "csv", "-c", "Used", "-c", "Custom", "-c", "Aggregates", "-c", "Properties", "-c", "FLOPS Per Watt")
	want := "Used,Custom,Aggregates,Properties,FLOPS Per Watt\n" +
		`"2 vcpus, 10 MB, 0 GB",CUSTOM_FPGA=2,"a, b","nets=x, y, nvme=true, rack=4",3000000000` + "\n"
	if diff := cmp.Diff(want, got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestAvailabilityAsksForTheWindow(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/availability", http.StatusOK, v1.Availability{Matched: 8, Windows: []v1.Window{
		{Start: morning, LatestStart: morning.Add(time.Hour), End: morning.Add(3 * time.Hour), Free: 5},
	}})
	got := almanac(t, a, "availability", "--quantity", "2", "--duration", "2h", "--start", "now", "--end", "+1d", "-f", "value")
	got.wantDone(t)
	if want := "2026-12-01T09:00:00Z 2026-12-01T10:00:00Z 2026-12-01T12:00:00Z 5\n"; got.stdout != want {
		t.Errorf("stdout %q, want %q", got.stdout, want)
	}
	want := "GET /v1/availability?duration=7200&end=2026-12-02T09%3A00%3A00Z&quantity=2"
	if a.lines()[0] != want || got.stderr != "matching hosts: 8\n" {
		t.Errorf("the requests are %v, stderr %q", a.lines(), got.stderr)
	}
}

func TestCalendarListsClaimsByHost(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/calendar", http.StatusOK, v1.Calendar{Start: morning, End: morning.Add(time.Hour), Hosts: []v1.HostCalendar{
		{Host: "n1", Claims: []v1.Claim{
			{Start: morning, End: morning.Add(time.Hour), Kind: "host", ReservationID: "r-1", Name: "x"},
			{Start: morning.Add(time.Hour), End: morning.Add(2 * time.Hour), Kind: "instance", Instances: 3},
		}},
		{Host: "n2", Claims: []v1.Claim{}},
	}})
	got := almanac(t, a, "calendar", "--start", "+1h", "--end", "+2h", "--host", "n1", "--host", "n2", "-f", "csv")
	got.wantDone(t)
	want := `Host,Start,End,Kind,Instances,Reservation,Name,Maintenance
n1,2026-12-01T09:00:00Z,2026-12-01T10:00:00Z,host,,r-1,x,false
n1,2026-12-01T10:00:00Z,2026-12-01T11:00:00Z,instance,3,,,false
`
	if diff := cmp.Diff(want, got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if want := "GET /v1/calendar?end=2026-12-01T11%3A00%3A00Z&host=n1&host=n2&start=2026-12-01T10%3A00%3A00Z"; a.lines()[0] != want {
		t.Errorf("the requests are %v", a.lines())
	}
}

func TestPropertiesAreListedHiddenAndShown(t *testing.T) {
	a := newAPI(t)
	rack := v1.Property{Name: "rack", Type: "number", Values: []any{1, 2.5}, Hidden: true}
	a.on("GET /v1/properties", http.StatusOK, v1.Properties{Properties: []v1.Property{rack}})
	a.on("PATCH /v1/properties/rack", http.StatusOK, rack)
	for _, command := range []string{"properties", "properties list"} {
		got := almanac(t, a, append(strings.Fields(command), "-f", "csv")...)
		if want := "Name,Type,Values,Built In,Hidden\nrack,number,\"1, 2.5\",false,true\n"; got.stdout != want {
			t.Errorf("%s: stdout %q, want %q", command, got.stdout, want)
		}
	}
	for flag, want := range map[string]string{"--hidden": `{"hidden":true}`, "--shown": `{"hidden":false}`, "--shown=false": `{"hidden":true}`} {
		almanac(t, a, "properties", "set", "rack", flag).wantDone(t)
		asked := a.asked()
		if got := asked[len(asked)-1].Body; got != want {
			t.Errorf("%s: sent %s, want %s", flag, got, want)
		}
	}
}

func TestATableShowsTheFirstValuesOfAPropertyAndCSVAll(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/properties", http.StatusOK, v1.Properties{Properties: []v1.Property{
		{Name: "rack", Values: []any{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	}})
	for format, want := range map[string]string{
		"table": "| 1, 2, 3, 4, 5, 6, 7, 8 and 2 more |",
		"csv":   `"1, 2, 3, 4, 5, 6, 7, 8, 9, 10"`,
	} {
		if got := almanac(t, a, "properties", "-c", "Values", "-f", format); !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %s", format, got.stdout)
		}
	}
}

func TestCompletionOffersWhatAlmanacHasAndWhatIsNotOver(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{
		named("r-1", "training", "active"), named("r-2", "batch", "pending"), named("r-3", "trial", "ended"), named("r-4", "run", "failed"),
	}})
	a.on("GET /v1/besteffort", http.StatusOK, v1.BestEfforts{Requests: []v1.BestEffort{
		{ID: "b-1", Name: "render", Status: "running"}, {ID: "b-2", Name: "rest", Status: "canceled"},
	}})
	a.on("GET /v1/hosts", http.StatusOK, v1.HostList{Hosts: []v1.Host{{Name: "node-01"}, {Name: "big-01"}}})
	a.on("GET /v1/properties", http.StatusOK, v1.Properties{Properties: []v1.Property{{Name: "rack"}}})
	for line, want := range map[string]string{
		"reservation show tr":        "training\tr-1\n",
		"reservation delete r":       "r-1\ttraining\nr-2\tbatch\n",
		"reservation show r-1 ''":    "",
		"besteffort show re":         "render\tb-1\n",
		"host show n":                "node-01\n",
		"decision show ":             "",
		"calendar --host b":          "big-01\n",
		"properties set ra":          "rack\n",
		"reservation list --status ": "waiting\npending\nstarting\nactive\nending\nended\ncanceled\nfailed\n",
		"host list -f ":              "table\njson\nyaml\ncsv\nvalue\nshell\napi\n",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		got := almanac(t, a, args...)
		got.wantDone(t)
		offers, _, _ := strings.Cut(got.stdout, ":4\n") // the directive: no file names
		if offers != want {
			t.Errorf("%s: got %q, want %q", line, got.stdout, want)
		}
	}
}

func TestCompletionAsksOnlyForLiveReservations(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{})
	almanac(t, a, "__complete", "reservation", "show", "").wantDone(t)
	want := []string{"GET /v1/reservations?status=waiting%2Cpending%2Cstarting%2Cactive%2Cending"}
	if got := a.lines(); !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

func TestCompletionWithoutAnAnswerOffersNothingAndDoesNotInsist(t *testing.T) {
	a := newAPI(t)
	a.mux.HandleFunc("GET /v1/hosts", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	got := almanac(t, a, "__complete", "host", "show", "")
	if got.code != exitDone || got.stdout != ":4\n" || len(a.asked()) != 1 {
		t.Errorf("code %d, stdout %q, requests %v", got.code, got.stdout, a.lines())
	}
}

func TestCompletionScriptsAreWrittenForEveryShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := almanac(t, newAPI(t), "completion", shell)
		got.wantDone(t)
		if !strings.Contains(got.stdout, "almanac") {
			t.Errorf("%s: stdout %q", shell, got.stdout)
		}
	}
}

func TestDebugPrintsTheRequestAndTheAnswer(t *testing.T) {
	a := newAPI(t)
	a.on("PATCH /v1/hosts/n1", http.StatusOK, v1.Host{Name: "n1"})
	got := almanac(t, a, "host", "set", "n1", "--property", "note=it's", "--debug", "-f", "value", "-c", "Name")
	got.wantDone(t)
	if got.stdout != "n1\n" {
		t.Errorf("stdout %q", got.stdout)
	}
	for _, want := range []string{
		"curl -g -i -X PATCH '" + a.URL + "/v1/hosts/n1' -H ", `-d '{"properties":{"note":"it'\''s"}}'`, "HTTP/1.1 200 OK", `"name":"n1"`,
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
		}
	}
}

func TestDebugMasksSecrets(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "http://here/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", "gAAAA")
	req.Header.Set("Authorization", "Basic Zm9v")
	line, err := curl(req)
	if want := `curl -g -i -X GET 'http://here/' -H 'Authorization: ***' -H 'X-Auth-Token: ***'`; err != nil || line != want {
		t.Errorf("got %s, %v; want %s", line, err, want)
	}
}
