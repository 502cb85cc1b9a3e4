// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// cloud is a random cloud: its hosts and aggregates, and which of Nova's request filters run.
type cloud struct {
	hosts      []inventory.HostState
	aggregates []inventory.Aggregate
	options    map[string]bool
}

var zones = []string{"az1", "az2", "az3"}

// hostTraits are the traits of a random cloud; each host has some of them.
var hostTraits = []string{
	"COMPUTE_STATUS_DISABLED", "COMPUTE_IMAGE_TYPE_RAW", "COMPUTE_IMAGE_TYPE_QCOW2", "COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_STORAGE_BUS_SATA",
	"COMPUTE_GRAPHICS_MODEL_NONE", "COMPUTE_NET_VIF_MODEL_SPAPR_VLAN", "COMPUTE_NET_VIF_MODEL_E1000", "HW_ARCH_X86_64", "COMPUTE_ARCH_AARCH64",
	"COMPUTE_EPHEMERAL_ENCRYPTION", "COMPUTE_EPHEMERAL_ENCRYPTION_LUKS", "CUSTOM_A", "CUSTOM_B",
}

func drawnCloud(random *rand.Rand) cloud {
	often := func() bool { return random.IntN(4) > 0 }
	rarely := func() bool { return random.IntN(4) == 0 }
	c := cloud{options: make(map[string]bool)}
	for _, name := range []string{
		"limit_tenants_to_placement_aggregate", "enable_isolated_aggregate_filtering",
		"query_placement_for_image_type_support", "image_metadata_prefilter",
	} {
		c.options[name] = often()
	}
	c.options["placement_aggregate_required_for_tenants"] = rarely()
	for i := range 40 {
		h := inventory.HostState{Name: fmt.Sprintf("h%02d", i), Node: fmt.Sprintf("n%02d", i), Up: true, Enabled: true}
		for n, trait := range hostTraits {
			if n == 0 && rarely() || n > 0 && random.IntN(12) > 0 {
				h.Traits = append(h.Traits, trait)
			}
		}
		c.hosts = append(c.hosts, h)
	}
	for i := range 8 {
		a := inventory.Aggregate{UUID: fmt.Sprintf("5c6e3e52-0c0c-4d0e-9a4e-%012d", i), Metadata: map[string]string{"ssd": "true"}}
		if i < len(zones) {
			a.Zone = zones[i]
			a.Metadata["availability_zone"] = a.Zone
		}
		for key, values := range map[string][]string{
			"filter_tenant_id": {"p1", "p2"}, "filter_tenant_id_2": {"p1", "p2"}, "owner": {"p1", "p3"},
			"trait:CUSTOM_A": {"required", "maybe"}, "trait:CUSTOM_B": {"required"}, "trait:COMPUTE_IMAGE_TYPE_RAW": {"required"},
		} {
			if rarely() && rarely() {
				a.Metadata[key] = values[random.IntN(len(values))]
			}
		}
		for _, h := range c.hosts {
			if random.IntN(3) > 0 {
				a.Hosts = append(a.Hosts, h.Name)
			}
		}
		c.aggregates = append(c.aggregates, a)
	}
	return c
}

// drawnFor returns a request with a random image, flavor, project and zone, which the request
// filters read.
func drawnFor(t *testing.T, random *rand.Rand, c cloud) json.RawMessage {
	one := func(values ...string) string { return values[random.IntN(len(values))] }
	values, extraSpecs := drawnValues(random)
	delete(values, "scheduler_hints") // of a rebuild, which no request filter sees
	delete(values, "force_hosts")
	if often := random.IntN(6) > 0; often {
		clear(extraSpecs)
	}
	if random.IntN(8) == 0 {
		extraSpecs["hw:ephemeral_encryption"] = one("true", " YES", "1", "no", "perhaps", "")
	}
	if random.IntN(8) == 0 {
		extraSpecs["hw:ephemeral_encryption_format"] = one("luks", "plain", "luksv2", "LUKS", "")
	}
	values["project_id"] = one("p1", "p2", "p3")
	values["availability_zone"] = []any{nil, "az1", "az2", "nova"}[random.IntN(4)]
	values["image.disk_format"] = one("raw", "raw", "raw", "qcow2", "qcow2", "vhd", "gpt", "RAW")
	for _, property := range []struct {
		name   string
		values []any
	}{
		{"hw_disk_bus", []any{"virtio", "sata"}},
		{"hw_cdrom_bus", []any{"sata", "sata", "ide"}},
		{"hw_video_model", []any{"none", "none", "qxl"}},
		{"hw_vif_model", []any{"spapr-vlan", "e1000", "e1000e"}},
		{"hw_architecture", []any{"x86_64", "x86_64", "armv7l"}},
		{"hw_emulation_architecture", []any{"aarch64", "alpha"}},
		{"hw_viommu_model", []any{"intel", "auto"}},
		{"hw_ephemeral_encryption", []any{true, false}},
		{"hw_ephemeral_encryption_format", []any{"luks", "plain"}},
	} {
		if random.IntN(10) == 0 {
			values["image.properties."+property.name] = property.values[random.IntN(len(property.values))]
		}
	}
	if d, is := values["requested_destination"].(map[string]any); is {
		data := d["nova_object.data"].(map[string]any)
		delete(data, "host")
		data["aggregates"] = []string{c.aggregates[4].UUID + "," + c.aggregates[5].UUID, c.aggregates[6].UUID}[:random.IntN(3)]
		data["forbidden_aggregates"] = []string{c.aggregates[7].UUID}[:random.IntN(2)]
	}
	return edited(t, values)
}

// Almanac's filters leave the same hosts as Nova's request filters and a Placement that answers
// their query.
func TestRequestFiltersLeaveTheHostsThatNovasLeave(t *testing.T) {
	const clouds, each = 30, 100
	random := rand.New(rand.NewPCG(7, 8))
	var questions []question
	var in []cloud
	for range clouds {
		c := drawnCloud(random)
		aggregates := make([]map[string]any, len(c.aggregates))
		for i, a := range c.aggregates {
			aggregates[i] = map[string]any{"uuid": a.UUID, "metadata": a.Metadata}
		}
		for range each {
			in = append(in, c)
			questions = append(questions, question{"prefiltered", map[string]any{
				"options": c.options, "aggregates": aggregates, "spec": drawnFor(t, random, c),
			}})
		}
	}
	var answers []askedOf
	labtest.AskPython(t, "testdata/oracle.py", questions, &answers)
	count := make(map[string]int)
	for i, want := range answers {
		raw := questions[i].value.(map[string]any)["spec"].(json.RawMessage)
		r, beyond := request(t, raw, object.Options{Instances: []string{"i"}, Prefilters: object.Prefilters{
			ImageTypes: in[i].options["query_placement_for_image_type_support"], ImageMetadata: in[i].options["image_metadata_prefilter"],
		}})
		switch {
		case want.Error == "FlavorImageConflict" || want.Error == "Invalid":
			count["contradict themselves"]++
			if len(beyond) == 0 {
				t.Errorf("Nova fails with %s, and Almanac judges the request: %s", want.Error, raw)
			}
			continue
		case len(beyond) > 0, want.Error != "" && want.Error != "RequestFilterFailed":
			count["are not judged"]++
			continue
		}
		left := hostsLeft(t, in[i], r)
		if diff := cmp.Diff(asksFor(in[i], want), left, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("hosts (-nova +ours):\n%s\nNova: %+v\n%s", diff, want, raw)
		}
		if diff := cmp.Diff(want.RootRequired, slices.Concat(r.AnyOf...), cmpopts.EquateEmpty()); diff != "" && want.Error == "" {
			t.Errorf("traits that the filters add (-nova +ours):\n%s\n%s", diff, raw)
		}
		switch len(left) {
		case 0:
			count["leave no host"]++
		case len(in[i].hosts):
			count["leave all"]++
		default:
			count["leave some"]++
		}
		if len(want.RootRequired) > 0 {
			count["get traits"]++
		}
	}
	t.Log(count)
	if count["leave some"] < clouds*each/4 || count["get traits"] < clouds*each/4 || count["contradict themselves"] < 10 || count["leave no host"] < clouds*each/20 {
		t.Errorf("%v: the requests are drawn too simple or too wild", count)
	}
}

// asksFor returns the hosts that have what Nova asks of Placement.
func asksFor(c cloud, a askedOf) (names []string) {
	if a.Error != "" {
		return nil
	}
	for _, h := range c.hosts {
		has := func(trait string) bool { return slices.Contains(h.Traits, trait) }
		in := func(uuid string) bool {
			return slices.ContainsFunc(c.aggregates, func(g inventory.Aggregate) bool { return g.UUID == uuid && slices.Contains(g.Hosts, h.Name) })
		}
		fits := !slices.ContainsFunc(a.Forbidden, has) && !slices.ContainsFunc(a.NotMemberOf, in)
		for _, trait := range slices.Concat(a.Required, a.RootRequired) {
			fits = fits && has(trait)
		}
		for _, any := range a.MemberOf {
			fits = fits && slices.ContainsFunc(any, in)
		}
		if fits {
			names = append(names, h.Name)
		}
	}
	return names
}

// hostsLeft returns the hosts that pass the filters which do the work of Placement and of the
// request filters.
func hostsLeft(t *testing.T, c cloud, r placing.Request) (names []string) {
	t.Helper()
	s, err := inventory.NewStates(c.hosts, c.aggregates)
	if err != nil {
		t.Fatal(err)
	}
	all, err := filters.New(nil, filters.Options{
		DefaultAvailabilityZone:          "nova",
		EnableIsolatedAggregateFiltering: c.options["enable_isolated_aggregate_filtering"],
		LimitTenantsToPlacementAggregate: c.options["limit_tenants_to_placement_aggregate"], PlacementAggregateRequiredForTenants: c.options["placement_aggregate_required_for_tenants"],
	})
	if err != nil {
		t.Fatal(err)
	}
	left := s.All().Clone()
	for _, f := range all {
		if !slices.Contains([]string{"ZoneFilter", "AggregateFilter", "TenantAggregateFilter", "IsolatedAggregateFilter", "TraitFilter"}, f.Name()) {
			continue
		}
		if test := f.For(s, &r, 0); test != nil {
			test.Keep(left)
		}
	}
	for i := range left.All() {
		names = append(names, s.Host(i).Name)
	}
	return names
}

// These filters are newer than the Nova of the tests. The cases are those of
// packed_virtqueue_filter and virtio_sound_filter
// (nova/tests/unit/scheduler/test_request_filter.py).
func TestWhatANewerNovaTranslatesIsJudgedBesideOne(t *testing.T) {
	for name, tc := range map[string]struct {
		flavor, image string // the key and the value
		want          []string
		beyond        string // a word of the reason
	}{
		"packed by the flavor":     {flavor: "hw:virtio_packed_ring=true", want: []string{"COMPUTE_NET_VIRTIO_PACKED"}},
		"packed by the image":      {image: "hw_virtio_packed_ring=true", want: []string{"COMPUTE_NET_VIRTIO_PACKED"}},
		"packed by both":           {flavor: "hw:virtio_packed_ring=yes", image: "hw_virtio_packed_ring=1", want: []string{"COMPUTE_NET_VIRTIO_PACKED"}},
		"not packed":               {flavor: "hw:virtio_packed_ring=false"},
		"packed or not":            {flavor: "hw:virtio_packed_ring=false", image: "hw_virtio_packed_ring=true", want: []string{"COMPUTE_NET_VIRTIO_PACKED"}, beyond: "contradict"},
		"virtio sound, the flavor": {flavor: "hw:sound_model=virtio", want: []string{"COMPUTE_SOUND_MODEL_VIRTIO"}},
		"virtio sound, the image":  {image: "hw_sound_model=virtio", want: []string{"COMPUTE_SOUND_MODEL_VIRTIO"}},
		"another sound":            {flavor: "hw:sound_model=usb"},
		"two sounds":               {flavor: "hw:sound_model=usb", image: "hw_sound_model=virtio", beyond: "contradict"},
		"no such sound":            {flavor: "hw:sound_model=harp", beyond: "harp"},
	} {
		values := map[string]any{}
		if key, value, is := strings.Cut(tc.flavor, "="); is {
			values["flavor.extra_specs"] = map[string]string{key: value}
		}
		if key, value, is := strings.Cut(tc.image, "="); is {
			values["image.properties."+key] = value
		}
		r, beyond := request(t, edited(t, values), object.Options{Release: release.Flamingo})
		if diff := cmp.Diff(tc.want, slices.Concat(r.AnyOf...), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: traits (-want +got):\n%s", name, diff)
		}
		if said := strings.Join(beyond, "; "); (said == "") != (tc.beyond == "") || !strings.Contains(said, tc.beyond) {
			t.Errorf("%s: beyond judgement is %q, want a word on %q", name, said, tc.beyond)
		}
		_, older := request(t, edited(t, values), object.Options{Release: release.Bobcat})
		if asked := name != "not packed"; (len(older) > 0) != asked {
			t.Errorf("%s, with an older Nova: %q", name, older)
		}
	}
}

func TestWhatTheRequestFiltersCannotSeeIsPassedOn(t *testing.T) {
	network := novaObject("NetworkRequestList", "1.1", map[string]any{"objects": []any{
		novaObject("NetworkRequest", "1.3", map[string]any{"network_id": "5c6e3e52-0c0c-4d0e-9a4e-6a1f4f3f4c55"}),
	}})
	all := object.Prefilters{ImageTypes: true, ImageMetadata: true, RoutedNetworks: true}
	for want, values := range map[string]map[string]any{
		"the type of its image":                   {"image.disk_format": nil, "requested_networks": nil},
		"the properties of its image":             {"image.properties": nil, "requested_networks": nil},
		"only Neutron knows the segments":         {"requested_networks": network},
		"hw:ephemeral_encryption_format has the ": {"flavor.extra_specs": map[string]string{"hw:ephemeral_encryption": "1", "hw:ephemeral_encryption_format": "rot13"}, "requested_networks": nil},
		"": {"requested_networks": nil, "is_bfv": true, "image.disk_format": nil},
	} {
		_, beyond := request(t, edited(t, values), object.Options{Prefilters: all})
		if said := strings.Join(beyond, "; "); (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("beyond judgement is %q, want a word on %q", said, want)
		}
	}
	rebuild := maps.Collect(maps.All(map[string]any{
		"scheduler_hints": map[string]any{"_nova_check_type": []string{"rebuild"}}, "force_hosts": []string{"cmp-003"}, "image.disk_format": nil,
	}))
	if r, beyond := request(t, edited(t, rebuild), object.Options{Prefilters: all}); len(beyond)+len(r.AnyOf) > 0 {
		t.Errorf("a rebuild is filtered: %q, %q", beyond, r.AnyOf)
	}
}
