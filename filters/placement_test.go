// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// four returns four hosts: a and b are in zone az1, b and c in the pool "gold", d is in
// no aggregate. Host c is in another cell than a and b, and the cell of d is unknown.
func four(t testing.TB) *inventory.States {
	stock := func(total, reserved, used int64, ratio float64) inventory.Stock {
		return inventory.Stock{Total: total, Reserved: reserved, Used: used, Ratio: ratio}
	}
	return states(t, []inventory.HostState{
		{Name: "a", Node: "na", Cell: "c1", Zone: "az1", Up: true, Enabled: true, Traits: []string{"T1", "T2"}, Stocks: map[string]inventory.Stock{
			"VCPU": stock(8, 0, 6, 1.5), "MEMORY_MB": stock(1000, 100, 0, 1), "CUSTOM_FPGA": {Total: 12, Ratio: 1, Min: 2, Max: 6, Step: 2}}},
		{Name: "b", Node: "nb", Cell: "c1", Zone: "az1", Up: true, DisabledReason: "the fan", Traits: []string{"T1", "COMPUTE_STATUS_DISABLED"}},
		{Name: "c", Node: "nc", Cell: "c2", Zone: "nova", Enabled: true, Traits: []string{"T2", "T3"}, Stocks: map[string]inventory.Stock{
			"VCPU": stock(4, 0, 5, 1), "MEMORY_MB": stock(2048, 0, 2048, 1)}},
		{Name: "d", Node: "nd", Zone: "nova", Up: true, Enabled: true, Unsupported: "two of its providers have DISK_GB", Stocks: map[string]inventory.Stock{
			"VCPU": stock(64, 0, 0, 16), "MEMORY_MB": stock(1<<20, 0, 0, 1)}},
	},
		inventory.Aggregate{UUID: "u1", Name: "racks", Zone: "az1", Hosts: []string{"a", "b"}, Metadata: map[string]string{"trait:T9": "maybe"}},
		inventory.Aggregate{UUID: "u2", Name: "gold", Hosts: []string{"b", "c"}, Metadata: map[string]string{
			"trait:CUSTOM_GOLD": "required", "trait:CUSTOM_ALMANAC_RESERVED": "required", "filter_tenant_id_1": "p1", "filter_tenant_id": "p1, p2"}},
		inventory.Aggregate{UUID: "u3", Name: "elsewhere", Zone: "az3", Hosts: []string{"gone"}})
}

func TestWhatPlacementRefusesIsRefused(t *testing.T) {
	takes := func(class string, amount int64) placing.Request {
		return placing.Request{Resources: map[string]int64{class: amount}}
	}
	checkRules(t, four(t), map[string]rule{
		"nothing is asked for":      {filters.Capacity{}, placing.Request{Resources: map[string]int64{"VCPU": 0, "X": 0}}, "a,b,c,d", nil},
		"up to the limit":           {filters.Capacity{}, takes("VCPU", 6), "a,d", map[string]string{"b": "has no VCPU", "c": "0 VCPU are free, 6"}},
		"above the limit":           {filters.Capacity{}, takes("VCPU", 7), "d", map[string]string{"a": "6 VCPU are free, 7"}},
		"what is reserved is taken": {filters.Capacity{}, takes("MEMORY_MB", 901), "d", map[string]string{"a": "900 MEMORY_MB are free"}},
		"all classes must fit":      {filters.Capacity{}, placing.Request{Resources: map[string]int64{"VCPU": 6, "MEMORY_MB": 901}}, "d", nil},
		"less than min_unit":        {filters.Capacity{}, takes("CUSTOM_FPGA", 1), "", map[string]string{"a": "may have 2 to 6"}},
		"max_unit":                  {filters.Capacity{}, takes("CUSTOM_FPGA", 6), "a", nil},
		"more than max_unit":        {filters.Capacity{}, takes("CUSTOM_FPGA", 8), "", map[string]string{"a": "may have 2 to 6"}},
		"off the step_size":         {filters.Capacity{}, takes("CUSTOM_FPGA", 5), "", map[string]string{"a": "multiples of 2"}},
		"a class that nobody has":   {filters.Capacity{}, takes("CUSTOM_X", 1), "", nil},
		"which is negative":         {filters.Capacity{}, takes("VCPU", -1), "", map[string]string{"a": "which is negative"}},
		"more than a number":        {filters.Capacity{}, takes("VCPU", 1<<63-1), "", nil},

		"a disabled host":          {filters.Traits{}, placing.Request{}, "a,c,d", map[string]string{"b": "is disabled"}},
		"required":                 {filters.Traits{}, placing.Request{Required: []string{"T1", "T2"}}, "a", map[string]string{"c": "lacks the trait T1"}},
		"required, of nobody":      {filters.Traits{}, placing.Request{Required: []string{"T0"}}, "", nil},
		"forbidden":                {filters.Traits{}, placing.Request{Forbidden: []string{"T3", "T0"}}, "a,d", map[string]string{"c": "T3, which is forbidden"}},
		"any of":                   {filters.Traits{}, placing.Request{AnyOf: [][]string{{"T1", "T3"}}}, "a,c", map[string]string{"d": "none of the traits T1, T3"}},
		"any of, and any of these": {filters.Traits{}, placing.Request{AnyOf: [][]string{{"T1", "T3"}, {"T3", "T0"}}}, "c", nil},
		"any of none":              {filters.Traits{}, placing.Request{AnyOf: [][]string{{}}}, "", nil},

		"a member":             {filters.Aggregates{}, placing.Request{MemberOf: [][]string{{"u1", "u0"}}}, "a,b", map[string]string{"c": "aggregate u1 or u0"}},
		"a member of two":      {filters.Aggregates{}, placing.Request{MemberOf: [][]string{{"u1"}, {"u2"}}}, "b", nil},
		"a member of none":     {filters.Aggregates{}, placing.Request{NotMemberOf: []string{"u1", "u0"}}, "c,d", map[string]string{"a": "u1, which is forbidden"}},
		"a member of a ghost":  {filters.Aggregates{}, placing.Request{MemberOf: [][]string{{"u0"}}}, "", nil},
		"aggregates, no wish":  {filters.Aggregates{}, placing.Request{}, "a,b,c,d", nil},
		"beyond judgement":     {&filters.Judgeable{}, placing.Request{ForceHosts: []string{"d"}}, "a,b,c", map[string]string{"d": "two of its providers"}},
		"zone":                 {filters.Zone{Default: "nova"}, placing.Request{Zone: "az1"}, "a,b", map[string]string{"c": "not in the availability zone az1"}},
		"zone without hosts":   {filters.Zone{Default: "nova"}, placing.Request{Zone: "az3"}, "", nil},
		"zone that is none":    {filters.Zone{Default: "nova"}, placing.Request{Zone: "az9"}, "", map[string]string{"a": "no availability zone az9"}},
		"default zone":         {filters.Zone{Default: "nova"}, placing.Request{Zone: "nova"}, "a,b,c,d", nil},
		"default zone, strict": {filters.AvailabilityZone{}, placing.Request{Zone: "nova"}, "c,d", map[string]string{"a": "in the availability zone az1, not in nova"}},
		"any zone":             {filters.Zone{Default: "nova"}, placing.Request{}, "a,b,c,d", nil},
	})
}

func TestNormalInstancesAreJudgedByTheNormalStateWherePreemptibleOnesMakeRoom(t *testing.T) {
	instance := func(id string, vcpus int64) inventory.Instance {
		return inventory.Instance{ID: id, Status: "ACTIVE", Preemptible: true, Holds: map[string]int64{"VCPU": vcpus}}
	}
	locked := instance("locked", 4)
	locked.Locked = true
	vcpu := func(used int64) map[string]inventory.Stock {
		return map[string]inventory.Stock{"VCPU": {Total: 8, Ratio: 1, Used: used}}
	}
	s := states(t, []inventory.HostState{
		{Name: "a", Stocks: vcpu(8), Instances: []inventory.Instance{instance("1", 2), instance("2", 1)}},
		{Name: "b", Stocks: vcpu(8), Instances: []inventory.Instance{instance("3", 1), locked}},
		{Name: "c", Stocks: vcpu(5)}, {Name: "d", Stocks: vcpu(8)},
	})
	takes := func(preemptible bool) placing.Request {
		return placing.Request{Resources: map[string]int64{"VCPU": 3}, Preemptible: preemptible}
	}
	checkRules(t, s, map[string]rule{
		"a normal one": {filters.Capacity{Evicts: true}, takes(false), "a,c", map[string]string{
			"b": "1 VCPU are free or can be freed, 3 are requested", "d": "0 VCPU are free, 3"}},
		"a preemptible one":            {filters.Capacity{Evicts: true}, takes(true), "c", map[string]string{"a": "0 VCPU are free, 3"}},
		"where nobody makes room":      {filters.Capacity{}, takes(false), "c", map[string]string{"a": "0 VCPU are free, 3"}},
		"more than all of them yield":  {filters.Capacity{Evicts: true}, placing.Request{Resources: map[string]int64{"VCPU": 4}}, "", nil},
		"a class that nobody gives up": {filters.Capacity{Evicts: true}, placing.Request{Resources: map[string]int64{"VCPU": 1, "X": 1}}, "", nil},
	})
}

func TestWhatOneAmountDoesNotTellIsRefusedAndSaidToBeBeyond(t *testing.T) {
	s := states(t, []inventory.HostState{
		{Name: "a", Split: []string{"VGPU"}, Stocks: map[string]inventory.Stock{"VCPU": {Total: 8, Ratio: 1}}},
		{Name: "b", Stocks: map[string]inventory.Stock{"VCPU": {Total: 8, Ratio: 1}, "VGPU": {Total: 8, Ratio: 1}}},
	})
	f := filters.Capacity{}
	split := placing.Request{Resources: map[string]int64{"VCPU": 1, "VGPU": 1}}
	checkRules(t, s, map[string]rule{
		"of a class that is asked for": {f, split, "b", map[string]string{"a": "VGPU in more than one provider"}},
		"of another":                   {f, placing.Request{Resources: map[string]int64{"VCPU": 1, "VGPU": 0}}, "a,b", nil},
	})
	checkBeyond(t, f, s, split, "a has VGPU in more than one provider")
	checkBeyond(t, f, s, placing.Request{Resources: map[string]int64{"VCPU": 1, "VGPU": 0}}, "")
	split.Rebuild = true
	checkBeyond(t, f, s, split, "")
}

func TestAggregatesAreIsolatedAsNovaDoes(t *testing.T) {
	isolated := filters.IsolatedAggregates{Except: "CUSTOM_ALMANAC_"}
	checkRules(t, four(t), map[string]rule{
		"without the trait":             {isolated, placing.Request{Required: []string{"T1"}}, "a,d", map[string]string{"b": "gold is for requests with the trait CUSTOM_GOLD"}},
		"with the trait":                {isolated, placing.Request{Required: []string{"CUSTOM_GOLD"}}, "a,b,c,d", nil},
		"with no exception":             {filters.IsolatedAggregates{}, placing.Request{Required: []string{"CUSTOM_GOLD"}}, "a,d", map[string]string{"c": "CUSTOM_ALMANAC_RESERVED"}},
		"a project with an aggregate":   {filters.TenantAggregates{}, placing.Request{ProjectID: "p1"}, "b,c", map[string]string{"a": "no aggregate of the project"}},
		"listed with commas only":       {filters.TenantAggregates{}, placing.Request{ProjectID: "p2"}, "a,b,c,d", nil},
		"a project that none is for":    {filters.TenantAggregates{Required: true}, placing.Request{ProjectID: "p3"}, "", map[string]string{"a": "no aggregate is for the project"}},
		"listed in the isolation":       {filters.MultiTenancy{}, placing.Request{ProjectID: "p2"}, "a,b,c,d", nil},
		"not listed in the isolation":   {filters.MultiTenancy{}, placing.Request{ProjectID: "p3"}, "a,d", map[string]string{"b": "of other projects"}},
		"not listed, but forced":        {filters.MultiTenancy{}, placing.Request{ProjectID: "p3", ForceHosts: []string{"b"}}, "a,b,c,d", nil},
		"forced into isolation":         {isolated, placing.Request{ForceHosts: []string{"b"}}, "a,d", nil},
		"rebuilt in isolation":          {isolated, placing.Request{Rebuild: true}, "a,b,c,d", nil},
		"a project, of a forced server": {filters.TenantAggregates{}, placing.Request{ProjectID: "p1", ForceHosts: []string{"a"}}, "b,c", nil},
	})
}

func TestADestinationIsKeptTo(t *testing.T) {
	f := filters.Destination{}
	checkRules(t, four(t), map[string]rule{
		"no wish":                {f, placing.Request{}, "a,b,c,d", nil},
		"a host":                 {f, placing.Request{Host: "B"}, "b", map[string]string{"a": "names another host"}},
		"a node":                 {f, placing.Request{Node: "nc"}, "c", nil},
		"a host and its node":    {f, placing.Request{Host: "b", Node: "nb"}, "b", nil},
		"a host, another node":   {f, placing.Request{Host: "b", Node: "nc"}, "", nil},
		"a host nobody knows":    {f, placing.Request{Host: "x"}, "", nil},
		"a cell":                 {f, placing.Request{Cell: "c1"}, "a,b", map[string]string{"c": "not in the cell c1", "d": "the cell of the host is unknown"}},
		"forced hosts":           {f, placing.Request{ForceHosts: []string{"A", "c", "x"}}, "a,c", nil},
		"forced nodes":           {f, placing.Request{ForceNodes: []string{"na"}}, "a", nil},
		"forced host and node":   {f, placing.Request{ForceHosts: []string{"a", "b"}, ForceNodes: []string{"nb", "nc"}}, "b", nil},
		"ignored":                {f, placing.Request{IgnoreHosts: []string{"a", "C", "x"}}, "b,d", map[string]string{"c": "excludes this host"}},
		"forced and ignored":     {f, placing.Request{ForceHosts: []string{"a", "b"}, IgnoreHosts: []string{"a"}}, "b", nil},
		"of a rebuild":           {f, placing.Request{Rebuild: true, ForceHosts: []string{"a"}}, "a", nil},
		"a host in a wrong cell": {f, placing.Request{Host: "c", Cell: "c1"}, "", nil},
	})
}

func TestServicesThatAreDownTakeNothing(t *testing.T) {
	f, check := filters.Compute{}, map[string][]string{"_nova_check_type": {"live"}}
	checkRules(t, four(t), map[string]rule{
		"up and enabled":      {f, placing.Request{}, "a,d", map[string]string{"b": "disabled: the fan", "c": "not reported lately"}},
		"forced":              {f, placing.Request{ForceHosts: []string{"b"}}, "a,b,c,d", nil},
		"forced node":         {f, placing.Request{ForceNodes: []string{"b"}}, "a,b,c,d", nil},
		"forced, but checked": {f, placing.Request{ForceHosts: []string{"b"}, Hints: check}, "a,d", nil},
		"rebuilt":             {f, placing.Request{Rebuild: true, Hints: check}, "a,b,c,d", nil},
	})
}

func TestServerGroupsAreKeptTogetherAndApart(t *testing.T) {
	on := func(ids ...string) (list []inventory.Instance) {
		for _, id := range ids {
			list = append(list, inventory.Instance{ID: id})
		}
		return list
	}
	s := states(t, []inventory.HostState{{Name: "a", Instances: on("m1", "m2")}, {Name: "b", Instances: on("x", "m3")}, {Name: "c", Instances: on("x")}})
	members := []string{"m1", "m2", "m3", "m4"}
	of := func(policy, instance string, most int, hosts ...string) placing.Request {
		return placing.Request{Instances: []string{instance, "m9"}, Group: &placing.Group{Policy: policy, Hosts: hosts, Members: members, MaxPerHost: most}}
	}
	apart, together := filters.ServerGroupAntiAffinity{}, filters.ServerGroupAffinity{}
	forced := of("anti-affinity", "m4", 0)
	forced.ForceHosts = []string{"a"}
	checkRules(t, s, map[string]rule{
		"apart":                      {apart, of("anti-affinity", "m4", 0), "c", map[string]string{"a": "a member of the server group is on the host"}},
		"two on one at most":         {apart, of("anti-affinity", "m4", 2), "b,c", map[string]string{"a": "2 members"}},
		"where it is itself":         {apart, of("anti-affinity", "m2", 0), "a,c", nil},
		"another policy":             {apart, of("soft-anti-affinity", "m4", 0), "a,b,c", nil},
		"no group":                   {apart, placing.Request{}, "a,b,c", nil},
		"apart, but forced":          {apart, forced, "a,b,c", nil},
		"together":                   {together, of("affinity", "m4", 0, "a", "B"), "a,b", map[string]string{"c": "on other hosts"}},
		"together, the first":        {together, of("affinity", "m4", 0), "a,b,c", nil},
		"together, on a host gone":   {together, of("affinity", "m4", 0, "gone"), "", nil},
		"together, of soft affinity": {together, of("soft-affinity", "m4", 0, "a"), "a,b,c", nil},
	})
	after := s.WithTaken([]inventory.Take{{Host: 2, Instance: "m4"}})
	if got, _ := left(t, apart, after, of("anti-affinity", "m9", 0), 0); got != "" {
		t.Errorf("with a member of the request on the last host, %q pass", got)
	}
}

func TestCapabilitiesThatNovaDoesNotTellAreRefusedAndSaidToBeBeyond(t *testing.T) {
	s := states(t, []inventory.HostState{
		{Name: "a", HypervisorType: "QEMU"}, {Name: "b", HypervisorType: "QEMU", HypervisorVersion: 7002000},
		{Name: "i", HypervisorType: "ironic", HypervisorVersion: 1},
	})
	f := filters.ComputeCapabilities{}
	for name, tc := range map[string]struct {
		key, value, want string
		why              map[string]string
		beyond           string
	}{
		"told":                              {"capabilities:hypervisor_type", "QEMU", "a,b", map[string]string{"i": `"ironic", the extra spec capabilities:hypervisor_type requires "QEMU"`}, ""},
		"told of some":                      {"hypervisor_version", ">= 2", "b", map[string]string{"a": "unknown for the host"}, "hypervisor_version"},
		"told of none":                      {"capabilities:cpu_info:arch", "x86_64", "", map[string]string{"a": "cpu_info, which Nova's API does not return"}, "cpu_info"},
		"a statistic that may be there":     {"num_vm_active", ">= 1", "", nil, "num_vm_active"},
		"an attribute of every object":      {"__class__", "x", "", nil, "__class__"},
		"a part of what has none":           {"capabilities:hypervisor_type:x", "x", "", map[string]string{"a": "a part of hypervisor_type"}, ""},
		"what cannot be compared":           {"capabilities:hypervisor_type", ">= 1", "", map[string]string{"a": "cannot be compared"}, ""},
		"a name of the operator's":          {"class", "gold", "a,b", map[string]string{"i": "unknown for the host"}, "class"},
		"another namespace":                 {"hw:cpu_policy", "dedicated", "a,b,i", nil, ""},
		"the namespace alone is a name too": {"capabilities", "x", "a,b", nil, "capabilities"},
	} {
		t.Run(name, func(t *testing.T) {
			r := placing.Request{ExtraSpecs: map[string]string{tc.key: tc.value}}
			checkRules(t, s, map[string]rule{"rule": {f, r, tc.want, tc.why}})
			checkBeyond(t, f, s, r, tc.beyond)
			r.ForceHosts = []string{"a"}
			checkRules(t, s, map[string]rule{"forced": {f, r, "a,b,i", nil}})
			checkBeyond(t, f, s, r, "")
		})
	}
}

func TestImagesThatNovaDoesNotTellOfAreRefusedAndSaidToBeBeyond(t *testing.T) {
	s := states(t, []inventory.HostState{
		{Name: "a", HypervisorType: "QEMU", HypervisorVersion: 7002000, Traits: []string{"HW_CPU_X86_AVX"}},
		{Name: "b", HypervisorType: "QEMU", HypervisorVersion: 7002000},
		{Name: "c", HypervisorType: "Unheard-of", HypervisorVersion: 7002000},
		{Name: "f", HypervisorType: "fake"},
	})
	for name, tc := range map[string]struct {
		image  map[string]string
		arch   string // the default architecture
		want   string
		why    map[string]string
		beyond string
	}{
		"nothing":                      {nil, "", "a,b,c,f", nil, ""},
		"a version alone":              {map[string]string{"img_hv_requested_version": ">=9.0"}, "", "a,b,c,f", nil, ""},
		"an architecture":              {map[string]string{"hw_architecture": "amd64"}, "", "a,f", map[string]string{"b": "Nova's API does not tell"}, "b supports x86_64"},
		"the default architecture":     {nil, "x86_64", "a,f", nil, "b supports x86_64"},
		"its own architecture first":   {map[string]string{"hw_architecture": "s390x"}, "x86_64", "", map[string]string{"f": "does not support"}, "a supports s390x"},
		"QEMU":                         {map[string]string{"img_hv_type": "qemu"}, "", "a,b", map[string]string{"f": "qemu, which the host does not support"}, "c supports qemu"},
		"KVM, which a host may lack":   {map[string]string{"img_hv_type": "kvm"}, "", "", map[string]string{"a": "does not tell"}, "a supports kvm"},
		"a version":                    {map[string]string{"hw_vm_mode": "hvm", "img_hv_requested_version": ">=7.2"}, "", "a,b", map[string]string{"f": "does not tell"}, "c supports hvm"},
		"a version since before it":    {map[string]string{"hw_vm_mode": "hvm", "img_hv_requested_version": ">7.2a1"}, "", "a,b", nil, "c supports hvm"},
		"a version too new":            {map[string]string{"hw_vm_mode": "hvm", "img_hv_requested_version": ">=7.3"}, "", "", map[string]string{"a": "hvm >=7.3"}, "f supports hvm >=7.3"},
		"an architecture nobody knows": {map[string]string{"hw_architecture": "z80"}, "", "", map[string]string{"a": `"z80", which is not a known architecture`}, ""},
		"a version that is none":       {map[string]string{"hw_vm_mode": "hvm", "img_hv_requested_version": "7"}, "", "", map[string]string{"a": "is not a list of comparisons"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := &filters.ImageProperties{DefaultArchitecture: tc.arch}, placing.Request{ImageProperties: tc.image}
			checkRules(t, s, map[string]rule{"rule": {f, r, tc.want, tc.why}})
			checkBeyond(t, f, s, r, tc.beyond)
			rebuild := r
			rebuild.Rebuild, rebuild.ForceHosts, rebuild.Hints = true, []string{"a"}, map[string][]string{"_nova_check_type": {"rebuild"}}
			checkRules(t, s, map[string]rule{"rebuilt": {f, rebuild, tc.want, tc.why}})
			r.ForceHosts = []string{"a"}
			checkRules(t, s, map[string]rule{"forced": {f, r, "a,b,c,f", nil}})
			checkBeyond(t, f, s, r, "")
		})
	}
}
