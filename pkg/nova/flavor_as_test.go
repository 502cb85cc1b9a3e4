// SPDX-License-Identifier: Apache-2.0

package nova_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

func TestAFlavorIsReadAsItsUserSeesIt(t *testing.T) {
	token := ""
	c, asked := reader(t, func(r *http.Request) string {
		token = r.Header.Get("X-Auth-Token")
		return `{"flavor": {"id": "a b", "name": "big", "vcpus": 4, "ram": 2048, "disk": 20, "OS-FLV-EXT-DATA:ephemeral": 10, "swap": 512,
			"os-flavor-access:is_public": false, "rxtx_factor": 1.0, "extra_specs": {"resources:VCPU": "2", "x": "<y>"}, "links": [{"rel": "self"}]}}`
	})
	f, text, err := c.FlavorAs(t.Context(), "of the user", "a b")
	want := inventory.Flavor{
		ID: "a b", Name: "big", Resources: resource.Vector{VCPUs: 2, MemoryMB: 2048, DiskGB: 31}, ExtraSpecs: map[string]string{"resources:VCPU": "2", "x": "<y>"},
	}
	if d := cmp.Diff(want, f); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	const wantText = `{"OS-FLV-EXT-DATA:ephemeral":10,"disk":20,"extra_specs":{"resources:VCPU":"2","x":"\u003cy\u003e"},"id":"a b","name":"big",` +
		`"os-flavor-access:is_public":false,"ram":2048,"rxtx_factor":1.0,"swap":512,"vcpus":4}`
	if text != wantText {
		t.Errorf("its text is %s", text)
	}
	if d := cmp.Diff([]string{"2.100 /v2.1/flavors/a%20b"}, *asked); d != "" || token != "of the user" {
		t.Errorf("asked with token %q (-want +got):\n%s", token, d)
	}
	for _, text := range []string{`{}`, `{"flavor": null}`, `{"flavor": {"name": "x"}}`, `{"flavor": {"id": "x", "name": "x", "vcpus": -1}}`, `{"flavor": {"id": 1}}`} {
		c, _ := reader(t, always(text))
		if _, _, err := c.FlavorAs(t.Context(), "t", "x"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
