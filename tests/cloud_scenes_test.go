package tests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// stage is hosts of a zone of their own on which Nova moves servers. Scenes call them a,
// b, c, in their order.
type stage struct {
	*beside
	way       string // who serves the topic: stock, interpose or replace
	zone      string
	hosts     []string
	sizes     map[string]string // names of amounts of resources: those of a flavor
	providers map[string]string // hosts by the UUID of their providers
	made      []server
	down      []string
	filling   string // a flavor: see whole
}

// stage makes the zone, until the end of the test.
func (b *beside) stage(t *testing.T, way, zone string, hosts ...string) *stage {
	t.Helper()
	s := &stage{beside: b.with(t), way: way, zone: zone, hosts: hosts, sizes: map[string]string{}, providers: map[string]string{}}
	s.aggregate(zone)
	s.change(zone, "set_metadata", map[string]any{"metadata": map[string]any{"availability_zone": zone}})
	for _, host := range hosts {
		s.change(zone, "add_host", map[string]any{"host": host})
	}
	t.Cleanup(func() { // or the hosts could not leave the zone, and later tests not have them
		s.remove(s.made...)
		for _, host := range s.down {
			s.forcesDown(host, false)
		}
	})
	s.learnSizes()
	return s
}

// learnSizes gives the resources of the flavors their names: those of reservations are
// "reserved".
func (s *stage) learnSizes() {
	s.t.Helper()
	var list struct {
		Flavors []struct {
			Name             string
			VCPUs, RAM, Disk int64
		}
	}
	s.admin.Must(http.MethodGet, "compute", "/flavors/detail?is_public=None", nil, &list)
	for _, f := range list.Flavors {
		s.sizes[fmt.Sprint(map[string]int64{"VCPU": f.VCPUs, "MEMORY_MB": f.RAM, "DISK_GB": f.Disk})] = short(f.Name)
	}
}

// whole gives a flavor that has all of a host's disk, of which Nova gives nothing twice.
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

// diskOfHost is what each host of the lab has, in GB.
const diskOfHost = 1028

// short gives the name of a flavor in scenes.
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

// pinned are fields with which Nova makes a server on a host: it asks for no other later.
func (s *stage) pinned(host string) map[string]any {
	return map[string]any{"availability_zone": s.zone, "host": host}
}

// makes has Nova make a server in the zone, and gives it when it runs or has failed to.
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

// leaves deletes servers, and returns when they are gone.
func (s *stage) leaves(list ...server) {
	s.t.Helper()
	s.remove(list...)
	s.made = slices.DeleteFunc(s.made, func(one server) bool {
		return slices.ContainsFunc(list, func(gone server) bool { return gone.ID == one.ID })
	})
}

// operation is what Nova is asked to do with a server, and the scene that comes of it;
// without one it is left to itself.
type operation struct {
	what string
	do   map[string]any // the action
	ends string
	// why is what is said of one that is refused, where Almanac decides.
	why string
}

// plays has Nova carry the operations out, one after the other.
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
			s.t.Errorf("%s: it is said to be refused since %q, want %q", one.what, said, one.why)
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

// finds waits for the scene of a server that was made.
func (s *stage) finds(of server, scene string) server {
	s.t.Helper()
	s.shows(of, "make a server", scene)
	return of
}

// scene says what a server is, and what it and its migrations have in Placement:
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
	var moves struct{ Migrations []struct{ UUID string } }
	s.admin.Must(http.MethodGet, "compute", "/os-migrations?instance_uuid="+id, nil, &moves)
	for _, one := range moves.Migrations {
		parts = append(parts, s.holdings("migration", one.UUID)...)
	}
	return strings.Join(parts, "; ")
}

// holdings says what a consumer has in Placement, by host.
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

// providerOf gives the host of a provider, be it a child of the host's.
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

// refusal is what Almanac has kept, and what Nova tells, of the last action with a
// server.
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
		s.t.Fatalf("Nova knows of nothing that was done with %s", of.ID)
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

// otherImage makes an image with properties, until the end of the test, and gives its id.
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

// actsAt is an action of a version of Nova's API that tests do not use otherwise.
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

// sends is a request of an admin that has to succeed.
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

// forcesDown tells Nova that the nova-compute of a host is down, or may be up again. It
// may not while servers are there that were evacuated, and it was not started again since.
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
