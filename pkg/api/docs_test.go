// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"cmp"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

var (
	// example matches a command of docs/api.md, the status and, if there is one, the body of the
	// answer.
	example = regexp.MustCompile("(?s)```console\n\\$ (curl .*?)\n```\n`(\\d{3}) [^`]*`[^\n]*\n(?:```json\n(.*?)\n```)?")
	word    = regexp.MustCompile(`(?s)(?:'[^']*'|"[^"]*"|[^\s'"\\]+)+`)
	quoted  = regexp.MustCompile(`(?s)'[^']*'|"[^"]*"|[^'"]+`)
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// documented is the decision of the examples. Elsewhere a cloud would have asked for it.
var documented = placing.Decision{
	RequestID: requestID, ProjectID: "demo", Instances: []string{placedID}, HandledBy: placing.Replaced, At: 1795228500, Took: 1845,
	Placements: []placing.Placement{{Instance: placedID, Host: "node-02", Node: "node-02", Alternates: []string{"node-03"}, Victims: []placing.Victim{
		{ID: "7be0f1a2-4c33-4f0e-9d0b-27c1a5d0c9e1", Name: "batch-7", ProjectID: "science", Cost: 660, Unit: "s"},
	}}},
	Considered: 4, Filters: []placing.FilterCount{{Filter: "ComputeFilter", Left: 3}, {Filter: "ReservationFilter", Left: 2}},
	Refused: []placing.RefusedHost{
		{Host: "node-01", Filter: "ComputeFilter", Reason: "its nova-compute is down"},
		{Host: "gpu-01", Filter: "ReservationFilter", Reason: "the host is reserved from 2026-12-01T10:00:00Z"},
	},
	Ranked: []placing.RankedHost{
		{Host: "node-02", Weight: 1.5, Parts: map[string]float64{"RAMWeigher": 1, "CPUWeigher": 0.5}},
		{Host: "node-03", Weight: 0.25, Parts: map[string]float64{"RAMWeigher": 0, "CPUWeigher": 0.25}},
	},
}

// occupied returns the hosts of the examples about preemptible instances.
func occupied(t *testing.T) *inventory.States {
	t.Helper()
	host := func(name string, used int64, instances ...inventory.Instance) inventory.HostState {
		return inventory.HostState{Name: name, Up: true, Enabled: true, Instances: instances, Stocks: map[string]inventory.Stock{
			"VCPU": {Total: 8, Ratio: 1, Used: used}, "MEMORY_MB": {Total: 32768, Ratio: 1, Used: 2048 * used},
		}}
	}
	batch := func(id, name string, launched span.Instant, locked bool) inventory.Instance {
		return inventory.Instance{
			ID: id, Name: name, ProjectID: "science", Status: "ACTIVE", Flavor: inventory.Flavor{Name: "m1.spot"}, Launched: launched, Locked: locked,
			Preemptible: true, Holds: map[string]int64{"VCPU": 4, "MEMORY_MB": 8192},
		}
	}
	states, err := inventory.NewStates([]inventory.HostState{
		host("node-01", 8), host("node-03", 0), host("node-02", 8,
			batch("7be0f1a2-4c33-4f0e-9d0b-27c1a5d0c9e1", "batch-7", made-3600-660, false),
			batch("c1d9b3f4-0a6e-4b52-8c55-94c3e7a1b2d0", "batch-8", made-100, true)),
	}, nil)
	must(t, err)
	return states
}

// switched stores what the examples about power show: node-03 is idle and node-04 sleeps.
func switched(c *cloud) {
	c.t.Helper()
	both := []energy.State{energy.On, energy.Off}
	must(c.t, c.store.SaveEnergyReport(c.t.Context(), job.Lease{}, energy.Report{
		At: made - 12, Controller: "ctl-1", Agents: []energy.Agent{{Name: "rack-1", Hosts: 4, Seen: made - 7}},
		Hosts: []energy.Observed{
			{
				Machine: energy.Machine{Name: "node-03", Idle: 9, States: both, Claimed: span.Forever, BootSeconds: 180}, Mode: energy.ModeRecommend,
				Reading: energy.Reading{State: energy.On, Watts: 118, At: made - 12}, Agent: "rack-1", Driver: "redfish",
				Explanation: []string{"it has been idle for 9 measurements", "the last plan switches it off, once it is approved"},
			},
			{
				Machine: energy.Machine{Name: "node-04", Phase: energy.Asleep, States: both, Claimed: made + 86400, BootSeconds: 176}, Mode: energy.ModeRecommend,
				Reading: energy.Reading{State: energy.Off, Watts: 4.5, At: made - 12}, Agent: "rack-1", Driver: "redfish",
				Explanation: []string{"it was idle, and 2 hosts are enough", "it wakes in time for the reservation that starts at 2026-11-22T02:35:02Z"},
			},
		},
	}))
	const operation = "op-7"
	remembered(c, energy.Record{
		Host: "node-04", Phase: energy.Asleep, Since: made - 3600, Reason: "it was idle, and 2 hosts are enough", Target: energy.Off, Operation: operation,
		LastOff: made - 3600, Boots: []int64{172, 176}, LastWakeTest: &energy.WakeTest{At: made - 90000, Woke: true, Seconds: 176},
	}, energy.Entry{
		At: made - 3720, Host: "node-04", Kind: energy.EntryPhase, By: "almanac", Operation: operation, Text: "draining: it was idle, and 2 hosts are enough",
	}, energy.Entry{
		At: made - 3660, Host: "node-04", Kind: energy.EntryOrder, By: "almanac", Operation: operation, Text: "ordered off: Nova and Placement say that it is empty",
	}, energy.Entry{
		At: made - 3600, Host: "node-04", Kind: energy.EntryPhase, By: "almanac", Operation: operation, Text: "asleep: its machine reports off",
	})
	planned(c, placedID, energy.Plan{
		At: made - 12, Forecast: 2, Reserved: 1, Required: 2, Spare: 1, On: 15,
		Switches: []energy.Switch{{Host: "node-03", To: energy.Off, Reason: "it has been idle for 9 measurements, and 2 hosts are enough"}},
		Kept:     []energy.Kept{{Host: "gpu-01", Reason: "it is the last host that is on in aggregate gpu"}},
	})
	must(c.t, c.store.ChangeEnergySettings(c.t.Context(), job.Lease{}, func(s *energy.Settings) ([]energy.Entry, error) {
		s.Savings = energy.Savings{Since: made - 86400, Until: made - 12, HostSeconds: 3600, CoreSeconds: 8 * 3600, IdleCoreSeconds: 72000, Joules: 396000, Boots: 1}
		return nil, nil
	}))
	for _, at := range []span.Instant{made - 72, made - 12} {
		must(c.t, c.store.AddDemand(c.t.Context(), job.Lease{}, energy.Demand{At: at, InUse: 2, Reserved: 1}, 0))
	}
}

// reservedID is the id of the reservation that the examples book.
const reservedID = "e35b774d-5104-4ff2-b091-8d0dc40ae41d"

// made is when the examples were made: 2026-11-21T02:35:02Z.
const made = 1795228502

// The examples run in their order on the hosts of `make run`; only ids may differ.
func TestTheExamplesOfTheReferenceAreTrue(t *testing.T) {
	reference, err := os.ReadFile("../../docs/api.md")
	must(t, err)
	hosts, err := inventory.FileSource("../../etc/almanac/hosts.yaml").Hosts(t.Context())
	must(t, err)
	limits := planning.Limits{Duration: 30 * 24 * 3600, StartAhead: 365 * 24 * 3600, EmptyLeases: 100, Hold: 900, Holds: 3, Waiting: 20}
	c := start(t, setup{hosts: hosts, limits: limits, adjust: func(o *api.Options) {
		o.Authenticator = api.Fixed{ProjectID: "demo", UserID: "demo", Roles: []string{"admin"}}
		o.FeedSecret = "for the examples"
		o.Placing = choosing(t, occupied(t))
	}})
	examples := example.FindAllStringSubmatch(string(reference), -1)
	if commands := strings.Count(string(reference), "$ curl"); commands == 0 || commands != len(examples) {
		t.Fatalf("%d commands, but %d examples", commands, len(examples))
	}
	c.seconds.Store(made)
	must(t, c.store.KeepDecisions(t.Context(), []placing.Decision{documented}))
	switched(c)
	actual := map[string]string{placedID: placedID}
	variables := map[string]string{"yesterday": "2026-11-20", "today": "2026-11-21", "day": "2026-12-01"} // of its shell
	replace := func(text string) string {
		return uuids.ReplaceAllStringFunc(text, func(id string) string { return actual[id] })
	}
	for _, e := range examples {
		a := c.nobody.run(e[1], variables)
		if status, _ := strconv.Atoi(e[2]); a.status != status {
			t.Fatalf("%s: want %d, got %v", e[1], status, a)
		}
		a.body = bytes.ReplaceAll(a.body, []byte(c.url), []byte("http://127.0.0.1:1234"))
		ids := uuids.FindAllString(string(a.body), -1)
		for i, id := range uuids.FindAllString(e[3], len(ids)) {
			actual[id] = ids[i]
		}
		if variables["id"] = actual[reservedID]; variables["id"] != "" {
			variables["etag"] = c.nobody.get("/v1/reservations/" + variables["id"]).header.Get("ETag")
		}
		if e[3] == "" && len(a.body) == 0 {
			continue
		}
		body := answer{body: []byte(replace(e[3]))}
		if diff := gocmp.Diff(decode[any](t, body), decode[any](t, a)); diff != "" {
			t.Errorf("%s (-reference +server):\n%s", e[1], diff)
		}
	}
}

// unquoted returns a word of a shell without its quotes and with the values of its variables.
func unquoted(t reporter, text string, variables map[string]string) string {
	t.Helper()
	var plain strings.Builder
	for _, p := range quoted.FindAllString(text, -1) {
		if literal, is := strings.CutPrefix(p, "'"); is {
			plain.WriteString(strings.TrimSuffix(literal, "'"))
			continue
		}
		plain.WriteString(os.Expand(strings.Trim(p, `"`), func(name string) string {
			value, known := variables[name]
			if !known {
				t.Fatalf("the page does not set $%s", name)
			}
			return value
		}))
	}
	return plain.String()
}

// run sends the request of a curl command in a shell with variables.
func (p caller) run(command string, variables map[string]string) answer {
	p.cloud.t.Helper()
	var method, path, body string
	var header, query []string
	words := word.FindAllString(command, -1)[1:]
	for i, text := range words {
		words[i] = unquoted(p.cloud.t, text, variables)
	}
	inQuery := slices.Contains(words, "-G")
	for len(words) > 0 {
		option := words[0]
		if words = words[1:]; option == "-G" {
			continue
		}
		value := option
		if strings.HasPrefix(option, "-") {
			value, words = words[0], words[1:]
		}
		switch option {
		case "-X":
			method = value
		case "-H":
			header = append(header, strings.SplitN(value, ": ", 2)...)
		case "-d":
			query, body = append(query, value), value
		case "--data-urlencode":
			name, text, _ := strings.Cut(value, "=")
			query = append(query, name+"="+url.QueryEscape(text))
		default:
			path = strings.TrimPrefix(value, "http://127.0.0.1:1234")
		}
	}
	switch {
	case inQuery:
		path, body = path+"?"+strings.Join(query, "&"), ""
	case method == "" && body != "":
		method = "POST"
	}
	return p.send(cmp.Or(method, "GET"), path, body, header...)
}

// unnamedKeys has the keys of bodies that the guide does not name, and why.
var unnamedKeys = map[string]string{
	"POST /v1/reservations flavor": "it is refused, with the name of what takes its place",
}

// A section of the guide that names a call names each key of its body.
func TestTheGuideNamesEachKeyOfABody(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	must(t, err)
	described, _, _ := strings.Cut(string(text), "\n## Rules\n")
	sections := regexp.MustCompile(`(?m)^##+ `).Split(described, -1)
	contract, unused := openContract(t), maps.Clone(unnamedKeys)
	for _, call := range contract.routes() {
		body := contract.bodyOf(call)
		if body == nil || inBlazarsForm(t, call) || withoutGuide[call] != "" {
			continue
		}
		method, path, _ := strings.Cut(call, " ")
		about := ""
		for _, section := range sections {
			if named(strings.Split(section, "\n"), method, path) {
				about += section
			}
		}
		for key := range body.Value.Properties {
			switch is, why := strings.Contains(about, "`"+key+"`") || strings.Contains(about, `"`+key+`"`), unnamedKeys[call+" "+key]; {
			case !is && why == "":
				t.Errorf("docs/api.md does not name %s where it is about %s", key, call)
			case is && why != "":
				t.Errorf("docs/api.md names %s of %s, and unnamedKeys states that it does not: %s", key, call, why)
			}
			delete(unused, call+" "+key)
		}
	}
	for key := range unused {
		t.Errorf("unnamedKeys names %s, which is no key of a body", key)
	}
}
