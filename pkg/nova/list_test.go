// SPDX-License-Identifier: Apache-2.0

package nova_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// anyone requires no login.
type anyone struct{}

func (anyone) Token(context.Context, string) (string, error) { return "token", nil }
func (anyone) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", fault.New(fault.Unavailable, "there is no catalog")
}

// reader returns a client of a Nova that answers by answer, and the requests so far: microversion
// and path with the query.
func reader(t *testing.T, answer func(r *http.Request) string) (*nova.Client, *[]string) {
	t.Helper()
	asked := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2.1/" {
			_, _ = io.WriteString(w, `{"version": {"version": "2.100", "min_version": "2.1"}}`)
			return
		}
		*asked = append(*asked, r.Header.Get("X-OpenStack-Nova-API-Version")+" "+r.URL.RequestURI())
		_, _ = io.WriteString(w, answer(r))
	}))
	t.Cleanup(server.Close)
	c, err := nova.New(anyone{}, openstack.Options{
		Override: server.URL + "/v2.1", Wait: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, asked
}

func always(text string) func(*http.Request) string {
	return func(*http.Request) string { return text }
}

// inCells always answers lists of servers with text, for a Nova whose cells are all up.
func inCells(text string) func(*http.Request) string {
	return func(r *http.Request) string {
		if strings.HasSuffix(r.URL.Path, "/os-services") {
			return `{"services": []}`
		}
		return text
	}
}

func TestAServiceIsUpUnlessItIsDownOrForcedDown(t *testing.T) {
	c, _ := reader(t, always(`{"services": [
		{"id": "1", "host": "a", "zone": "nova", "state": "up", "status": "enabled", "forced_down": false, "disabled_reason": null},
		{"id": "2", "host": "b", "zone": "nova", "state": "down", "status": "disabled", "forced_down": false, "disabled_reason": "broken fan"},
		{"id": "3", "host": "c", "zone": "nova", "state": "up", "status": "enabled", "forced_down": true}]}`))
	got, err := c.Services(t.Context())
	want := []nova.Service{
		{ID: "1", Host: "a", Zone: "nova", Up: true},
		{ID: "2", Host: "b", Zone: "nova", Disabled: true, Reason: "broken fan"},
		{ID: "3", Host: "c", Zone: "nova", ForcedDown: true},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestHypervisorsAreReadWithoutTheirUptime(t *testing.T) {
	c, asked := reader(t, func(r *http.Request) string {
		if r.URL.Query().Has("marker") {
			return `{"hypervisors": []}`
		}
		return `{"hypervisors": [{"id": "u", "hypervisor_hostname": "a.example.org", "host_ip": "10.0.0.7", "hypervisor_type": "QEMU",
			"hypervisor_version": 9002000, "service": {"id": "s", "host": "a", "disabled_reason": null}, "vcpus": 8, "uptime": null}]}`
	})
	got, err := c.Hypervisors(t.Context())
	if diff := cmp.Diff([]nova.Hypervisor{{ID: "u", Name: "a.example.org", Host: "a", IP: "10.0.0.7", Type: "QEMU", Version: 9002000}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"2.87 /v2.1/os-hypervisors/detail?limit=1000", "2.87 /v2.1/os-hypervisors/detail?limit=1000&marker=u"}, *asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDiskIsMissingOnAHypervisorWhereTheHostHasLessThanNovaCounts(t *testing.T) {
	for want, columns := range map[int64]string{
		0:  `"free_disk_gb": null, "disk_available_least": 5`,
		1:  `"free_disk_gb": 6, "disk_available_least": 5`,
		-1: `"free_disk_gb": 6, "disk_available_least": null`,
		-2: `"free_disk_gb": 6, "disk_available_least": 9`,
		11: `"free_disk_gb": 6, "disk_available_least": -5`,
	} {
		c, _ := reader(t, func(r *http.Request) string {
			if r.URL.Query().Has("marker") {
				return `{"hypervisors": []}`
			}
			return `{"hypervisors": [{"id": "u", "hypervisor_hostname": "n", "service": {"host": "a"}, ` + columns + `}]}`
		})
		got, err := c.Hypervisors(t.Context())
		if err != nil || len(got) != 1 || got[0].DiskMissing != max(0, want) {
			t.Errorf("%s: %+v, %v", columns, got, err)
		}
	}
}

const whole = `{"id": "1", "name": "n", "tenant_id": "p", "user_id": "u", "status": "ACTIVE", "OS-EXT-STS:task_state": "migrating",
	"OS-EXT-SRV-ATTR:host": "a", "created": "2026-11-22T00:00:00Z", "updated": "2026-11-22T00:00:09Z",
	"OS-SRV-USG:launched_at": "2026-11-22T00:00:07.000000", "image": %s, "metadata": {"k": "v"}, "locked": true,
	"flavor": {"vcpus": 2, "ram": 1024, "disk": 10, "ephemeral": 5, "swap": 1500, "original_name": "m", "extra_specs": %s},
	"scheduler_hints": %s}`

func TestAServerIsReadAsNovaTellsIt(t *testing.T) {
	c, asked := reader(t, inCells(`{"servers": [`+fmt.Sprintf(whole, `{"id": "i"}`, `{"a": "b"}`, `{"group": "g", "different_host": ["x", "y"], "query": [["=", 1]], "n": 7}`)+`]}`))
	got, err := c.Servers(t.Context(), nova.ServerQuery{Project: "p", Host: "a", ChangedSince: 1700000000})
	want := []nova.Server{{Updated: 1795305609, Image: "i", Instance: inventory.Instance{
		ID: "1", Name: "n", ProjectID: "p", UserID: "u", Host: "a", Status: "ACTIVE", Task: "migrating",
		Created: 1795305600, Launched: 1795305607, Metadata: map[string]string{"k": "v"}, Locked: true,
		Flavor: inventory.Flavor{Name: "m", Resources: resource.Vector{VCPUs: 2, MemoryMB: 1024, DiskGB: 17}, ExtraSpecs: map[string]string{"a": "b"}},
		Hints:  map[string][]string{"group": {"g"}, "different_host": {"x", "y"}, "query": {`["=", 1]`}, "n": {"7"}},
	}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{
		"2.100 /v2.1/servers/detail?all_tenants=True&changes-since=2023-11-14T22%3A13%3A20Z&host=a&limit=1000&project_id=p",
		"2.100 /v2.1/os-services?binary=nova-compute&host=a",
	}, *asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAServersImageIsItsIDOrNotKnown(t *testing.T) {
	for image, want := range map[string]string{
		`{"id": "i", "links": [{"rel": "bookmark", "href": "x"}]}`: "i",
		`""`: "", `null`: "", `{}`: "", `7`: "", `"i"`: "", `{"id": 7}`: "",
	} {
		c, _ := reader(t, inCells(`{"servers": [`+fmt.Sprintf(whole, image, `{}`, `{}`)+`]}`))
		got, err := c.Servers(t.Context(), nova.ServerQuery{})
		if err != nil || len(got) != 1 || got[0].Image != want {
			t.Errorf("%s: %+v, %v", image, got, err)
		}
	}
}

func TestAnInstanceTakesWhatItsFlavorAsksPlacementFor(t *testing.T) {
	for name, tc := range map[string]struct {
		image, specs string
		want         resource.Vector
	}{
		"its shape, with swap rounded up": {`{"id": "i"}`, `{}`, resource.Vector{VCPUs: 2, MemoryMB: 1024, DiskGB: 17}},
		"its root disk on a volume":       {`""`, `{}`, resource.Vector{VCPUs: 2, MemoryMB: 1024, DiskGB: 7}},
		"other amounts": {`""`, `{"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0", "resources:CUSTOM_BAREMETAL": "1"}`,
			resource.Vector{Custom: map[string]int64{"CUSTOM_BAREMETAL": 1}}},
		"groups add up": {`""`, `{"resources1:CUSTOM_FPGA": "1", "resources2:CUSTOM_FPGA": "2", "resources:PCPU": "4"}`,
			resource.Vector{VCPUs: 4, MemoryMB: 1024, DiskGB: 7, Custom: map[string]int64{"CUSTOM_FPGA": 3}}},
		"what is no amount": {`""`, `{"resources:VCPU": "many", "resources:DISK_GB": "-1", "x:CUSTOM_A": "1"}`, resource.Vector{VCPUs: 2, MemoryMB: 1024, DiskGB: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := reader(t, inCells(`{"servers": [`+fmt.Sprintf(whole, tc.image, tc.specs, `null`)+`]}`))
			got, err := c.Servers(t.Context(), nova.ServerQuery{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got[0].Flavor.Resources); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got[0].Hints != nil {
				t.Errorf("hints %v, want none, because none are known", got[0].Hints)
			}
		})
	}
}

func TestPagesAreReadToTheirEndAndNoServerTwice(t *testing.T) {
	one := func(id string) string {
		return strings.Replace(fmt.Sprintf(whole, `""`, `{}`, `{}`), `"id": "1"`, `"id": "`+id+`"`, 1)
	}
	more := `"servers_links": [{"rel": "next", "href": "http://elsewhere/"}]`
	c, asked := reader(t, func(r *http.Request) string {
		if strings.HasSuffix(r.URL.Path, "/os-services") {
			return `{"services": []}`
		}
		switch r.URL.Query().Get("marker") {
		case "":
			return `{"servers": [` + one("1") + `,` + one("2") + `], ` + more + `}`
		case "2":
			return `{"servers": [` + one("2") + `,` + one("3") + `], ` + more + `}`
		}
		return `{"servers": []}`
	})
	got, err := c.Servers(t.Context(), nova.ServerQuery{})
	if err != nil || len(got) != 3 || len(*asked) != 5 {
		t.Errorf("%d servers by %d calls, %v", len(got), len(*asked), err)
	}
}

func TestPagesThatDoNotEndAreAnError(t *testing.T) {
	c, asked := reader(t, inCells(`{"servers": [`+fmt.Sprintf(whole, `""`, `{}`, `{}`)+`], "servers_links": [{"rel": "next"}]}`))
	if _, err := c.Servers(t.Context(), nova.ServerQuery{}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "its list does not end") {
		t.Errorf("after %d pages: %v", len(*asked), err)
	}
}

func TestFlavorsAreReadAlsoThoseThatAreNotPublic(t *testing.T) {
	c, asked := reader(t, always(`{"flavors": [{"id": "7", "name": "m", "vcpus": 1, "ram": 512, "disk": 1, "swap": "",
		"OS-FLV-EXT-DATA:ephemeral": 2, "os-flavor-access:is_public": false, "extra_specs": {"hw:x": "y"}}]}`))
	got, err := c.Flavors(t.Context())
	want := []inventory.Flavor{{
		ID: "7", Name: "m", Resources: resource.Vector{VCPUs: 1, MemoryMB: 512, DiskGB: 3}, ExtraSpecs: map[string]string{"hw:x": "y"},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !strings.Contains((*asked)[0], "is_public=None") {
		t.Errorf("asked %v", *asked)
	}
}

func TestWhatNovaCannotMeanIsAnErrorAndNoEmptyList(t *testing.T) {
	lists := map[string]func(c *nova.Client) (int, error){
		"services":    func(c *nova.Client) (int, error) { l, err := c.Services(t.Context()); return len(l), err },
		"hypervisors": func(c *nova.Client) (int, error) { l, err := c.Hypervisors(t.Context()); return len(l), err },
		"aggregates":  func(c *nova.Client) (int, error) { l, err := c.Aggregates(t.Context()); return len(l), err },
		"servers": func(c *nova.Client) (int, error) {
			l, err := c.Servers(t.Context(), nova.ServerQuery{})
			return len(l), err
		},
		"flavors": func(c *nova.Client) (int, error) { l, err := c.Flavors(t.Context()); return len(l), err },
	}
	for name, list := range lists {
		for _, wrong := range []string{
			``, `{}`, `null`, `[]`, `<html>`, `{"%s": null}`, `{"%s": {}}`, `{"%s": 7}`, `{"%s": [null]}`, `{"%s": [{}]}`, `{"%s": [7]}`, `{"%s": [`,
			`{"%s": [{"id": "1", "host": "", "name": "n", "vcpus": 1e400}]}`, `{"%s": [{"id": "1", "name": "n", "vcpus": -1, "ram": 1, "disk": 1}]}`,
		} {
			answer := always
			if name == "servers" {
				answer = inCells
			}
			c, _ := reader(t, answer(strings.Replace(wrong, "%s", name, 1)))
			n, err := list(c)
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "the answer of nova is invalid") || n > 0 {
				t.Errorf("%s from %s: %d, %v", name, wrong, n, err)
			}
		}
		c, _ := reader(t, always(`{"services": [], "`+name+`": []}`))
		if n, err := list(c); n != 0 || err != nil {
			t.Errorf("no %s: %d, %v", name, n, err)
		}
	}
}
