// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/tests/blazartest"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

const (
	wholeLeases  = 3  // active leases of a host each, with a server
	sliceLeases  = 17 // active leases of an instance each, with a server
	bookedLeases = 10 // pending leases, made by the API
	storedLeases = 170
)

// handover is a Blazar that Almanac takes over.
type handover struct {
	*beside
	database      string        // Blazar's
	second        string        // a database for Almanac, empty
	demos, admins *labtest.REST // of Blazar
	hosts         []string      // Blazar's ids
}

// leases returns the list of a user, by id.
func leases(at *labtest.REST) map[string]blazartest.ShownLease {
	var list struct{ Leases []blazartest.ShownLease }
	at.Must(http.MethodGet, "reservation", "/leases", nil, &list)
	byID := make(map[string]blazartest.ShownLease, len(list.Leases))
	for _, l := range list.Leases {
		byID[l.ID] = l
	}
	return byID
}

// almanacs returns Almanac's list of leases, in Blazar's form, by id.
func (h *handover) almanacs() map[string]blazartest.ShownLease {
	h.t.Helper()
	at := slices.IndexFunc(h.settings, func(setting string) bool { return strings.HasPrefix(setting, connection) })
	db, err := store.Open(h.t.Context(), store.Options{Connection: strings.TrimPrefix(h.settings[at], connection), NewToken: rand.Text})
	if err != nil {
		h.t.Fatal(err)
	}
	defer db.Close()
	states, err := db.LeaseStates(h.t.Context(), reservation.LeaseQuery{ProjectID: h.demo.ProjectID})
	if err != nil {
		h.t.Fatal(err)
	}
	var ids []string
	for _, state := range states {
		ids = append(ids, state.ID)
	}
	list, err := db.LeasesOf(h.t.Context(), ids)
	if err != nil {
		h.t.Fatal(err)
	}
	byID := make(map[string]blazartest.ShownLease, len(list))
	for i := range list {
		text, err := json.Marshal(blazar.LeaseOf(&list[i], span.At(time.Now())))
		var shown blazartest.ShownLease
		if err = errors.Join(err, json.Unmarshal(text, &shown)); err != nil {
			h.t.Fatal(err)
		}
		byID[shown.ID] = shown
	}
	return byID
}

// connection begins the setting that names Almanac's database.
const connection = "OS_DATABASE__CONNECTION="

// minuteOf is how Blazar's clients write times.
func minuteOf(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }

// lease makes a lease and returns its id and that of its reservation.
func (h *handover) lease(name, start string, end time.Time, wanted map[string]any) (lease, own string) {
	h.t.Helper()
	var made struct{ Lease blazartest.ShownLease }
	h.demos.Must(http.MethodPost, "reservation", "/leases", map[string]any{
		"name": name, "start_date": start, "end_date": minuteOf(end), "reservations": []any{wanted}, "events": []any{},
	}, &made)
	return made.Lease.ID, made.Lease.Reservations[0].ID
}

func wholeHost() map[string]any {
	return map[string]any{"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": `["==", "$gpu", "True"]`}
}

func slice() map[string]any {
	return map[string]any{"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 64, "disk_gb": 1, "amount": 1, "affinity": nil, "resource_properties": ""}
}

// enroll adds the lab's hosts to Blazar's pool.
func (h *handover) enroll() {
	h.t.Helper()
	for _, name := range h.cloud.Hosts(h.t) {
		var made struct{ Host struct{ ID string } }
		h.admins.Must(http.MethodPost, "reservation", "/os-hosts", map[string]any{"name": name, "gpu": "True"}, &made)
		h.hosts = append(h.hosts, made.Host.ID)
	}
}

// activate makes the active leases and boots a server in each. It returns the servers by lease. The
// leases start one after the other: of those that Blazar starts together, some fail, because it does not
// repeat a change of an inventory that Placement refuses with 409.
func (h *handover) activate() map[string]string {
	h.t.Helper()
	tomorrow, reservations := time.Now().Add(24*time.Hour), make(map[string]string)
	for i := range wholeLeases + sliceLeases {
		wanted := slice()
		if i < wholeLeases {
			wanted = wholeHost()
		}
		id, own := h.lease(fmt.Sprint("active-", i), "now", tomorrow, wanted)
		reservations[id] = own
		h.within(5*time.Minute, time.Second, "lease "+id+" is active", func() bool { return leases(h.demos)[id].Status == "ACTIVE" })
	}
	servers := make(map[string]string)
	listed := leases(h.demos)
	for _, id := range slices.Sorted(maps.Keys(reservations)) {
		wanted := map[string]any{"name": "in-" + id, "imageRef": h.image(), "networks": "none", "flavorRef": reservations[id]}
		if listed[id].Reservations[0].ResourceType == "physical:host" {
			wanted["flavorRef"], wanted["availability_zone"] = tiny, "blazar_"+reservations[id]
		}
		var made struct{ Server struct{ ID string } }
		h.demo.Must(http.MethodPost, "compute", "/servers", map[string]any{"server": wanted}, &made)
		servers[id] = made.Server.ID
	}
	for _, s := range h.settled(slices.Collect(maps.Values(servers))...) {
		if s.Status != "ACTIVE" {
			h.t.Fatalf("server %s: %s", s.Name, s.Fault.Message)
		}
	}
	return servers
}

// book makes the pending leases, the most of them as rows.
func (h *handover) book() {
	h.t.Helper()
	day := time.Now().Truncate(24 * time.Hour)
	for i := range bookedLeases {
		start := day.Add(48*time.Hour + time.Duration(i)*time.Hour)
		wanted := slice()
		if i%2 == 0 {
			wanted = wholeHost()
		}
		h.lease(fmt.Sprint("booked-", i), minuteOf(start), start.Add(time.Hour), wanted)
	}
	var rows []string
	for i := range storedLeases {
		start := day.Add(96*time.Hour + time.Duration(i/len(h.hosts))*time.Hour)
		l := blazartest.Lease{
			ID: fmt.Sprintf("%08x", i+1), Status: "PENDING", Start: start, End: start.Add(time.Hour), Host: h.hosts[i%len(h.hosts)], Project: h.demo.ProjectID,
		}
		rows = append(rows, l.Rows()...)
	}
	labtest.Execute(h.t, h.database, rows...)
}

// ranServer is what must stay the same of a server.
type ranServer struct {
	ID, Name, Status string
	Host             string `json:"OS-EXT-SRV-ATTR:host"`
	Launched         string `json:"OS-SRV-USG:launched_at"`
	Zone             string `json:"OS-EXT-AZ:availability_zone"`
}

// servers returns the servers of the cloud with what was done to them, by id.
func (h *handover) servers() map[string]string {
	var list struct{ Servers []ranServer }
	h.admin.Must(http.MethodGet, "compute", "/servers/detail?all_tenants=1", nil, &list)
	all := make(map[string]string)
	for _, s := range list.Servers {
		var done struct {
			Actions []struct{ Action string } `json:"instanceActions"`
		}
		h.admin.Must(http.MethodGet, "compute", "/servers/"+s.ID+"/os-instance-actions", nil, &done)
		all[s.ID] = fmt.Sprint(s, done.Actions)
	}
	return all
}

// stopBlazar and startBlazar stop and start both services.
func (h *handover) stopBlazar() {
	labtest.StopService(h.t, "blazar-manager")
	labtest.StopService(h.t, "blazar-api")
}

func (h *handover) startBlazar() {
	labtest.StartService(h.t, "blazar-manager")
	labtest.StartService(h.t, "blazar-api")
}

// imports runs the import and fails the test if it is refused.
func (h *handover) imports(arguments ...string) blazartest.TakenOver {
	h.t.Helper()
	began := time.Now()
	report, complaint := blazartest.TakeOver(h.t, built.NewFolder(h.t, built.TenHosts), h.settings, append([]string{"--from", h.database}, arguments...)...)
	h.t.Logf("import %v: %d leases, %d servers, in %v", arguments, len(report.Leases), len(report.Servers), time.Since(began).Round(time.Millisecond))
	for _, f := range report.Findings {
		h.t.Logf("  %s: %s", f.Kind, f.Text)
	}
	if complaint != "" {
		h.t.Fatal(complaint)
	}
	return report
}

// same compares lists of leases, but for one that may have ended meanwhile.
func (h *handover) same(when string, want, got map[string]blazartest.ShownLease) {
	h.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		h.t.Errorf("%s (-Blazar's +Almanac's):\n%s", when, d)
	}
}

// Two hundred leases, twenty of them with servers, change hands. They stay in the lab's Blazar, so that
// the test needs a new lab.
//
//make:test-blazar-takeover
func TestARunningBlazarIsTakenOver(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_BLAZAR") == "" {
		t.Skip("`make test-blazar-takeover` runs this, in a lab with Blazar")
	}
	api, database := labtest.Blazar(t)
	second := labtest.Database(t) // it outlives almanacd
	b := besideOpenStack(t)
	b.Stop(t)
	h := &handover{beside: b, database: database, second: second, demos: b.demo.Through("reservation", api), admins: b.admin.Through("reservation", api)}
	h.enroll()
	servers := h.activate()
	h.book()
	before, ran, aggregates := leases(h.demos), h.servers(), h.aggregates()
	delete(aggregates, "almanac-fence")
	t.Logf("Blazar has %d leases, the cloud %d servers", len(before), len(ran))

	// Blazar stops, and the leases change hands.
	h.stopBlazar()
	if dry := h.imports("--dry-run"); dry.Refused > 0 || dry.Done || len(dry.Leases) != len(before) || len(dry.Servers) != len(servers) {
		t.Fatalf("the dry run: %d leases, %d servers, %d refused", len(dry.Leases), len(dry.Servers), dry.Refused)
	}
	if report := h.imports(); !report.Done || len(report.Leases) != len(before) || len(report.Servers) != len(servers) {
		t.Fatalf("%d leases, %d servers, done %v", len(report.Leases), len(report.Servers), report.Done)
	}
	h.start()
	h.same("after the import", before, h.almanacs())
	h.await("the fence is there", func() bool { return len(h.aggregates()["almanac-fence"]) > 0 })
	h.within(2*time.Minute, time.Second, "the flavors are Almanac's too", func() bool { return h.adopted() == sliceLeases })
	if d := cmp.Diff(ran, h.servers()); d != "" {
		t.Errorf("servers (-before +after):\n%s", d)
	}

	// The way back: what Almanac has made goes, and Blazar goes on.
	b.Stop(t)
	b.bootstrap("--remove", "--force")
	h.startBlazar()
	h.same("back in Blazar", before, leases(h.demos))
	if d := cmp.Diff(ran, h.servers()); d != "" {
		t.Errorf("servers after the way back (-before +after):\n%s", d)
	}
	if d := cmp.Diff(aggregates, h.aggregates()); d != "" {
		t.Errorf("aggregates after the way back (-before +after):\n%s", d)
	}
	if n := h.adopted(); n > 0 {
		t.Errorf("%d flavors are still Almanac's", n)
	}

	// A lease of each type ends at the next minute, in Almanac.
	due := time.Now().Add(2 * time.Minute).Truncate(time.Minute).Add(time.Minute)
	var ending []string
	for _, resource := range []string{"physical:host", "virtual:instance"} {
		for _, id := range slices.Sorted(maps.Keys(servers)) {
			if before[id].Reservations[0].ResourceType == resource {
				h.demos.Must(http.MethodPut, "reservation", "/leases/"+id, map[string]any{"end_date": minuteOf(due)}, nil)
				ending = append(ending, id)
				break
			}
		}
	}
	h.stopBlazar()
	b.bootstrap("keystone", "--public-url", "http://127.0.0.1:1234/v1")
	h.endsInTime(before, ran, servers, ending, due)
}

// adopted returns how many of Blazar's flavors have Almanac's mark.
func (h *handover) adopted() (count int) {
	var list struct {
		Flavors []struct {
			Specs map[string]string `json:"extra_specs"`
		}
	}
	h.admin.Must(http.MethodGet, "compute", "/flavors/detail?is_public=None", nil, &list)
	for _, f := range list.Flavors {
		blazars := slices.ContainsFunc(slices.Collect(maps.Keys(f.Specs)), func(key string) bool { return strings.HasPrefix(key, "resources:CUSTOM_RESERVATION_") })
		if _, ours := f.Specs["almanac:reservation"]; ours && blazars {
			count++
		}
	}
	return count
}

// endsInTime takes over again, now into a new database, and checks that Almanac ends the leases
// ending at the instant due, and touches no others.
func (h *handover) endsInTime(before map[string]blazartest.ShownLease, ran, servers map[string]string, ending []string, due time.Time) {
	h.t.Helper()
	for i, setting := range h.settings {
		if strings.HasPrefix(setting, connection) {
			h.settings[i] = connection + h.second
		}
	}
	h.sync()
	h.imports()
	h.start()
	for _, id := range ending {
		h.within(time.Until(due)+3*time.Minute, 200*time.Millisecond, "the server of lease "+id+" is gone", func() bool { return h.look(servers[id]).ID == "" })
		if late := time.Since(due); late < 0 {
			h.t.Errorf("the server of lease %s is gone %v before its end", id, -late)
		} else {
			h.t.Logf("the server of lease %s is gone %v after its end", before[id].Name, late.Round(time.Second))
		}
		delete(ran, servers[id])
	}
	for _, id := range ending {
		own := before[id].Reservations[0].ID
		h.within(2*time.Minute, time.Second, "nothing is left of lease "+id, func() bool {
			_, there := h.aggregates()[own]
			flavor := h.admin.Do(http.MethodGet, "compute", "/flavors/"+own, nil, nil)
			class := h.admin.Do(http.MethodGet, "placement", "/resource_classes/CUSTOM_RESERVATION_"+strings.ToUpper(strings.ReplaceAll(own, "-", "_")), nil, nil)
			return !there && flavor == http.StatusNotFound && class == http.StatusNotFound
		})
	}
	if d := cmp.Diff(ran, h.servers()); d != "" {
		h.t.Errorf("the other servers (-before +after):\n%s", d)
	}
}
