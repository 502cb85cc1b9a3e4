// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"slices"
	"strings"
)

// server is a server of Nova as an admin sees it.
type server struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Host   string `json:"OS-EXT-SRV-ATTR:host"`
	Task   string `json:"OS-EXT-STS:task_state"`
	Fault  struct{ Message string }
}

// ask requests a server from Nova and returns its id, or the status of a refusal. Only an admin
// may name a host; an empty host stands for any.
func (b *beside) ask(who *tenant, name, flavor, host string) (id string, status int) {
	b.t.Helper()
	wanted := map[string]any{"name": name, "flavorRef": flavor, "imageRef": b.image(), "networks": "none"}
	if host != "" {
		wanted["host"] = host
	}
	var made struct{ Server struct{ ID string } }
	status = who.Do(http.MethodPost, "compute", "/servers", map[string]any{"server": wanted}, &made)
	return made.Server.ID, status
}

// boot requests a server and fails the test if Nova refuses it; see settled.
func (b *beside) boot(who *tenant, name, flavor, host string) (id string) {
	b.t.Helper()
	id, status := b.ask(who, name, flavor, host)
	if status != http.StatusAccepted {
		b.t.Fatalf("Nova refuses server %s of flavor %s: status %d", name, flavor, status)
	}
	return id
}

// settled waits until servers are created or have failed.
func (b *beside) settled(ids ...string) (list []server) {
	b.t.Helper()
	for _, id := range ids {
		var s server
		b.await("server "+id+" runs or has failed", func() bool {
			s = b.look(id)
			return s.Task == "" && (s.Status == "ACTIVE" || s.Status == "ERROR")
		})
		list = append(list, s)
	}
	return list
}

// look returns a server; a deleted one has no ID.
func (b *beside) look(id string) server {
	b.t.Helper()
	var found struct{ Server server }
	if status := b.admin.Do(http.MethodGet, "compute", "/servers/"+id, nil, &found); status >= http.StatusBadRequest && status != http.StatusNotFound {
		b.t.Fatalf("look for server %s: status %d", id, status)
	}
	return found.Server
}

// reach waits until servers have a status; with "", until they are gone.
func (b *beside) reach(status string, ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		b.await("server "+id+" becomes "+status, func() bool { return b.look(id).Status == status })
	}
}

// runOn fails the test unless each server runs on one of the hosts.
func (b *beside) runOn(hosts []string, servers ...server) {
	b.t.Helper()
	for _, s := range servers {
		if s.Status != "ACTIVE" || !slices.Contains(hosts, s.Host) {
			b.t.Errorf("server %s is %s on %q, want it to run on one of %v; Nova's fault: %s", s.Name, s.Status, s.Host, hosts, s.Fault.Message)
		}
	}
}

func (b *beside) image() string {
	b.t.Helper()
	var found struct{ Images []struct{ ID string } }
	b.admin.Must(http.MethodGet, "image", "/v2/images?name=tiny", nil, &found)
	if len(found.Images) == 0 {
		b.t.Fatal("the lab has no image tiny")
	}
	return found.Images[0].ID
}

// tiny is the id of the flavor m1.tiny.
const tiny = "1"

// aggregates returns the hosts of Nova's aggregates by name.
func (b *beside) aggregates() map[string][]string {
	b.t.Helper()
	var list struct {
		Aggregates []struct {
			Name  string
			Hosts []string
		}
	}
	b.admin.Must(http.MethodGet, "compute", "/os-aggregates", nil, &list)
	found := map[string][]string{}
	for _, a := range list.Aggregates {
		slices.Sort(a.Hosts)
		found[a.Name] = a.Hosts
	}
	return found
}

// traceless waits until the cloud has nothing of the reservation.
func (b *beside) traceless(id string) {
	b.t.Helper()
	b.await("nothing is left of reservation "+id, func() bool {
		_, there := b.aggregates()["almanac-reservation-"+id]
		return !there && b.admin.gone("compute", "/flavors/"+id) &&
			b.admin.gone("placement", "/traits/"+ownName(id)) && b.admin.gone("placement", "/resource_classes/"+ownName(id))
	})
}

// ownName returns the name of a reservation's trait and resource class.
func ownName(id string) string {
	return "CUSTOM_ALMANAC_RESERVATION_" + strings.ToUpper(strings.ReplaceAll(id, "-", "_"))
}
