// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	source "github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
)

// odd is a Nova whose list of hypervisors lacks some hosts. Nova cuts the page first and then
// drops those hosts, and only a full page has a next one
// (nova/api/openstack/compute/hypervisors.py, _get_hypervisors). A test cannot make a lab
// do that on demand.
type odd struct {
	hosts   int
	missing map[int]bool
	serving bool // the missing hosts have a service
	servers []object
	// microversion is the highest that it offers; "" stands for 2.100.
	microversion string
}

func (o *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := func(i int) string { return fmt.Sprintf("cmp-%04d", i) }
	list := func(kind string, make func(i int) object) object {
		entries := []object{}
		for i := range o.hosts {
			if kind != "services" || o.serving || !o.missing[i] {
				entries = append(entries, make(i))
			}
		}
		return object{kind: entries}
	}
	var answer object
	switch path := r.URL.Path; {
	case path == "/v2.1/":
		answer = object{"version": object{"version": cmp.Or(o.microversion, "2.100"), "min_version": "2.1"}}
	case path == "/":
		answer = object{"versions": []object{{"max_version": "1.39", "min_version": "1.0"}}}
	case strings.HasSuffix(path, "/os-services"):
		answer = list("services", func(i int) object {
			return object{"id": name(i), "host": name(i), "zone": "nova", "state": "up", "status": "enabled"}
		})
	case strings.HasSuffix(path, "/os-hypervisors/detail"):
		answer = o.hypervisors(r, name)
	case strings.HasSuffix(path, "/os-aggregates"):
		answer = object{"aggregates": []object{}}
	case strings.HasSuffix(path, "/servers/detail"):
		answer = object{"servers": o.changed(r.URL.Query().Get("changes-since"))}
	case path == "/resource_providers":
		answer = list("resource_providers", func(i int) object {
			return object{"uuid": name(i), "name": name(i), "generation": 1, "root_provider_uuid": name(i)}
		})
	default: // everything that Placement returns for a provider
		answer = object{
			"inventories": object{"VCPU": object{"total": 8, "reserved": 0, "allocation_ratio": 1}},
			"usages":      object{}, "traits": []string{}, "provider_summaries": object{},
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (o *odd) hypervisors(r *http.Request, name func(int) string) object {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	first := 0
	if marker := r.URL.Query().Get("marker"); marker != "" {
		n, _ := strconv.Atoi(strings.TrimPrefix(marker, "cmp-"))
		first = n + 1
	}
	page := []object{}
	for i := first; i < min(first+limit, o.hosts); i++ {
		if !o.missing[i] {
			page = append(page, object{"id": name(i), "hypervisor_hostname": name(i), "hypervisor_type": "QEMU", "service": object{"host": name(i)}})
		}
	}
	answer := object{"hypervisors": page}
	if len(page) == limit {
		answer["hypervisors_links"] = []object{{"rel": "next"}}
	}
	return answer
}

// changed returns the servers that have changed since then, or all of them for an empty since.
func (o *odd) changed(since string) []object {
	servers := []object{}
	for _, s := range o.servers {
		if s["updated"].(string) >= since {
			servers = append(servers, s)
		}
	}
	return servers
}

func over(t *testing.T, o *odd) (*source.Source, *clock) {
	t.Helper()
	return overWith(t, o, source.Options{Log: slog.New(slog.DiscardHandler)})
}

func overWith(t *testing.T, o *odd, options source.Options) (*source.Source, *clock) {
	t.Helper()
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	compute, err := nova.New(anyone{}, openstack.Options{Override: server.URL + "/v2.1"})
	if err != nil {
		t.Fatal(err)
	}
	place, err := placement.New(anyone{}, openstack.Options{Override: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	at := &clock{at: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	options.Now = at.now
	return source.NewSource(compute, place, options), at
}

func count(t *testing.T, s *source.Source) int {
	t.Helper()
	hosts, err := s.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(hosts)
}

func TestAHypervisorThatIsMissingIsLookedForWithEveryReading(t *testing.T) {
	o := &odd{hosts: 5, missing: map[int]bool{2: true}, serving: true}
	s, at := over(t, o)
	if n := count(t, s); n != 4 {
		t.Fatalf("%d hosts while one is not mapped to a cell yet", n)
	}
	o.missing = nil
	at.advance(10 * time.Second)
	if n := count(t, s); n != 5 {
		t.Errorf("%d hosts in the reading after it was mapped", n)
	}

	o.missing = map[int]bool{3: true, 4: true}
	at.advance(source.DefaultFullEvery * time.Second)
	if n := count(t, s); n != 3 {
		t.Fatalf("%d hosts in a full reading while two are missing", n)
	}
	o.missing = nil
	at.advance(10 * time.Second)
	if n := count(t, s); n != 5 {
		t.Errorf("%d hosts in the reading after one that lacked two", n)
	}
}

func TestAComputeNodeWithoutAServiceHidesNoOtherHost(t *testing.T) {
	s, _ := over(t, &odd{hosts: 1200, missing: map[int]bool{7: true, 999: true}})
	if n := count(t, s); n != 1198 {
		t.Errorf("%d hosts of 1198", n)
	}
}

func TestAMoveIsSeenThoughNovasClockIsHoursBehind(t *testing.T) {
	server := func(host string, updated time.Time) object {
		return object{"id": "x", "name": "x", "tenant_id": "p", "user_id": "u", "status": "ACTIVE", "OS-EXT-SRV-ATTR:host": host,
			"created": "2026-01-01T00:00:00Z", "updated": updated.Format(time.RFC3339), "flavor": object{"original_name": "m", "vcpus": 1}}
	}
	o := &odd{hosts: 2}
	s, at := over(t, o)
	novas := func() time.Time { return at.now().Add(-2 * time.Hour) }
	o.servers = []object{server("cmp-0000", novas())}
	count(t, s)
	at.advance(30 * time.Second)
	o.servers = []object{server("cmp-0001", novas())}
	at.advance(30 * time.Second)
	hosts, err := s.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if names, _ := where(hosts, "x"); len(names) != 1 || names[0] != "cmp-0001" {
		t.Errorf("the source shows the server on %v", names)
	}
}

func TestTheReleaseOfNovaIsReadAgainWithEachFullReading(t *testing.T) {
	var log logbook
	board := inventory.NewLiveState()
	o := &odd{hosts: 1, microversion: "2.93"}
	s, at := overWith(t, o, source.Options{
		LiveState: board, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Missing: func(of release.Release) []string { return []string{"the Coffee filter is missing in " + of.Name()} },
	})
	for _, step := range []struct {
		microversion string
		want         release.Release
		logged       []string
	}{
		{"2.93", release.Zed, []string{"the hosts are those of Nova 26 (zed)", "the Coffee filter is missing in zed"}},
		{"2.101", release.Epoxy, []string{"the hosts are those of Nova 31 (epoxy)", "the Coffee filter is missing in epoxy"}},
		{"2.110", release.Newer, []string{"Almanac treats it like that"}},
	} {
		o.microversion = step.microversion
		at.advance(source.DefaultFullEvery * time.Second)
		for range 2 { // the second one reads changes only
			count(t, s)
			at.advance(time.Second)
			if got := board.Load().Nova(); got != step.want {
				t.Errorf("at %s the states are of %v", step.microversion, got)
			}
		}
		for _, sentence := range step.logged {
			if got := strings.Count(log.String(), sentence); got != 1 {
				t.Errorf("the log has %q %d times:\n%s", sentence, got, &log)
			}
		}
		log.text.Reset()
	}
}
