// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// question is a question to Nova's own code: see testdata/oracle.py.
type question struct {
	kind  string
	value any
}

func (q question) MarshalJSON() ([]byte, error) { return json.Marshal([]any{q.kind, q.value}) }

func TestNovaReadsWhatNarrowGives(t *testing.T) {
	type answer struct {
		Kind, Error, Message string
		Aggregates           []string
		ForbiddenAggregates  []string `json:"forbidden_aggregates"`
		Host, Database       string
		AllowCrossCellMove   bool              `json:"allow_cross_cell_move"`
		IgnoreHosts          []string          `json:"ignore_hosts"`
		ExtraSpecs           map[string]string `json:"extra_specs"`
		Query                string
	}
	const (
		database = "mysql+pymysql://lab:lab@127.0.0.1/nova_cell1?charset=utf8"
		start    = "limit=1000&member_of=%21in%3Aagg-x%2Cagg-y&member_of=in%3Aagg-a%2Cagg-b&member_of=in%3Aagg-c&required=CUSTOM_ALMANAC"
		tiny     = start + "&resources=DISK_GB%3A1%2CMEMORY_MB%3A512%2CVCPU%3A1&root_required=%21COMPUTE_STATUS_DISABLED"
	)
	want := answer{
		Kind: "RequestSpec", Aggregates: []string{"agg-a,agg-b", "agg-c"}, ForbiddenAggregates: narrowing.ForbiddenAggregates,
		ExtraSpecs: narrowing.ExtraSpecs, IgnoreHosts: narrowing.IgnoreHosts, Query: tiny,
	}
	moved, forced := want, want
	moved.Database = database
	forced.Host, forced.Query = "cmp-003", strings.TrimPrefix(tiny, "limit=1000&") // a forced host has no limit
	names, wants := []string{"az-", "cold-migrate-", "forced-host-"}, []answer{want, moved, forced}
	var questions []question
	for _, name := range names {
		narrowed, err := read(t, specOf(t, name)).Narrow(narrowing)
		if err != nil {
			t.Fatal(err)
		}
		questions = append(questions, question{"spec", narrowed})
	}
	var got []answer
	labtest.AskPython(t, "testdata/oracle.py", questions, &got)
	for i, name := range names {
		if diff := cmp.Diff(wants[i], got[i]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNovaReadsOurSelections(t *testing.T) {
	const node, cell = "bf2ae3f1-5688-42bf-a157-8013ae676efd", "de098817-22f4-46ba-8d2c-5cf7ad9fe113"
	claim := fmt.Sprintf(`{"allocations":{%q:{"resources":{"VCPU":1}}},"mappings":{"":[%q]}}`, node, node)
	ours := [][]object.Selection{
		{
			{ComputeNode: node, Host: "a", Node: "n", Cell: cell, AllocationRequest: json.RawMessage(claim), Version: "1.36", Zone: "nova"},
			{ComputeNode: node, Host: "b", Node: "b", Cell: cell},
		},
		{{ComputeNode: node, Host: "c", Node: "c", Cell: cell}},
	}
	var got []any
	labtest.AskPython(t, "testdata/oracle.py", []question{{"answer", object.Answer(ours, true)}}, &got)
	selection := func(host, node string, zone, version, request any) any {
		return map[string]any{
			"kind": "Selection", "dict": map[string]any{"host": host, "nodename": node, "limits": map[string]any{}}, "cell": cell,
			"node": ours[0][0].ComputeNode, "zone": zone, "version": version, "request": request,
			"changes": []any{
				"allocation_request", "allocation_request_version", "availability_zone", "cell_uuid",
				"compute_node_uuid", "limits", "nodename", "service_host",
			},
		}
	}
	want := []any{[]any{
		[]any{selection("a", "n", "nova", "1.36", map[string]any{
			"allocations": map[string]any{node: map[string]any{"resources": map[string]any{"VCPU": 1.0}}},
			"mappings":    map[string]any{"": []any{node}},
		}), selection("b", "b", nil, nil, nil)},
		[]any{selection("c", "c", nil, nil, nil)},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// drawn returns a request with a random flavor, image and destination. Only some of their parts
// matter to Nova.
func drawn(t *testing.T, random *rand.Rand) json.RawMessage {
	values, _ := drawnValues(random)
	return edited(t, values)
}

// drawnValues returns the random values of a request, and the extra specs among them.
func drawnValues(random *rand.Rand) (values map[string]any, extraSpecs map[string]string) {
	one := func(values ...string) string { return values[random.IntN(len(values))] }
	amount := func() string { return one("0", "1", " 7 ", "1_0", "-1", "x", "", "+2", "1.5") }
	extraSpecs = make(map[string]string)
	for range random.IntN(4) {
		switch random.IntN(8) {
		case 0, 1:
			extraSpecs["resources:"+one("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_A", "CUSTOM_B", "PCPU", "VGPU", "NO_CLASS")] = amount()
		case 2, 3:
			extraSpecs["trait:"+one("CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX")] = one("required", "forbidden", "perhaps")
		case 4:
			extraSpecs[one("resources1:VCPU", "resources_A:CUSTOM_A", "trait1:CUSTOM_A", "resources.1:VGPU", "traits:X")] = one("0", "1", "required")
		case 5:
			extraSpecs[one("hw:cpu_policy", "hw:cpu_realtime", "hw:mem_page_size", "hw:numa_nodes", "hw:pmem", "hw:mem_encryption", "hw:tpm_version")] =
				one("dedicated", "shared", "large", "1", "no", "true", "2.0", "")
		case 6:
			extraSpecs[one("accel:device_profile", "os:secure_boot", "hw:ephemeral_encryption", "hw:pci_numa_affinity_policy")] =
				one("required", "optional", "socket", "true", "false", "")
		case 7:
			extraSpecs[one("hw:watchdog_action", "hw:cpu_sockets", "quota:x", "group_policy", "almanac:reservation", "hw_rng:allowed")] = one("none", "1", "isolate")
		}
	}
	values = map[string]any{
		"flavor.extra_specs": extraSpecs, "is_bfv": random.IntN(3) == 0, "flavor.root_gb": random.IntN(3),
		"flavor.ephemeral_gb": random.IntN(3), "flavor.swap": random.IntN(3) * random.IntN(1500), "flavor.vcpus": 1 + random.IntN(4),
	}
	if random.IntN(3) == 0 {
		values["image.properties.traits_required"] = []string{one("CUSTOM_A", "CUSTOM_C")}
	}
	if random.IntN(8) == 0 {
		values["image.properties."+one("hw_tpm_version", "hw_mem_page_size", "hw_architecture")] = one("2.0", "1.2")
	}
	if random.IntN(3) == 0 {
		values["requested_destination"] = novaObject("Destination", "1.4", map[string]any{
			"host": "h", "aggregates": []string{"a,b", "c"}[:random.IntN(3)], "forbidden_aggregates": []string{"d", "e"}[:random.IntN(3)],
		})
	}
	if random.IntN(5) == 0 {
		values["scheduler_hints"] = map[string]any{"_nova_check_type": []string{one("rebuild", "resize")}}
		values["force_hosts"] = []string{"cmp-003"} // as Nova does with this hint
	}
	return values, extraSpecs
}

// askedOf is what Nova asks of Placement for a request.
type askedOf struct {
	Error               string
	Resources           map[string]int64
	Required, Forbidden []string
	RootRequired        []string   `json:"root_required"`
	MemberOf            [][]string `json:"member_of"`
	NotMemberOf         []string   `json:"not_member_of"`
	Rebuild, More       bool
}

// If Almanac can judge a request, it reads from it exactly the query that Nova sends to
// Placement.
func TestRequestsAskWhatNovaAsksOfPlacement(t *testing.T) {
	const count = 1500
	random := rand.New(rand.NewPCG(5, 6))
	questions := make([]question, count)
	for i := range questions {
		questions[i] = question{"asked", drawn(t, random)}
	}
	for _, name := range captured(t, "select_destinations-*request") {
		questions = append(questions, question{"asked", specOf(t, name[len("select_destinations-"):len(name)-len("request")])})
	}
	var answers []askedOf
	labtest.AskPython(t, "testdata/oracle.py", questions, &answers)
	judged, refused := 0, 0
	for i, want := range answers {
		raw := questions[i].value.(json.RawMessage)
		r, beyond := request(t, raw, object.Options{Instances: []string{"i"}})
		if want.Error != "" {
			refused++ // nova-api refuses such a flavor
			continue
		}
		if len(beyond) > 0 {
			continue
		}
		judged++
		got := askedOf{
			Resources: r.Resources, Required: r.Required, Forbidden: r.Forbidden, RootRequired: slices.Concat(r.AnyOf...),
			MemberOf: r.MemberOf, NotMemberOf: slices.Sorted(slices.Values(r.NotMemberOf)), Rebuild: r.Rebuild,
		}
		if r.Rebuild { // Nova sends no query
			want.RootRequired = nil
			want.Forbidden = slices.DeleteFunc(want.Forbidden, func(trait string) bool { return trait == "COMPUTE_STATUS_DISABLED" })
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-nova +ours):\n%s\n%s", diff, data(t, decode(t, raw).(map[string]any), "flavor")["extra_specs"])
		}
	}
	t.Logf("%d of %d were judged here, Nova refused %d", judged, len(answers), refused)
	if judged < count/3 || judged > count*9/10 || refused > count/3 {
		t.Errorf("%d of %d were judged here, Nova refused %d: the requests are drawn too simple or too wild", judged, len(answers), refused)
	}
}
