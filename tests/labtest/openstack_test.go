// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// server is a server as the openstack client shows it.
type server struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Host   string `json:"OS-EXT-SRV-ATTR:host"`
}

// newServer creates a server on the host and deletes it after the test.
func newServer(t *testing.T, cloud labtest.LabCloud, host string) server {
	t.Helper()
	var made server
	cloud.OpenstackJSON(t, labtest.Admin, &made, "server", "create", "--nic", "none", "--flavor", "m1.tiny",
		"--image", "tiny", "--host", host, "--wait", "labtest")
	t.Cleanup(func() { cloud.Openstack(t, labtest.Admin, "server", "delete", "--wait", made.ID) })
	return made
}

func TestAKilledComputeIsSeenDownAndComesBackWithItsServers(t *testing.T) {
	cloud := labtest.OpenStack(t)
	hosts := cloud.Hosts(t)
	last := hosts[len(hosts)-1]
	made := newServer(t, cloud, last)
	if made.Status != "ACTIVE" || made.Host != last {
		t.Fatalf("server %+v, want it ACTIVE on %s", made, last)
	}

	labtest.KillCompute(t, last)
	if states := computeStates(t, cloud); states[last] != "down" || states[hosts[0]] != "up" {
		t.Errorf("states %v, want only %s down", states, last)
	}
	labtest.ReviveCompute(t, last)
	if states := computeStates(t, cloud); states[last] != "up" {
		t.Errorf("states %v, want %s up", states, last)
	}
	cloud.Openstack(t, labtest.Admin, "server", "stop", made.ID)
	for tries := 0; made.Status != "SHUTOFF"; tries++ {
		if tries == 10 {
			t.Fatalf("server %+v, want it SHUTOFF after it was stopped", made)
		}
		cloud.OpenstackJSON(t, labtest.Admin, &made, "server", "show", made.ID)
	}
}

func computeStates(t *testing.T, cloud labtest.LabCloud) map[string]string {
	t.Helper()
	var services []struct{ Host, State string }
	cloud.OpenstackJSON(t, labtest.Admin, &services, "compute", "service", "list", "--service", "nova-compute")
	states := map[string]string{}
	for _, service := range services {
		states[service.Host] = service.State
	}
	return states
}

func TestAStoppedServiceIsBackAfterItsTest(t *testing.T) {
	cloud := labtest.OpenStack(t)
	for name, url := range map[string]string{"nova-api": cloud.Compute, "placement": cloud.Placement} {
		t.Run(name, func(t *testing.T) {
			labtest.StopService(t, name)
			if reply, err := http.Get(url); err == nil {
				reply.Body.Close()
				t.Errorf("%s answers %s although it is stopped", name, reply.Status)
			}
		})
		reply, err := http.Get(url)
		if err != nil {
			t.Fatalf("%s after the test that stopped it: %v", name, err)
		}
		reply.Body.Close()
	}
}

func TestAMeddlerStandsBeforeNova(t *testing.T) {
	cloud := labtest.OpenStack(t)
	nova := labtest.Interpose(t, cloud.Compute)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, nova.URL+"/os-services", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", cloud.Token(t, labtest.Admin))
	var got []int
	for _, wrong := range []int{0, http.StatusBadGateway} {
		if wrong != 0 {
			nova.Meddle("GET /v2.1/os-services", labtest.Status(wrong))
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		got = append(got, reply.StatusCode)
	}
	if !slices.Equal(got, []int{http.StatusOK, http.StatusBadGateway}) {
		t.Errorf("status %v, want Nova's 200 and then 502", got)
	}
}
