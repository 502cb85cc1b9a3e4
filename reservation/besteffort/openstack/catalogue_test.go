// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
)

func TestFlavorsThatNotEveryHostOfThePoolServesAreRefused(t *testing.T) {
	snapshot, err := inventory.NewSnapshot([]inventory.Host{
		{Name: "a", Reservable: true, Traits: []string{"HW_CPU_X86_AVX", "CUSTOM_FAST"}},
		{Name: "b", Reservable: true, Traits: []string{"HW_CPU_X86_AVX"}},
		{Name: "c"}, // not usable for best-effort work
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cloud := New(Options{Hosts: func() *inventory.Snapshot { return snapshot }})
	for spec, why := range map[string]string{
		"trait:HW_CPU_X86_AVX=required":               "",
		"trait:CUSTOM_FAST=required":                  "CUSTOM_FAST",
		"trait1:CUSTOM_FAST=required":                 "CUSTOM_FAST",
		"trait:CUSTOM_FAST=forbidden":                 "CUSTOM_FAST",
		"trait:CUSTOM_OTHER=forbidden":                "",
		"hw:cpu_policy=shared":                        "",
		"aggregate_instance_extra_specs:ssd=required": "aggregates",
	} {
		key, value, _ := strings.Cut(spec, "=")
		got := cloud.unserved(map[string]string{key: value})
		if (got == "") != (why == "") || !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q", spec, got, why)
		}
	}
}
