// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// An admin removes a host from an aggregate, leaves an aggregate of another Almanac, and forces
// a server onto a reserved host.
func TestTheDoctorFindsWhatAdminsHaveDoneByHandAndMendsIt(t *testing.T) {
	b := besideOpenStack(t)
	b.pool("cmp-*")
	r := b.reserve(b.demo, v1.ReservationRequest{Name: "kept", Duration: new(v1.Duration(3600)), Quantity: new(2)})
	r = b.becomes(r.ID, "active")
	const orphan = "almanac-reservation-6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	b.admin.Must(http.MethodPost, "compute", "/os-aggregates", map[string]any{"aggregate": map[string]string{"name": orphan}}, nil)
	passes := b.flavor(map[string]string{"trait:CUSTOM_ALMANAC_RESERVED": "required", "trait:" + ownName(r.ID): "required"})
	stranger := b.boot(b.admin, "stranger", passes, r.Hosts[0])
	b.runOn(r.Hosts[:1], b.settled(stranger)...)

	own := "almanac-reservation-" + r.ID
	// Almanac runs its own checks too; whichever runs first repairs it.
	b.await("the doctor finds all three", func() bool {
		b.removeHost(own, r.Hosts[0])
		return slices.Equal(b.findings(), []string{"stranger " + stranger, "missing " + own, "orphan_aggregate " + orphan})
	})
	out, stderr, exit := built.Almanac(t, b.Folder, append(b.cloud.Environment(labtest.Admin), "ALMANAC_URL="+b.URL), "doctor", "--fix", "--dry-run")
	built.WantExit(t, "what the fix would do", stderr, exit, 5)
	if !strings.Contains(out, "planned") || !slices.Contains(b.findings(), "orphan_aggregate "+orphan) {
		t.Errorf("a dry run: %s", out)
	}
	out, stderr, exit = built.Almanac(t, b.Folder, append(b.cloud.Environment(labtest.Admin), "ALMANAC_URL="+b.URL), "doctor", "--fix")
	built.WantExit(t, "the server is for its owner to move", stderr, exit, 5, "1 finding remains")
	if !strings.Contains(out, "fixed") || !strings.Contains(out, "server migrate") {
		t.Errorf("the fix prints\n%s", out)
	}
	if _, there := b.aggregates()[orphan]; there {
		t.Error("the orphan still exists")
	}
	b.traceOf(r.ID)
	b.runOn(r.Hosts[:1], b.settled(stranger)...)
	b.cloud.Openstack(t, labtest.Admin, "server", "delete", "--wait", stranger)
	b.await("the inventory has read the change", func() bool { return len(b.findings()) == 0 })
	b.healthy()
}

// The test compares an admin's view of the cloud before Almanac was installed and after it was
// removed.
//
//make:test-cells
func TestNoTraceIsLeft(t *testing.T) {
	cloud := labtest.OpenStack(t)
	before := seenByAdmin(t, cloud)
	b := besideOpenStack(t, "OS_RESERVATION__LEAD_TIME=2h")
	b.pool("cmp-*")
	active := b.reserve(b.demo, v1.ReservationRequest{Name: "active", Duration: new(v1.Duration(3600)), Quantity: new(2)})
	shared := b.reserve(b.demo2, v1.ReservationRequest{
		Name: "shared", Kind: "instance", Duration: new(v1.Duration(3600)), Quantity: new(2),
		Resources: &v1.Resources{VCPUs: 1, MemoryMB: 512, DiskGB: 1},
	})
	own := b.settled(b.boot(b.demo, "own", b.becomes(active.ID, "active").ID, ""))[0]
	b.becomes(shared.ID, "active")
	b.refused("almanacd runs")
	b.Stop(t)
	b.crashed = true
	b.refused("is active")

	enabled := b.disabled("cmp-006", "almanac energy 1: it is switched off while it is not needed")
	said := b.bootstrap("--remove", "--dry-run", "--force")
	for _, what := range []string{"enable nova-compute on cmp-006", "aggregate almanac-fence", "flavor reservation:" + active.ID, "trait " + ownName(active.ID), "class " + ownName(shared.ID), "user " + b.self.Name} {
		if !strings.Contains(said, what) {
			t.Errorf("the dry run does not mention %s:\n%s", what, said)
		}
	}
	if enabled() {
		t.Error("the dry run has enabled a compute service")
	}
	if b.admin.gone("compute", "/flavors/"+active.ID) {
		t.Error("the dry run has removed the flavor")
	}
	if said := b.bootstrap("--remove", "--force"); !strings.Contains(said, "empty providers") {
		t.Errorf("bootstrap does not mention the providers that it keeps: %s", said)
	}
	if !enabled() {
		t.Error("the host that Almanac had closed admits no instances after Almanac is removed")
	}
	b.runOn([]string{own.Host}, b.settled(own.ID)...)
	said = b.bootstrap("--remove", "--force", "--providers")
	t.Cleanup(func() { labtest.RestartComputes(t) })
	after := seenByAdmin(t, cloud)
	for i, now := range after[:len(after)-3] {
		// Earlier tests left the Almanac entries that were there before.
		was := slices.DeleteFunc(before[i], func(name string) bool { return strings.Contains(strings.ToLower(name), "almanac") })
		if diff := cmp.Diff(was, now, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-before +now):\n%s", lists[i], diff)
		}
	}
	// Other tests change Keystone's lists at the same time. The service stays while one of them has endpoints in another
	// region, which the removal says.
	kept := strings.Contains(said, "service almanac (reservation), which has endpoints in other regions")
	for i, name := range []string{"almanac", "http://127.0.0.1:1234/v1", b.self.Name} {
		if list := after[len(after)-3+i]; slices.Contains(list, name) && (name != "almanac" || !kept) {
			t.Errorf("%s still has %s", lists[len(lists)-3+i], name)
		}
	}
	if said := b.bootstrap("--remove", "--force"); !strings.Contains(said, "there is nothing to remove") && !(kept && strings.Contains(said, "service almanac (reservation)")) {
		t.Errorf("a second removal prints %s", said)
	}
}

// disabled disables the compute service of a host. enabled reports whether it is enabled again.
func (b *beside) disabled(host, reason string) (enabled func() bool) {
	b.t.Helper()
	var all struct{ Services []struct{ ID, Status string } }
	list := func() {
		b.admin.Must(http.MethodGet, "compute", "/os-services?binary=nova-compute&host="+host, nil, &all)
	}
	list()
	b.admin.Must(http.MethodPut, "compute", "/os-services/"+all.Services[0].ID,
		map[string]string{"status": "disabled", "disabled_reason": reason}, nil)
	return func() bool { list(); return all.Services[0].Status == "enabled" }
}

var lists = []string{
	"aggregate list", "flavor list --all", "trait list", "resource class list", "resource provider list", "compute service list",
	"service list", "endpoint list", "user list",
}

// seenByAdmin returns the names in the lists that an admin sees.
func seenByAdmin(t *testing.T, cloud labtest.LabCloud) (all [][]string) {
	t.Helper()
	rows := make([][]map[string]any, len(lists))
	values := make([]any, len(lists))
	for i := range rows {
		values[i] = &rows[i]
	}
	cloud.OpenstackAll(t, labtest.Admin, lists, values...)
	for _, list := range rows {
		var names []string
		for _, row := range list {
			for _, column := range []string{"Name", "name", "URL", "Host"} {
				if name, there := row[column]; there {
					names = append(names, fmt.Sprint(name))
				}
			}
		}
		slices.Sort(names)
		all = append(all, names)
	}
	return all
}

// refused checks that bootstrap does not remove what is in use.
func (b *beside) refused(because string) {
	b.t.Helper()
	out, failed := built.Almanacd(b.t, b.Folder, append(slices.Clone(b.settings), b.cloud.Environment(labtest.Admin)...), "bootstrap", "--remove")
	if !failed || !strings.Contains(out, because) {
		b.t.Errorf("bootstrap --remove fails %v, want a message with %q:\n%s", failed, because, out)
	}
}

// findings returns the doctor's findings, by kind and subject.
func (b *beside) findings() (list []string) {
	b.t.Helper()
	found, err := b.admin.almanac.Examine(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found.Findings {
		list = append(list, f.Kind+" "+f.Subject)
	}
	return list
}

// removeHost removes a host from an aggregate if it is a member.
func (b *beside) removeHost(aggregate, host string) {
	b.t.Helper()
	body := map[string]any{"remove_host": map[string]string{"host": host}}
	b.admin.Do(http.MethodPost, "compute", fmt.Sprintf("/os-aggregates/%d/action", b.aggregateID(aggregate)), body, nil)
}

func (b *beside) aggregateID(name string) int {
	b.t.Helper()
	var list struct {
		Aggregates []struct {
			ID   int
			Name string
		}
	}
	b.admin.Must(http.MethodGet, "compute", "/os-aggregates", nil, &list)
	for _, a := range list.Aggregates {
		if a.Name == name {
			return a.ID
		}
	}
	return 0
}
