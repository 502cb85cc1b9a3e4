// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

func TestEveryCapturedRequestIsRead(t *testing.T) {
	type flavor = map[string]int64
	const (
		cell     = "9508f4ea-bc66-4c1a-81c5-99a23ad5e3ce"
		instance = "934e2e09-be20-41b7-bbd4-9e4807ebb6c0"
		tiny     = "a1c331a0-940d-4963-a213-817ea3d8125a"
	)
	wants := map[string]placing.Request{
		"":             {ImageID: tiny, Hints: map[string][]string{"reservation": {"0f6c7a2e-5a52-4c64-9f0c-2d5a9a1b7c33"}, "prefer": {"cmp-005"}}},
		"az-":          {Zone: "nova"},
		"forced-az-":   {Zone: "nova", ForceHosts: []string{"cmp-003"}},
		"forced-host-": {Host: "cmp-003"},
		"forced-node-": {Node: "cmp-003"},
		"multi-":       {ImageID: tiny, FlavorName: "m1.small", Hints: map[string][]string{"reservation": {"multi"}}},
		"failure-":     {ImageID: tiny, Hints: map[string][]string{"only": {"nope"}}},
		"failure-migrate-": {
			ImageID: tiny, IgnoreHosts: []string{"cmp-002"}, Cell: "de098817-22f4-46ba-8d2c-5cf7ad9fe113",
			Hints: map[string][]string{"only": {"cmp-002"}, "reservation": {"aaaa", "bbbb"}},
		},
		"cold-migrate-":      {IgnoreHosts: []string{"cmp-001"}, Cell: cell},
		"resize-":            {IgnoreHosts: []string{"cmp-004"}, Cell: cell, FlavorName: "m1.small"},
		"live-migrate-":      {IgnoreHosts: []string{"cmp-004"}, Cell: cell},
		"live-migrate-host-": {IgnoreHosts: []string{"cmp-005"}, Cell: cell, Host: "cmp-001", Node: "cmp-001"},
		"evacuate-":          {IgnoreHosts: []string{"cmp-002"}, Cell: cell},
		"evacuate-host-":     {IgnoreHosts: []string{"cmp-002"}, Cell: cell, Host: "cmp-006", Node: "cmp-006"},
		"unshelve-":          {Cell: cell, FlavorName: "m1.small"},
		"unshelve-host-":     {Cell: cell, Host: "cmp-007", FlavorName: "m1.small"},
		"rebuild-": {
			ForceHosts: []string{"cmp-007"}, ForceNodes: []string{"cmp-007"}, Cell: cell, Rebuild: true, FlavorName: "m1.small", ImageID: "2e19a3c0-6870-47cd-bc3c-e3cc70579926",
			Hints: map[string][]string{"_nova_check_type": {"rebuild"}},
		},
		"group-": {
			ImageID: tiny, Hints: map[string][]string{"group": {"abe37a6c-76a7-4eb4-9a1c-59fd0a0a316b"}},
			Group: &placing.Group{
				ID: "abe37a6c-76a7-4eb4-9a1c-59fd0a0a316b", Policy: "anti-affinity",
				Members: []string{"5764fcd0-6cdd-4365-a412-3b9118ff3ed7"},
			},
		},
	}
	for release, from := range map[string]struct{ image, cell, left string }{
		"epoxy":    {"63aaf291-5abd-4844-ad12-9c3c86361319", "7da5e608-b956-49a8-9842-58fd3c459216", "cmp-002"},
		"hibiscus": {"b4de2c40-5f97-4f80-8ea2-c9be82f2d229", "76e5911e-1e75-4362-831e-0ca705348f00", "cmp-003"},
	} {
		wants[release+"-"] = placing.Request{ImageID: from.image}
		wants[release+"-az-"] = placing.Request{ImageID: from.image, Zone: "nova"}
		wants[release+"-forced-az-"] = placing.Request{ImageID: from.image, Zone: "nova", ForceHosts: []string{"cmp-003"}}
		wants[release+"-cold-migrate-"] = placing.Request{ImageID: from.image, IgnoreHosts: []string{from.left}, Cell: from.cell}
	}
	if files := captured(t, "select_destinations-*request"); len(files) != len(wants) {
		t.Errorf("there are %d captures and %d cases", len(files), len(wants))
	}
	for name, want := range wants {
		want.Resources = flavor{"VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 20}
		if want.FlavorName == "" {
			want.FlavorName, want.Resources = "m1.tiny", flavor{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
		}
		if want.ImageID == "" {
			want.ImageID = "664cc536-50c1-45d5-9962-2062d799bf9d"
		}
		if !want.Rebuild {
			want.Forbidden = []string{"COMPUTE_STATUS_DISABLED"}
		}
		want.ID, want.Instances, want.Alternates = "req-1", []string{instance}, 2
		got, beyond := request(t, specOf(t, name), object.Options{ID: "req-1", Instances: []string{instance}, Alternates: 2})
		ignore := cmpopts.IgnoreFields(placing.Request{}, "ProjectID", "UserID")
		if diff := cmp.Diff(want, got, ignore, cmpopts.EquateEmpty()); diff != "" || len(beyond) > 0 {
			t.Errorf("%s (-want +got), beyond %q:\n%s", name, beyond, diff)
		}
		if len(got.ProjectID) != 32 || len(got.UserID) != 32 {
			t.Errorf("%s: project %q, user %q", name, got.ProjectID, got.UserID)
		}
	}
}

func TestAFlavorTakesWhatNovaAsksOfPlacement(t *testing.T) {
	for rule, tc := range map[string]struct {
		values map[string]any
		want   map[string]int64
	}{
		"root, ephemeral and swap disk are one, in whole GB": {
			map[string]any{"flavor.root_gb": 10, "flavor.ephemeral_gb": 5, "flavor.swap": 1025},
			map[string]int64{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 17},
		},
		"a root disk that is a volume takes none": {
			map[string]any{"flavor.root_gb": 10, "is_bfv": true},
			map[string]int64{"VCPU": 1, "MEMORY_MB": 512},
		},
		"extra specs go before": {
			map[string]any{"flavor.extra_specs": map[string]string{"resources:VCPU": "0", "resources:MEMORY_MB": " 1_024 ", "resources:CUSTOM_GOLD": "+3"}},
			map[string]int64{"MEMORY_MB": 1024, "DISK_GB": 1, "CUSTOM_GOLD": 3},
		},
		"amounts that are none are ignored": {
			map[string]any{"flavor.extra_specs": map[string]string{"resources:VCPU": "-1", "resources:MEMORY_MB": "1.5", "resources:DISK_GB": "many", "resources:CUSTOM_A": "1__0"}},
			map[string]int64{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1},
		},
		"a mention of PCPU takes the flavor's VCPU away": {
			map[string]any{"flavor.extra_specs": map[string]string{"resources:PCPU": "0"}},
			map[string]int64{"MEMORY_MB": 512, "DISK_GB": 1},
		},
		"a flavor without extra specs": {
			map[string]any{"flavor.extra_specs": unset},
			map[string]int64{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1},
		},
	} {
		got, beyond := request(t, edited(t, tc.values), object.Options{})
		if diff := cmp.Diff(tc.want, got.Resources); diff != "" || len(beyond) > 0 {
			t.Errorf("%s (-want +got), beyond %q:\n%s", rule, beyond, diff)
		}
	}
}

func TestTraitsComeFromTheFlavorAndTheImage(t *testing.T) {
	got, beyond := request(t, edited(t, map[string]any{
		"flavor.extra_specs":               map[string]string{"trait:B": "required", "trait:X": "forbidden", "trait:Y": "perhaps", "traits": "required"},
		"image.properties.traits_required": []string{"A", "B"},
	}), object.Options{})
	want := placing.Request{Required: []string{"A", "B"}, Forbidden: []string{"COMPUTE_STATUS_DISABLED", "X"}}
	if got := (placing.Request{Required: got.Required, Forbidden: got.Forbidden}); !cmp.Equal(want, got) || len(beyond) > 0 {
		t.Errorf("beyond %q, (-want +got):\n%s", beyond, cmp.Diff(want, got))
	}
}

func TestADestinationIsRead(t *testing.T) {
	cell := novaObject("CellMapping", "1.1", map[string]any{"uuid": "c-1"})
	to := func(data map[string]any) map[string]any {
		return map[string]any{"requested_destination": novaObject("Destination", "1.4", data)}
	}
	for rule, tc := range map[string]struct {
		values map[string]any
		want   placing.Request
	}{
		"all of it": {
			values: to(map[string]any{
				"host": "h", "node": "n", "cell": cell, "allow_cross_cell_move": false,
				"aggregates": []string{"a,b", "c"}, "forbidden_aggregates": []string{"d"},
			}),
			want: placing.Request{Host: "h", Node: "n", Cell: "c-1", MemberOf: [][]string{{"a", "b"}, {"c"}}, NotMemberOf: []string{"d"}},
		},
		"nulls": {values: to(map[string]any{"node": nil, "cell": nil, "aggregates": nil, "forbidden_aggregates": nil})},
		"a cell that may be left": {
			values: to(map[string]any{"cell": cell, "allow_cross_cell_move": true}),
			want:   placing.Request{PreferredCell: "c-1"},
		},
		"unset": {values: map[string]any{"requested_destination": unset}},
	} {
		r, beyond := request(t, edited(t, tc.values), object.Options{})
		got := placing.Request{Host: r.Host, Node: r.Node, Cell: r.Cell, PreferredCell: r.PreferredCell, MemberOf: r.MemberOf, NotMemberOf: r.NotMemberOf}
		if diff := cmp.Diff(tc.want, got); diff != "" || len(beyond) > 0 {
			t.Errorf("%s (-want +got), beyond %q:\n%s", rule, beyond, diff)
		}
	}
}

func TestAServerGroupIsReadWithItsRule(t *testing.T) {
	group := func(version string, data map[string]any) map[string]any {
		data["uuid"] = "g-1"
		return map[string]any{"instance_group": novaObject("InstanceGroup", version, data)}
	}
	for rule, tc := range map[string]struct {
		values map[string]any
		want   placing.Group
	}{
		"version 1.11": {
			group("1.11", map[string]any{
				"policy": "anti-affinity", "policies": []string{"anti-affinity"}, "_rules": map[string]string{"max_server_per_host": "2"},
				"hosts": []string{"h"}, "members": []string{"i"},
			}),
			placing.Group{ID: "g-1", Policy: "anti-affinity", MaxPerHost: 2, Hosts: []string{"h"}, Members: []string{"i"}},
		},
		"version 1.10": {group("1.10", map[string]any{"policies": []string{"affinity"}, "hosts": nil}), placing.Group{ID: "g-1", Policy: "affinity"}},
	} {
		got, _ := request(t, edited(t, tc.values), object.Options{})
		if diff := cmp.Diff(&tc.want, got.Group); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

func TestHintsAndImagePropertiesAreReadAsStrings(t *testing.T) {
	got, _ := request(t, edited(t, map[string]any{
		"scheduler_hints":                       map[string]any{"a": []any{"x", 7, true}, "b": "y", "c": nil, "d": []any{}, "query": []string{`[">=","$free_ram_mb",1024]`}},
		"image.properties.hw_architecture":      "x86_64",
		"image.properties.hw_cpu_cores":         4,
		"image.properties.hw_qemu_guest_agent":  true,
		"image.properties.img_mappings":         []any{map[string]any{"device": "sda"}},
		"image.properties.img_config_drive":     nil,
		"image.properties.img_use_agent":        false,
		"image.properties.img_bdm_v2":           unset,
		"image.properties.hw_vif_model":         "virtio",
		"image.properties.img_hv_type":          "qemu",
		"image.properties.os_distro":            "debian",
		"image.properties.os_require_quiesce":   false,
		"image.properties.img_linked_clone":     unset,
		"image.properties.hw_machine_type":      "q35",
		"image.properties.hw_time_hpet":         true,
		"image.properties.img_signature":        "",
		"image.properties.hw_video_ram":         int64(1) << 40,
		"image.properties.img_root_device_name": "/dev/vda",
	}), object.Options{})
	wantHints := map[string][]string{"a": {"x", "7", "True"}, "b": {"y"}, "c": {}, "d": {}, "query": {`[">=","$free_ram_mb",1024]`}}
	if diff := cmp.Diff(wantHints, got.Hints); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
	wantProperties := map[string]string{
		"hw_architecture": "x86_64", "hw_cpu_cores": "4", "hw_qemu_guest_agent": "True", "img_mappings": `[{"device":"sda"}]`,
		"img_use_agent": "False", "hw_vif_model": "virtio", "img_hv_type": "qemu", "os_distro": "debian", "os_require_quiesce": "False",
		"hw_machine_type": "q35", "hw_time_hpet": "True", "img_signature": "", "hw_video_ram": "1099511627776", "img_root_device_name": "/dev/vda",
	}
	if diff := cmp.Diff(wantProperties, got.ImageProperties); diff != "" {
		t.Errorf("image properties (-want +got):\n%s", diff)
	}
}

func TestARequestIsPreemptibleByOneSign(t *testing.T) {
	rule := inventory.PreemptibleRule{ExtraSpec: "almanac:preemptible", Hint: "preemptible", Projects: []string{"p-1"}}
	for sign, tc := range map[string]struct {
		values map[string]any
		want   bool
	}{
		"none":                 {nil, false},
		"extra spec":           {map[string]any{"flavor.extra_specs": map[string]string{"almanac:preemptible": "true"}}, true},
		"untrue extra spec":    {map[string]any{"flavor.extra_specs": map[string]string{"almanac:preemptible": "no"}}, false},
		"hint":                 {map[string]any{"scheduler_hints": map[string]any{"preemptible": []string{"yes"}}}, true},
		"the instance's owner": {map[string]any{"project_id": "p-1"}, true},
	} {
		got, beyond := request(t, edited(t, tc.values), object.Options{Preemptible: rule})
		if got.Preemptible != tc.want || len(beyond) > 0 {
			t.Errorf("%s: got %t, beyond %q", sign, got.Preemptible, beyond)
		}
	}
}

func TestTheMarkOfAReservationIsAmongTheExtraSpecs(t *testing.T) {
	got, beyond := request(t, edited(t, map[string]any{"flavor.extra_specs": map[string]string{inventory.ReservationMark: "r-1"}}), object.Options{})
	if got.ExtraSpecs[inventory.ReservationMark] != "r-1" || len(beyond) > 0 {
		t.Errorf("got %v, beyond %q", got.ExtraSpecs, beyond)
	}
}

func TestACallThatNamesNoInstanceIsForTheOneOfItsSpec(t *testing.T) {
	got, _ := request(t, edited(t, map[string]any{"instance_uuid": "i-1", "num_instances": 1}), object.Options{})
	if diff := cmp.Diff([]string{"i-1"}, got.Instances); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnyOtherMinorVersionIsRead(t *testing.T) {
	for _, version := range []string{"1.0", "1.14", "1.99"} {
		spec := decode(t, specOf(t, "")).(map[string]any)
		spec["nova_object.version"] = version
		data(t, spec, "")["of_the_future"] = map[string]any{"a": 1}
		request(t, encode(t, spec), object.Options{})
	}
}

func TestWhatIsNoRequestSpecIsRefusedWithItsField(t *testing.T) {
	changed := func(key string, value any) []byte {
		spec := decode(t, specOf(t, "")).(map[string]any)
		spec[key] = value
		return encode(t, spec)
	}
	with := func(path string, value any) []byte { return edited(t, map[string]any{path: value}) }
	for _, tc := range []struct {
		raw   []byte
		field string
	}{
		{changed("nova_object.version", "2.0"), "spec_obj"},
		{changed("nova_object.version", ""), "spec_obj"},
		{changed("nova_object.name", "Flavor"), "spec_obj"},
		{[]byte(`null`), "spec_obj"},
		{[]byte(`{"image": {}}`), "spec_obj"}, // version 4.0 of the call has a plain map
		{with("flavor", nil), "flavor"},
		{with("flavor", map[string]any{"vcpus": 1}), "flavor"},
		{with("flavor", novaObject("Flavor", "2.0", nil)), "flavor"},
		{with("flavor.vcpus", "two"), "flavor.vcpus"},
		{with("flavor.vcpus", -1), "flavor.vcpus"},
		{with("flavor.memory_mb", 1e30), "flavor.memory_mb"},
		{with("flavor.root_gb", int64(1)<<31-1), ""},
		{edited(t, map[string]any{"flavor.root_gb": int64(1)<<31 - 1, "flavor.ephemeral_gb": 1}), "flavor.root_gb"},
		{with("flavor.extra_specs", map[string]string{"resources:CUSTOM_A": "99999999999999999999"}), "flavor.extra_specs"},
		{with("flavor.extra_specs", map[string]int{"a": 1}), "flavor.extra_specs"},
		{with("image.properties", []int{1}), "image.properties"},
		{with("image.properties.traits_required", "A"), "image.properties.traits_required"},
		{with("scheduler_hints", []string{"a"}), "scheduler_hints"},
		{with("scheduler_hints", map[string]any{"a": map[string]any{}}), "scheduler_hints"},
		{with("scheduler_hints", map[string]any{"a": []any{nil}}), "scheduler_hints"},
		{with("ignore_hosts", "h"), "ignore_hosts"},
		{with("is_bfv", "yes"), "is_bfv"},
		{with("instance_group", novaObject("InstanceGroup", "1.11", map[string]any{"_rules": map[string]string{"max_server_per_host": "x"}})), "instance_group._rules"},
		{with("requested_destination", novaObject("Destination", "1.4", map[string]any{"cell": "c"})), "requested_destination.cell"},
		{with("num_instances", 2), "instance_uuid"},
		{with("instance_uuid", unset), "instance_uuid"},
		{with("requested_resources", 7), "requested_resources"},
	} {
		spec, err := object.ReadRequestSpec(tc.raw)
		if err == nil {
			_, _, err = spec.Request(object.Options{})
		}
		if tc.field == "" && err == nil {
			continue
		}
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Field != tc.field {
			t.Errorf("want a fault of %s, got %v", tc.field, err)
		}
	}
}
