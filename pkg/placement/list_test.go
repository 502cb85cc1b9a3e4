// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
)

// anyone requires no login.
type anyone struct{}

func (anyone) Token(context.Context, string) (string, error) { return "token", nil }
func (anyone) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", fault.New(fault.Unavailable, "there is no catalog")
}

// reader returns a client of a Placement that answers everything with text.
func reader(t *testing.T, text string) *placement.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, `{"versions": [{"id": "v1.0", "max_version": "1.39", "min_version": "1.0"}]}`)
			return
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	c, err := placement.New(anyone{}, openstack.Options{
		Override: server.URL, Wait: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatIsSoldAndWhatIsReal(t *testing.T) {
	for name, tc := range map[string]struct {
		i          placement.Inventory
		sold, real int64
	}{
		"overcommitted":    {placement.Inventory{Total: 10, Reserved: 2, Ratio: 16}, 128, 8},
		"as it is":         {placement.Inventory{Total: 8192, Reserved: 512, Ratio: 1}, 7680, 7680},
		"less than all":    {placement.Inventory{Total: 101, Ratio: 0.5}, 50, 50},
		"given away never": {placement.Inventory{Total: 10, Ratio: 0}, 0, 0},
		"less than never":  {placement.Inventory{Total: 10, Ratio: -1e300}, 0, 0},
		"all reserved":     {placement.Inventory{Total: 4, Reserved: 4, Ratio: 4}, 0, 0},
	} {
		if tc.i.Sold() != tc.sold || tc.i.Real() != tc.real {
			t.Errorf("%s: %d sold, %d real", name, tc.i.Sold(), tc.i.Real())
		}
	}
}

func TestWhatPlacementTellsOfAProvider(t *testing.T) {
	c := reader(t, `{"resource_provider_generation": 3,
		"resource_providers": [{"uuid": "r", "name": "a", "generation": 3, "parent_provider_uuid": null, "root_provider_uuid": "r"},
			{"uuid": "g", "name": "gpu", "generation": 0, "parent_provider_uuid": "r", "root_provider_uuid": "r"}],
		"inventories": {"VCPU": {"total": 10, "reserved": 1, "allocation_ratio": 16.0, "min_unit": 2, "max_unit": 8, "step_size": 3}},
		"usages": {"VCPU": 5}, "traits": ["B", "A"], "aggregates": ["y", "x"],
		"allocations": {"i": {"resources": {"VCPU": 5}, "consumer_generation": 1}, "j": {"resources": {"VCPU": 2, "DISK_GB": 1}}},
		"allocation_requests": [], "provider_summaries": {"r": {"resources": {"VCPU": {"capacity": 144, "used": 5}}, "traits": ["B", "A"]}}}`)
	check := func(name string, want, got any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	providers, err := c.Providers(t.Context())
	check("providers", []placement.Provider{
		{ID: "r", Name: "a", Generation: 3, Root: "r"}, {ID: "g", Name: "gpu", Parent: "r", Root: "r"},
	}, providers, err)
	inventories, err := c.Inventories(t.Context(), "r")
	check("inventories", map[string]placement.Inventory{"VCPU": {Total: 10, Reserved: 1, Ratio: 16, MinUnit: 2, MaxUnit: 8, StepSize: 3}}, inventories, err)
	usages, err := c.Usages(t.Context(), "r")
	check("usages", map[string]int64{"VCPU": 5}, usages, err)
	traits, err := c.Traits(t.Context(), "r")
	check("traits", []string{"A", "B"}, traits, err)
	aggregates, err := c.AggregatesOf(t.Context(), "r")
	check("aggregates", []string{"y", "x"}, aggregates, err)
	tree, err := c.Tree(t.Context(), "r")
	has, taken := map[string]placement.Inventory{"VCPU": {Total: 10, Reserved: 1, Ratio: 16, MinUnit: 2, MaxUnit: 8, StepSize: 3}}, map[string]int64{"VCPU": 7, "DISK_GB": 1}
	by := map[string]map[string]int64{"i": {"VCPU": 5}, "j": {"VCPU": 2, "DISK_GB": 1}}
	check("tree", []placement.Held{
		{Provider: placement.Provider{ID: "r", Name: "a", Generation: 3, Root: "r"}, Inventories: has, Used: taken, Consumers: by},
		{Provider: placement.Provider{ID: "g", Name: "gpu", Parent: "r", Root: "r"}, Inventories: has, Used: taken, Consumers: by},
	}, tree, err)
	allocations, err := c.Allocations(t.Context(), "r")
	check("allocations", by, allocations, err)
	summaries, err := c.Summaries(t.Context(), 1)
	check("summaries", map[string]placement.Summary{
		"r": {Sold: map[string]int64{"VCPU": 144}, Used: map[string]int64{"VCPU": 5}, Traits: []string{"A", "B"}},
	}, summaries, err)
}

func TestAClassThatIsNeverGivenAwaySpoilsNoReading(t *testing.T) {
	for _, ratio := range []string{"0", "-0.5"} {
		c := reader(t, `{"inventories": {"VCPU": {"total": 10, "reserved": 0, "allocation_ratio": `+ratio+`}},
			"provider_summaries": {"r": {"resources": {"VCPU": {"capacity": -5, "used": 0}}, "traits": []}}}`)
		inventories, err := c.Inventories(t.Context(), "r")
		if err != nil || len(inventories) != 1 || inventories["VCPU"].Real() != 0 {
			t.Errorf("ratio %s: %v, %v", ratio, inventories, err)
		}
		summaries, err := c.Summaries(t.Context(), 1)
		if sold, there := summaries["r"].Sold["VCPU"]; err != nil || !there || sold != inventories["VCPU"].Sold() {
			t.Errorf("ratio %s: %v, %v", ratio, summaries, err)
		}
	}
}

func TestWhatPlacementCannotMeanIsAnErrorAndNothingEmpty(t *testing.T) {
	reads := map[string]func(c *placement.Client) error{
		"resource_providers": func(c *placement.Client) error { _, err := c.Providers(t.Context()); return err },
		"inventories":        func(c *placement.Client) error { _, err := c.Inventories(t.Context(), "r"); return err },
		"usages":             func(c *placement.Client) error { _, err := c.Usages(t.Context(), "r"); return err },
		"aggregates":         func(c *placement.Client) error { _, err := c.AggregatesOf(t.Context(), "r"); return err },
		"traits":             func(c *placement.Client) error { _, err := c.Traits(t.Context(), "r"); return err },
		"allocations":        func(c *placement.Client) error { _, err := c.Allocations(t.Context(), "r"); return err },
		"provider_summaries": func(c *placement.Client) error { _, err := c.Summaries(t.Context(), 10); return err },
	}
	wrong := map[string][]string{
		"resource_providers": {`[{}]`, `[{"uuid": "r", "name": "a", "root_provider_uuid": "r"}]`, `[{"uuid": "r", "name": "a", "generation": 1}]`},
		"inventories": {`{"VCPU": {}}`, `{"VCPU": {"total": -1, "reserved": 0, "allocation_ratio": 1}}`, `{"VCPU": {"total": 1e30, "reserved": 0, "allocation_ratio": 1}}`,
			`{"VCPU": {"total": 9000000000, "reserved": 0, "allocation_ratio": 1}}`, `{"VCPU": {"total": 1, "reserved": 0, "allocation_ratio": 1e300}}`,
			`{"VCPU": {"total": 1, "reserved": 2, "allocation_ratio": 1}}`, `{"VCPU": {"total": 1, "reserved": 0, "allocation_ratio": 1, "step_size": -1}}`},
		"usages":             {`{"VCPU": -1}`, `{"VCPU": "1"}`, `{"VCPU": 1.5}`},
		"traits":             {`[7]`, `{}`},
		"aggregates":         {`[7]`, `{}`},
		"allocations":        {`{"i": {}}`, `{"i": 7}`, `{"i": {"resources": {"VCPU": 0}}}`, `{"i": {"resources": {"VCPU": -1}}}`},
		"provider_summaries": {`{"r": {}}`, `{"r": {"resources": {}}}`, `{"r": {"resources": {"VCPU": {"capacity": 1}}, "traits": []}}`},
	}
	for name, read := range reads {
		documents := []string{``, `{}`, `null`, `<html>`, `{"` + name + `": null}`, `{"` + name + `": 7}`, `{"` + name + `": `}
		for _, value := range wrong[name] {
			documents = append(documents, `{"`+name+`": `+value+`}`)
		}
		for _, document := range documents {
			if err := read(reader(t, document)); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "the answer of placement is invalid") {
				t.Errorf("%s: got %v", document, err)
			}
		}
	}
}
