// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// stage is a zone with its own hosts on which Nova moves servers. Scenes call the hosts a, b,
// c, in their order.
type stage struct {
	*beside
	way       string // the scheduler on the topic: stock, interpose or replace
	zone      string
	hosts     []string
	sizes     map[string]string // names for amounts of resources: those of a flavor
	providers map[string]string // hosts by the UUIDs of their providers
	made      []server
	down      []string
	filling   string // a flavor: see whole
}

// stage creates the zone until the test ends.
func (b *beside) stage(t *testing.T, way, zone string, hosts ...string) *stage {
	t.Helper()
	s := &stage{beside: b.with(t), way: way, zone: zone, hosts: hosts, sizes: map[string]string{}, providers: map[string]string{}}
	s.aggregate(zone)
	s.change(zone, "set_metadata", map[string]any{"metadata": map[string]any{"availability_zone": zone}})
	for _, host := range hosts {
		s.change(zone, "add_host", map[string]any{"host": host})
	}
	t.Cleanup(func() { // otherwise the hosts could not leave the zone for later tests
		s.remove(s.made...)
		for _, host := range s.down {
			s.forcesDown(host, false)
		}
	})
	s.learnSizes()
	return s
}

// learnSizes names the resources of each flavor; those of reservations are "reserved".
func (s *stage) learnSizes() {
	s.t.Helper()
	var list struct {
		Flavors []struct {
			Name             string
			VCPUs, RAM, Disk int64
			ExtraSpecs       map[string]string `json:"extra_specs"`
		}
	}
	s.admin.Must(http.MethodGet, "compute", "/flavors/detail?is_public=None", nil, &list)
	for _, f := range list.Flavors {
		if disk, err := strconv.ParseInt(f.ExtraSpecs["resources:DISK_GB"], 10, 64); err == nil { // root_disk is smaller
			f.Disk = disk
		}
		s.sizes[fmt.Sprint(map[string]int64{"VCPU": f.VCPUs, "MEMORY_MB": f.RAM, "DISK_GB": f.Disk})] = short(f.Name)
	}
}

// whole returns a flavor with all of a host's disk, which Nova does not overcommit.
func (s *stage) whole() (id string) {
	s.t.Helper()
	if s.filling != "" {
		return s.filling
	}
	var made struct{ Flavor struct{ ID string } }
	s.admin.Must(http.MethodPost, "compute", "/flavors", map[string]any{"flavor": map[string]any{
		"name": "m1.whole-" + s.zone, "vcpus": 1, "ram": 512, "disk": diskOfHost}}, &made)
	s.t.Cleanup(func() { s.admin.Must(http.MethodDelete, "compute", "/flavors/"+made.Flavor.ID, nil, nil) })
	s.filling = made.Flavor.ID
	s.learnSizes()
	return s.filling
}

// diskOfHost is the disk of each host of the lab, in GB.
const diskOfHost = 1028

// short returns the name of a flavor in scenes.
func short(flavor string) string {
	if strings.HasPrefix(flavor, "reservation:") {
		return "reserved"
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(flavor, "m1."), "-")
	return name
}

func (s *stage) letter(host string) string {
	if i := slices.Index(s.hosts, host); i >= 0 {
		return string(rune('a' + i))
	}
	return "host " + host
}

// pinned returns fields that place a server on a host without binding later moves to it.
func (s *stage) pinned(host string) map[string]any {
	return map[string]any{"availability_zone": s.zone, "host": host}
}

// makes creates a server in the zone, and returns it when it runs or has failed.
func (s *stage) makes(who *tenant, flavor string, fields, hints map[string]any) server {
	s.t.Helper()
	wanted := map[string]any{"name": s.zone, "flavorRef": flavor, "imageRef": s.image(), "networks": "none", "availability_zone": s.zone}
	for name, value := range fields {
		wanted[name] = value
	}
	body := map[string]any{"server": wanted}
	if hints != nil {
		body["os:scheduler_hints"] = hints
	}
	var answer struct{ Server server }
	who.Must(http.MethodPost, "compute", "/servers", body, &answer)
	s.made = append(s.made, answer.Server)
	return s.settled(answer.Server.ID)[0]
}

// leaves deletes servers and returns when they are gone.
func (s *stage) leaves(list ...server) {
	s.t.Helper()
	s.remove(list...)
	s.made = slices.DeleteFunc(s.made, func(one server) bool {
		return slices.ContainsFunc(list, func(gone server) bool { return gone.ID == one.ID })
	})
}

// operation is an action on a server and the scene that follows. With an empty ends, plays does
// not wait for a scene.
type operation struct {
	what string
	do   map[string]any // the action
	ends string
	// why is the reason of a refusal by Almanac.
	why string
}

// plays carries out the operations one after the other.
func (s *stage) plays(of server, script ...operation) {
	s.t.Helper()
	for _, one := range script {
		s.admin.Must(http.MethodPost, "compute", "/servers/"+of.ID+"/action", one.do, nil)
		if one.ends != "" {
			s.shows(of, one.what, one.ends)
		}
		if one.why == "" || s.way == stock {
			continue
		}
		if said := s.refusal(of); !strings.Contains(said, one.why) {
			s.t.Errorf("%s: the reason of the refusal is %q, want %q", one.what, said, one.why)
		}
	}
}

// shows waits for the scene.
func (s *stage) shows(of server, what, scene string) {
	s.t.Helper()
	shown := ""
	defer func() {
		if shown != scene {
			s.t.Logf("%s:\n got %s\nwant %s", what, shown, scene)
		}
	}()
	s.await(what, func() bool {
		shown = s.scene(of.ID)
		return shown == scene
	})
}

// finds waits for the scene of a new server.
func (s *stage) finds(of server, scene string) server {
	s.t.Helper()
	s.shows(of, "make a server", scene)
	return of
}

// scene describes a server, and the allocations of it and its migrations:
// "VERIFY_RESIZE small on b; server small of b; migration tiny of a".
func (s *stage) scene(id string) string {
	s.t.Helper()
	var found struct {
		Server struct {
			server
			Flavor struct {
				Name string `json:"original_name"`
			}
		}
	}
	s.admin.Must(http.MethodGet, "compute", "/servers/"+id, nil, &found)
	words := []string{found.Server.Status, short(found.Server.Flavor.Name)}
	if found.Server.Host != "" {
		words = append(words, "on", s.letter(found.Server.Host))
	}
	if found.Server.Task != "" {
		words = append(words, "while", found.Server.Task)
	}
	parts := append([]string{strings.Join(words, " ")}, s.holdings("server", id)...)
	for _, move := range s.movesOf(id) {
		parts = append(parts, s.holdings("migration", move)...)
	}
	return strings.Join(parts, "; ")
}

// holdings describes the allocations of a consumer, by host.
func (s *stage) holdings(name, consumer string) (list []string) {
	s.t.Helper()
	var found struct {
		Allocations map[string]struct{ Resources map[string]int64 }
	}
	s.admin.Must(http.MethodGet, "placement", "/allocations/"+consumer, nil, &found)
	for provider, has := range found.Allocations {
		host := s.letter(s.providerOf(provider))
		for class, amount := range has.Resources {
			if strings.HasPrefix(class, "CUSTOM_ALMANAC_RESERVATION_") {
				list = append(list, fmt.Sprintf("%s %d slice of %s", name, amount, host))
				delete(has.Resources, class)
			}
		}
		if len(has.Resources) > 0 {
			size := fmt.Sprint(has.Resources)
			list = append(list, fmt.Sprintf("%s %s of %s", name, cmp.Or(s.sizes[size], size), host))
		}
	}
	slices.Sort(list)
	return list
}

// providerOf returns the host of a provider, which may be a child of the host's provider.
func (s *stage) providerOf(id string) string {
	s.t.Helper()
	if host, known := s.providers[id]; known {
		return host
	}
	type provider struct {
		Name string
		Root string `json:"root_provider_uuid"`
	}
	var child, root provider
	s.admin.Must(http.MethodGet, "placement", "/resource_providers/"+id, nil, &child)
	s.admin.Must(http.MethodGet, "placement", "/resource_providers/"+child.Root, nil, &root)
	s.providers[id] = root.Name
	return root.Name
}

// refusal returns the reason that Almanac has stored for the last action on a server, and
// Nova's details of that action.
func (s *stage) refusal(of server) string {
	s.t.Helper()
	var said []string
	s.await("the decision about "+of.ID+" is kept", func() bool {
		found, err := s.admin.almanac.Decisions(s.t.Context(), of.ID)
		if err != nil || len(found.Decisions) == 0 {
			return false
		}
		said = []string{found.Decisions[0].Reason}
		return said[0] != ""
	})
	var actions struct {
		List []struct {
			Request string `json:"request_id"`
		} `json:"instanceActions"`
	}
	s.admin.Must(http.MethodGet, "compute", "/servers/"+of.ID+"/os-instance-actions", nil, &actions)
	if len(actions.List) == 0 {
		s.t.Fatalf("Nova has no action of server %s", of.ID)
	}
	var last struct {
		Action struct {
			Events []struct{ Details string }
		} `json:"instanceAction"`
	}
	s.admin.Must(http.MethodGet, "compute", "/servers/"+of.ID+"/os-instance-actions/"+actions.List[0].Request, nil, &last)
	for _, event := range last.Action.Events {
		said = append(said, event.Details)
	}
	return strings.Join(said, "\n")
}

// otherImage creates an image with properties until the test ends, and returns its id.
func (s *stage) otherImage(properties map[string]any) (id string) {
	s.t.Helper()
	wanted := map[string]any{"name": "other", "disk_format": "raw", "container_format": "bare", "visibility": "public", "min_disk": 1}
	for name, value := range properties {
		wanted[name] = value
	}
	var made struct{ ID string }
	s.admin.Must(http.MethodPost, "image", "/v2/images", wanted, &made)
	s.t.Cleanup(func() { s.admin.Do(http.MethodDelete, "image", "/v2/images/"+made.ID, nil, nil) })
	s.sends(http.MethodPut, "image", "/v2/images/"+made.ID+"/file", http.Header{"Content-Type": {"application/octet-stream"}}, make([]byte, 4096))
	return made.ID
}

// actsAt carries out an action at a microversion that other tests do not use.
func (s *stage) actsAt(version string, of server, action map[string]any) {
	s.t.Helper()
	body, err := json.Marshal(action)
	if err != nil {
		s.t.Fatal(err)
	}
	s.sends(http.MethodPost, "compute", "/servers/"+of.ID+"/action", http.Header{
		"Content-Type": {"application/json"}, "OpenStack-API-Version": {"compute " + version},
	}, body)
}

// sends sends a request of an admin and fails the test if it fails.
func (s *stage) sends(method, service, path string, header http.Header, body []byte) {
	s.t.Helper()
	request, err := http.NewRequest(method, s.admin.Endpoint(service)+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header = header
	request.Header.Set("X-Auth-Token", s.cloud.Token(s.t, labtest.Admin))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if said, _ := io.ReadAll(answer.Body); answer.StatusCode >= http.StatusBadRequest {
		s.t.Fatalf("%s %s: %s\n%s", method, path, answer.Status, said)
	}
}

// forcesDown tells Nova that the nova-compute of a host is down, or may be up again. Nova refuses
// the latter while evacuated servers remain there and the nova-compute has not restarted.
func (s *stage) forcesDown(host string, down bool) {
	s.t.Helper()
	var found struct{ Services []struct{ ID string } }
	s.admin.Must(http.MethodGet, "compute", "/os-services?binary=nova-compute&host="+host, nil, &found)
	if len(found.Services) != 1 {
		s.t.Fatalf("Nova has %d nova-computes on %s", len(found.Services), host)
	}
	s.down = slices.DeleteFunc(s.down, func(other string) bool { return other == host })
	if down {
		s.down = append(s.down, host)
	}
	s.admin.Must(http.MethodPut, "compute", "/os-services/"+found.Services[0].ID, map[string]any{"forced_down": down}, nil)
}
