// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// bestEffortOn enables best-effort work with shorter times than real hosts need.
func bestEffortOn() []string {
	return []string{
		"OS_BESTEFFORT__ENABLED=true", "OS_BESTEFFORT__WAKEUP_INTERVAL=1", "OS_BESTEFFORT__BOOT_TIME=1", "OS_BESTEFFORT__SHUTDOWN_TIME=0",
		"OS_BESTEFFORT__OPERATION_TIME=4", "OS_BESTEFFORT__SUSPEND_RATE=1000000", "OS_BESTEFFORT__RESUME_RATE=1000000",
		"OS_BESTEFFORT__SCHEDULING_THRESHOLD_FACTOR=0", "OS_BESTEFFORT__RETRY_INTERVAL=1", "OS_RESERVATION__EVICTION_TIME=6",
	}
}

// A server runs until a reservation of the only host of the pool, is suspended while the owner
// has the whole host, continues after it, and ends. almanacd is killed at the critical moments.
//
//make:test-cloud
func TestBestEffortWorkMakesWayForAReservationAndGoesOnAfterIt(t *testing.T) {
	labtest.Long(t)
	behind := labtest.SchedulerBehind(t)
	b := besideOpenStack(t, append(built.AtTopic(t, built.Interpose, behind), bestEffortOn()...)...)
	built.TakeTopic(t)
	host := b.cloud.Hosts(t)[0]
	whole := b.sized("whole", diskOfHost, nil)
	b.pool(host)

	b.as(labtest.Demo, "besteffort", "submit", "render", "--flavor", "m1.tiny", "--image", "tiny", "--network", "none", "--duration", "36s")
	var id string
	b.await("it runs", func() bool {
		show := b.bestEffort(b.demo, "render")
		id = show.VMs[0].ServerID
		return show.Status == "running" && show.VMs[0].Status == "running"
	})
	b.is(id, host, "ACTIVE", false)
	r := b.reserve(b.demo2, v1.ReservationRequest{
		Name: "exam", HostProperties: among(host), Quantity: new(1), StartTime: new(b.soon(26)), Duration: new(v1.Duration(3600)),
	})
	if s := b.seenAs(labtest.Demo, id); s.Project != b.projectOf(labtest.Demo) || !strings.HasPrefix(s.Name, "render") {
		t.Errorf("the server is %+v; want a server of project demo", s)
	}
	b.bestEffortRestarts()

	b.await("it is suspended", func() bool { return b.bestEffort(b.demo, "render").VMs[0].Status == "suspended" })
	b.bestEffortRestarts()
	if held := b.heldBy(id); len(held) != 0 {
		t.Errorf("the suspended server has %v in Placement", held)
	}
	if s := b.seenAs(labtest.Demo, id); s.Status != "SUSPENDED" {
		t.Errorf("openstack shows the owner the status %s", s.Status)
	}
	if status := b.demo.Do(http.MethodPost, "compute", "/servers/"+id+"/action", map[string]any{"resume": nil}, nil); status != http.StatusConflict {
		t.Errorf("the owner resumes the server on a reserved host: status %d", status)
	}
	b.becomes(r.ID, "active")
	b.placed(b.demo2, []string{host}, 1, wish{name: "exam", flavor: whole, hints: map[string]any{"reservation": r.ID}})
	b.is(id, host, "SUSPENDED", true)
	b.healthy()
	b.endsSoon(r.ID)

	b.await("it goes on", func() bool { return b.bestEffort(b.demo, "render").VMs[0].Status == "running" })
	b.bestEffortRestarts()
	if held := b.heldBy(id); len(held) != 1 {
		t.Errorf("the resumed server has %v in Placement", held)
	}
	b.await("its owner may use the server again", func() bool { return !b.seen(id).Locked })
	b.is(id, host, "ACTIVE", false)

	b.await("it ends", func() bool { return b.bestEffort(b.demo, "render").Status == "done" })
	if !b.deleted(id) {
		t.Error("the server exists after its end")
	}
	if ran := b.bestEffort(b.demo, "render").VMs[0].Ran; ran < 32 || ran > 36+v1.Duration(built.Patience/time.Second) {
		t.Errorf("the server ran %v, want about 36s", ran)
	}
	out := b.as(labtest.Demo, "besteffort", "show", "render")
	if !strings.Contains(out, "done") || !strings.Contains(out, "its time was up") {
		t.Errorf("almanac shows\n%s", out)
	}
	b.noTrusts()
}

// The work is not deleted although its host had to be cleared long before.
//
//make:test-cloud
func TestBestEffortWorkIsSuspendedForAReservationThatStartsAtOnce(t *testing.T) {
	labtest.Long(t)
	behind := labtest.SchedulerBehind(t)
	slow := append(bestEffortOn(), "OS_BESTEFFORT__WAKEUP_INTERVAL=20", "OS_RESERVATION__EVICTION_TIME=120")
	b := besideOpenStack(t, append(built.AtTopic(t, built.Interpose, behind), slow...)...)
	built.TakeTopic(t)
	host := b.cloud.Hosts(t)[0]
	b.pool(host)
	b.as(labtest.Demo, "besteffort", "submit", "render", "--flavor", "m1.tiny", "--image", "tiny", "--network", "none", "--duration", "10m")
	b.await("it runs", func() bool { return b.bestEffort(b.demo, "render").VMs[0].Status == "running" })
	r := b.reserve(b.demo2, v1.ReservationRequest{
		Name: "now", HostProperties: among(host), Quantity: new(1), StartTime: new(b.soon(3)), Duration: new(v1.Duration(3600)),
	})
	b.await("it is suspended", func() bool {
		vm := b.bestEffort(b.demo, "render").VMs[0]
		if vm.Status == "waiting" || vm.Status == "stopping" {
			t.Fatalf("the VM is %s: %s", vm.Status, vm.Reason)
		}
		return vm.Status == "suspended"
	})
	b.becomes(r.ID, "active")
	b.as(labtest.Demo, "besteffort", "cancel", "render")
	b.await("its server is gone", func() bool { return len(b.named("render")) == 0 })
	b.noTrusts()
}

// The work runs under Almanac's own scheduler and only in the pool. Another project's hint
// admits no server there.
//
//make:test-cloud
func TestBestEffortWorkIsPlacedWhereItIsPlanned(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""), bestEffortOn()...)...)
	built.TakeTopic(t)
	hosts := b.cloud.Hosts(t)
	b.pool(hosts[3])
	script := filepath.Join(b.Folder, "work.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.as(labtest.Demo, "besteffort", "submit", "three", "--flavor", "m1.tiny", "--image", "tiny", "--network", "none", "--duration", "1h", "--vms", "3",
		"--user-data", script)
	var shown v1.BestEffort
	b.await("they run", func() bool {
		shown = b.bestEffort(b.admin, b.bestEffort(b.demo, "three").ID)
		return !slices.ContainsFunc(shown.VMs, func(vm v1.BestEffortVM) bool { return vm.Status != "running" })
	})
	for _, vm := range shown.VMs {
		if vm.Host != hosts[3] {
			t.Errorf("Almanac reports a server on %s, want %s", vm.Host, hosts[3])
		}
		b.is(vm.ServerID, hosts[3], "ACTIVE", false)
		if got := b.seen(vm.ServerID).UserData; got != "IyEvYmluL3NoCg==" {
			t.Errorf("the server got %q", got)
		}
	}
	b.unplaced(b.demo2, wish{name: "another's", hints: map[string]any{"almanac:besteffort": shown.VMs[0].ID}})
	b.unplaced(b.demo, wish{name: "of one that runs", hints: map[string]any{"almanac:besteffort": shown.VMs[0].ID}})

	if _, stderr, exit := built.Almanac(t, b.Folder, append(b.cloud.Environment(labtest.Demo2), "ALMANAC_URL="+b.URL), "besteffort", "cancel", shown.ID); exit != 3 {
		t.Errorf("another project cancels the request: exit code %d, %s", exit, stderr)
	}
	b.demo.Must(http.MethodDelete, "compute", "/servers/"+shown.VMs[0].ServerID, nil, nil)
	b.await("the VM whose server its owner deleted is done, and does not start again", func() bool {
		vm := b.bestEffort(b.demo, "three").VMs[0]
		return vm.Status == "done" && strings.Contains(vm.Reason, "deleted by a user of its project")
	})
	b.as(labtest.Demo, "besteffort", "cancel", "three")
	b.as(labtest.Demo, "besteffort", "cancel", shown.ID)
	b.await("its servers are gone", func() bool { return len(b.named("three")) == 0 && b.bestEffort(b.demo, shown.ID).EndedAt != nil })
	b.noTrusts()
}

// bestEffortRestarts kills almanacd and starts it again. If the test fails, it logs what
// almanacd did.
func (b *beside) bestEffortRestarts() {
	b.t.Helper()
	b.crash()
	b.start()
	s := b.Service
	b.t.Cleanup(func() {
		for line := range strings.Lines(s.Log.String()) {
			if b.t.Failed() && strings.Contains(line, "almanac.besteffort") {
				b.t.Log(strings.TrimSpace(line))
			}
		}
	})
}

// bestEffort returns best-effort work as the command line shows it.
func (b *beside) bestEffort(who *tenant, what string) (shown v1.BestEffort) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.as(who.user, "besteffort", "show", what, "-f", "json")), &shown); err != nil || len(shown.VMs) == 0 {
		b.t.Fatalf("show %s: %v", what, err)
	}
	return shown
}

// seenServer is a server as Nova shows it to an admin.
type seenServer struct {
	ID, Status string
	Locked     bool
	Host       string `json:"OS-EXT-SRV-ATTR:host"`
	UserData   string `json:"OS-EXT-SRV-ATTR:user_data"`
}

func (b *beside) seen(id string) seenServer {
	b.t.Helper()
	var found struct{ Server seenServer }
	b.admin.Must(http.MethodGet, "compute", "/servers/"+id, nil, &found)
	return found.Server
}

// seenAs returns a server as the openstack client shows it to its owner.
func (b *beside) seenAs(u labtest.User, id string) (s struct {
	Name, Status string
	Project      string `json:"project_id"`
}) {
	b.t.Helper()
	b.cloud.OpenstackJSON(b.t, u, &s, "server", "show", id)
	return s
}

func (b *beside) is(id, host, status string, locked bool) {
	b.t.Helper()
	if s := b.seen(id); s.Host != host || s.Status != status || s.Locked != locked {
		b.t.Errorf("the server is %+v, want %s on %s, locked: %v", s, status, host, locked)
	}
}

// heldBy returns the providers from which a consumer holds resources.
func (b *beside) heldBy(id string) (providers []string) {
	b.t.Helper()
	var found struct{ Allocations map[string]any }
	b.admin.Must(http.MethodGet, "placement", "/allocations/"+id, nil, &found)
	for provider := range found.Allocations {
		providers = append(providers, provider)
	}
	return providers
}

func (b *beside) projectOf(u labtest.User) string {
	b.t.Helper()
	var found struct{ ID string }
	b.cloud.OpenstackJSON(b.t, labtest.Admin, &found, "project", "show", u.Project)
	return found.ID
}

// noTrusts waits until no trust is left.
func (b *beside) noTrusts() {
	b.t.Helper()
	b.await("the trusts are ended", func() bool {
		return strings.TrimSpace(b.cloud.Openstack(b.t, labtest.Admin, "trust", "list", "-f", "value", "-c", "ID")) == ""
	})
}
