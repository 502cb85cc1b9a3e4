// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"crypto/rand"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Blazar's own command line, as Debian has it, uses Almanac in the place of Blazar.
func TestBlazarsCommandLineUsesAlmanac(t *testing.T) {
	b := startInCatalog(t, "region-"+rand.Text()) // other tests use the catalog too
	b.managesHosts()
	b.keepsLeases()
	b.changesLeases()
	b.isToldWhatIsWrong()
	b.endsLeases()
	b.isFound()
}

// moment is a time of a lease: a command sends it with minutes, an answer has it with microseconds.
type moment struct{ time.Time }

// nextDay is the day after that on which the test began.
var nextDay = sync.OnceValue(func() time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1) })

// tomorrowAt returns an hour of tomorrow.
func tomorrowAt(hour int) moment { return moment{nextDay().Add(time.Duration(hour) * time.Hour)} }

func (m moment) sent() string     { return m.Format("2006-01-02 15:04") }
func (m moment) answered() string { return m.Format("2006-01-02T15:04:05.000000") }

func (m moment) after(d time.Duration) moment { return moment{m.Add(d)} }

// managesHosts uses each command for hosts. It leaves five hosts in the pool, host-01 to host-05.
func (b *inCatalog) managesHosts() {
	if list := b.admin.lists("host list"); len(list) != 0 {
		b.t.Errorf("the pool is empty, and the list is %v", list)
	}
	for i := 1; i <= 4; i++ {
		b.admin.does("host create", fmt.Sprintf("host-%02d", i), "--extra", "gpu=a100", "--extra", "rack=4")
	}
	b.admin.has(b.admin.shows("host create host-05 --extra nvme=True"), table{"id": "5", "hypervisor_hostname": "host-05", "nvme": "True", "vcpus": 16.0})
	b.admin.fails("ERROR: Host 'host-99' not found!", "host create host-99")
	b.admin.fails("host-05", "host create host-05")
	b.admin.fails("Extra capability key too long", "host create host-06 --extra", strings.Repeat("k", 65)+"=1")
	list := b.demo.lists("host list")
	if got := column(list, "hypervisor_hostname"); !slices.Equal(got, []string{"host-01", "host-02", "host-03", "host-04", "host-05"}) {
		b.t.Errorf("the pool is %v", got)
	}
	b.demo.has(list[1], table{"id": "2", "vcpus": 16.0, "memory_mb": 65536.0, "local_gb": 500.0})

	b.admin.does("host set host-02 --extra rack=b12")
	b.demo.has(b.demo.shows("host show 2"), table{"rack": "b12", "gpu": "a100", "service_name": "host-02"})
	b.demo.has(b.demo.shows("host show host-02"), table{"id": "2", "rack": "b12"})
	b.demo.fails("Unable to find resource with name 'host-06'", "host show host-06")
	b.demo.fails("ERROR: Policy doesn't allow blazar:oshosts:put", "host set 2 --extra rack=mine")

	if got := column(b.demo.lists("host property list"), "property"); !slices.Equal(got, []string{"gpu", "nvme", "rack"}) {
		b.t.Errorf("the properties are %v", got)
	}
	detail := b.demo.lists("host property list --detail")
	if want := []any{"4", "b12"}; !cmp.Equal(detail[2]["property_values"], any(want)) {
		b.t.Errorf("the values of rack are %#v, want %v", detail[2]["property_values"], want)
	}
	shown := b.demo.shows("host property show gpu")
	if want := []any{"a100"}; !cmp.Equal(shown["property_values"], any(want)) || shown["private"] != false {
		b.t.Errorf("gpu is shown as %v", shown)
	}
	b.admin.does("host property set rack --private")
	if got := column(b.demo.lists("host property list"), "property"); slices.Contains(got, "rack") {
		b.t.Errorf("others see the private property: %v", got)
	}
	if got := column(b.admin.lists("host property list --all"), "property"); !slices.Contains(got, "rack") {
		b.t.Errorf("the admin does not see the private property: %v", got)
	}
	b.admin.does("host property set rack") // which makes it public
	if got := column(b.demo.lists("host property list"), "property"); !slices.Contains(got, "rack") {
		b.t.Errorf("the public property is not there: %v", got)
	}

	b.demo.does("lease create on-gpu", "--start-date", tomorrowAt(1).sent(), "--end-date", tomorrowAt(2).sent(),
		"--reservation", `resource_type=physical:host,min=4,max=4,hypervisor_properties=["==", "$gpu", "a100"]`)
	b.admin.fails("ERROR: Can't add extracapabilities ['gpu'] to Host 2", "host set host-02 --extra gpu=h100")
	b.admin.fails("ERROR: Can't delete host host-02. The host is reserved.", "host delete host-02")
	b.seesAllocations()
	b.demo.does("lease delete on-gpu")
	b.admin.does("host delete 2")
	b.admin.does("host delete host-01")
	if got := column(b.demo.lists("host list"), "id"); !slices.Equal(got, []string{"3", "4", "5"}) {
		b.t.Errorf("after two hosts have left, the pool is %v", got)
	}
	for _, name := range []string{"host-01", "host-02"} {
		b.admin.does("host create", name)
	}
}

// seesAllocations uses the commands for allocations, which came with client 3.6.
func (b *inCatalog) seesAllocations() {
	version, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "python3-blazarclient").Output()
	if err != nil {
		b.t.Fatalf("which version of the client is installed: %v", err)
	}
	if strings.HasPrefix(string(version), "3.5.") {
		return
	}
	if list := b.demo.lists("allocation list host"); len(list) != 5 {
		b.t.Errorf("five hosts have the allocations %v", list)
	}
	lease, start := b.demo.shows("lease show on-gpu")["id"].(string), tomorrowAt(1).answered()
	for _, one := range []struct {
		by             blazarClient
		host           string
		knows, ignores string
	}{
		{b.admin, "host-01", lease, "nothing"},
		{b.admin, "5", "", start},
		{b.demo, "1", start, lease}, // the owner learns the hosts when the lease starts
	} {
		shown := fmt.Sprint(one.by.shows("allocation show host", one.host)["reservations"])
		if !strings.Contains(shown, one.knows) || strings.Contains(shown, one.ignores) {
			b.t.Errorf("the allocations of %s are %s; want %q, not %q", one.host, shown, one.knows, one.ignores)
		}
	}
}

// keepsLeases creates, lists and shows leases: of hosts, of instances, and of both.
func (b *inCatalog) keepsLeases() {
	if list := b.demo.lists("lease list"); len(list) != 0 {
		b.t.Errorf("without leases, the list is %v", list)
	}
	start, end := tomorrowAt(10), tomorrowAt(12)
	dates := []string{"--start-date", start.sent(), "--end-date", end.sent()}
	const query = `["and", [">=", "$vcpus", "4"], ["==", "$gpu", "a100"]]`
	hosts := b.demo.shows("lease create hosts", append(dates, "--before-end-date", tomorrowAt(11).sent(),
		"--event", "event_type=notify,event_date="+start.sent(),
		"--reservation", "resource_type=physical:host,min=1,max=2,hypervisor_properties="+query)...)
	b.demo.has(hosts, table{"name": "hosts", "status": "PENDING", "degraded": false, "start_date": start.answered(), "end_date": end.answered()})
	one := b.demo.reservations(hosts)[0]
	b.demo.has(one, table{"resource_type": "physical:host", "min": 1.0, "max": 2.0, "hypervisor_properties": query,
		"resource_properties": "", "status": "pending", "lease_id": hosts["id"]})
	for _, event := range []string{"start_lease", "end_lease", "before_end_lease", "notify", tomorrowAt(11).answered()} {
		if !strings.Contains(hosts["events"].(string), event) {
			b.t.Errorf("the events are %s, without %s", hosts["events"], event)
		}
	}

	instances := b.demo.shows("lease create", append([]string{"two words", "--reservation",
		"resource_type=virtual:instance,vcpus=2,memory_mb=2048,disk_gb=10,amount=2,affinity=False"}, dates...)...)
	one = b.demo.reservations(instances)[0]
	b.demo.has(one, table{"vcpus": 2.0, "memory_mb": 2048.0, "disk_gb": 10.0, "amount": 2.0, "affinity": false, "flavor_id": one["id"]})
	mixed := b.demo.shows("lease create mixed", append(dates,
		"--reservation", "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=0,amount=1",
		"--reservation", "resource_type=physical:host,min=,max=")...)
	if all := b.demo.reservations(mixed); len(all) != 2 || all[0]["affinity"] != nil || all[1]["min"] != 1.0 || all[1]["max"] != 1.0 {
		b.t.Errorf("the reservations are %v", all)
	}

	if got := column(b.demo.lists("lease list"), "name"); !slices.Equal(got, []string{"hosts", "mixed", "two words"}) {
		b.t.Errorf("the leases are %v", got)
	}
	if got := column(b.demo.lists("lease list --sort-by start_date"), "start_date"); !slices.Equal(got, []string{start.answered(), start.answered(), start.answered()}) {
		b.t.Errorf("the starts are %v", got)
	}
	for _, name := range []string{"two words", instances["id"].(string)} {
		b.demo.has(b.demo.shows("lease show", name), table{"id": instances["id"], "name": "two words"})
	}
	if list := b.demo2.lists("lease list"); len(list) != 0 {
		b.t.Errorf("another project sees %v", list)
	}
	if list := b.admin.lists("lease list"); len(list) != 3 {
		b.t.Errorf("the admin sees %v", list)
	}
	b.demo2.fails("ERROR: Policy doesn't allow blazar:leases:get to be performed", "lease show", hosts["id"].(string))
	b.demo.does("lease delete mixed")
	b.demo.does("lease delete", "two words")
}

// changesLeases changes the lease that is called hosts, by its name and by its id.
func (b *inCatalog) changesLeases() {
	before := b.demo.shows("lease show hosts")
	id, start, end := before["id"].(string), tomorrowAt(10), tomorrowAt(12)
	changed := func(name string, want table, words ...string) {
		b.t.Helper()
		b.demo.does("lease set", append([]string{name}, words...)...)
		b.demo.has(b.demo.shows("lease show", name), want)
	}
	changed("hosts", table{"end_date": end.after(time.Hour).answered()}, "--prolong-for", "1h")
	changed(id, table{"end_date": end.after(30 * time.Minute).answered()}, "--reduce-by", "30m")
	changed("hosts", table{"start_date": start.after(time.Hour).answered()}, "--defer-by", "1h")
	changed(id, table{"start_date": start.after(30 * time.Minute).answered()}, "--advance-by", "30m")
	changed("hosts", table{"start_date": start.answered(), "end_date": end.answered()}, "--start-date", start.sent(), "--end-date", end.sent())
	changed("hosts", table{"start_date": before["start_date"], "end_date": before["end_date"]}) // the client sends nothing

	reservation := b.demo.reservations(before)[0]["id"].(string)
	b.demo.does("lease set hosts --reservation", "id="+reservation+",min=2,max=3")
	b.demo.has(b.demo.reservations(b.demo.shows("lease show hosts"))[0], table{"min": 2.0, "max": 3.0, "id": reservation})
	b.demo.fails("ERROR: Please enter valid reservation IDs. Invalid reservation IDs are: "+reservation+",before_end=default",
		"lease set hosts --reservation", "id="+reservation+",before_end=default,max=1")
	b.demo.fails("ERROR: Not enough hosts available", "lease set hosts --reservation", "id="+reservation+",min=6,max=9")
	b.demo2.fails("ERROR: Policy doesn't allow blazar:leases:put to be performed", "lease set", id, "--name", "mine")

	b.demo.does("lease set hosts --name", "renamed it")
	b.demo.has(b.demo.shows("lease show", "renamed it"), table{"id": id})
	b.demo.does("lease create", "renamed it", "--end-date", end.sent(), "--start-date", start.sent(), "--reservation",
		"resource_type=physical:host,min=1,max=1")
	b.demo.fails("There are more than one appropriate resources", "lease set", "renamed it", "--prolong-for", "1h") // of the client itself
	for _, lease := range b.demo.lists("lease list") {
		b.demo.does("lease delete", lease["id"].(string))
	}
}

// isToldWhatIsWrong makes mistakes.
func (b *inCatalog) isToldWhatIsWrong() {
	start, end := tomorrowAt(10), tomorrowAt(12)
	hosts := func(rest string) string { return "resource_type=physical:host," + rest }
	for _, wrong := range []struct {
		message string
		words   []string
	}{
		{"The lease parameters are incorrect.", nil}, // the client itself: a lease has a reservation
		{"ERROR: Datetime is out of lease limits", []string{"--before-end-date", start.sent(), "--reservation", hosts("min=1,max=1")}},
		{"ERROR: Invalid values for min/max of hosts. Max must be equal to or larger than min.", []string{"--reservation", hosts("min=2,max=1")}},
		{"ERROR: Malformed parameter min and max (must be greater than or equal to 1)", []string{"--reservation", hosts("min=0,max=1")}},
		{"ERROR: Malformed parameter min", []string{"--reservation", hosts("min=few,max=1")}},
		{"ERROR: Malformed parameter before_end", []string{"--reservation", hosts("min=1,max=1,before_end=reboot")}},
		{"ERROR: Malformed requirements", []string{"--reservation", hosts("min=1,max=1,resource_properties=[\"==\"]")}},
		{"speed", []string{"--reservation", hosts("min=1,max=1,resource_properties=[\"==\", \"$speed\", \"9\"]")}},
		{"ERROR: Not enough hosts available", []string{"--reservation", hosts("min=6,max=7")}},
		{"ERROR: Missing parameter vcpus, memory_mb, disk_gb, amount", []string{"--reservation", "resource_type=virtual:instance"}},
		{"ERROR: Malformed parameter affinity (must be a bool value or None)",
			[]string{"--reservation", "resource_type=virtual:instance,vcpus=1,memory_mb=1,disk_gb=1,amount=1,affinity=near"}},
		{"ERROR: Start date must be later than current date",
			[]string{"--start-date", start.AddDate(0, 0, -3).Format("2006-01-02 15:04"), "--reservation", hosts("min=1,max=1")}},
		{"ERROR: End date must be later than start date.", []string{"--end-date", start.sent(), "--reservation", hosts("min=1,max=1")}},
	} {
		dates := []string{"--start-date", start.sent(), "--end-date", end.sent()} // the last of an option counts
		b.demo.fails(wrong.message, "lease create wrong", append(dates, wrong.words...)...)
	}
	b.client(labtest.Reader).fails("ERROR: Policy doesn't allow blazar:leases:post to be performed", "lease create mine --reservation", hosts("min=1,max=1"))
	const unknown = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, words := range []string{"lease show", "lease delete", "lease set --name new"} {
		b.demo.fails("ERROR: Object with {'lease_id': '"+unknown+"'} not found", words, unknown)
		b.demo.fails("Unable to find resource with name 'no one'", words, "no one")
	}
	if list := b.demo.lists("floatingip list"); len(list) != 0 {
		b.t.Errorf("no floating IP is enrolled, and the list is %v", list)
	}
	b.demo.fails("ERROR: Floating IP no-such not found.", "floatingip show no-such")
	b.demo.fails("ERROR: Policy doesn't allow blazar:floatingips:post", "floatingip create no-such 198.51.100.7")
	b.admin.fails("ERROR: ", "floatingip create no-such 198.51.100.7") // there is no such network, or no Neutron
	b.admin.fails("ERROR: Floating IP no-such not found.", "floatingip delete no-such")
	b.demo.fails("ERROR: Not enough floating IPs available", "lease create addresses", "--reservation", "resource_type=virtual:floatingip,network_id=no-such,amount=1")
	if list := b.demo.lists("lease list"); len(list) != 0 {
		b.t.Errorf("mistakes leave %v", list)
	}
}

// endsLeases deletes a lease that is active.
func (b *inCatalog) endsLeases() {
	b.demo.does("lease create now --reservation", "resource_type=physical:host,min=1,max=1")
	id := b.demo.shows("lease show now")["id"].(string)
	eventually(b.t, "the lease is not active", func() bool { return b.demo.shows("lease show", id)["status"] == "ACTIVE" })
	b.demo.fails("ERROR: Cannot modify the start date of already started leases", "lease set now --defer-by 1h")
	b.demo.does("lease set now --prolong-for 1h")
	b.demo2.fails("ERROR: Policy doesn't allow blazar:leases:delete to be performed", "lease delete", id)
	b.demo.does("lease delete now")
	eventually(b.t, "the lease stays", func() bool { return b.demo.run("lease show", id).Exit == 1 })
	b.demo.fails("not found", "lease show", id)
}

// isFound finds the service by each way in which a catalog spells its URL. The openstack client takes
// the URL as it is; the client blazar asks for the versions there.
func (b *inCatalog) isFound() {
	for _, spelled := range []struct {
		ending           string
		openstack, shell bool
	}{
		{"/v1", true, true}, {"/v1/", true, true}, {"", false, true}, {"/", false, true},
	} {
		region := b.region
		if spelled.ending != "/v1" {
			region = fmt.Sprintf("%s-%d", b.region, len(spelled.ending))
			b.t.Cleanup(func() { b.leaveCatalog(region) })
			b.administer("region", "create", region)
			b.administer("endpoint", "create", "--region", region, "almanac", "public", b.url+spelled.ending)
		}
		for _, one := range []struct {
			command []string
			finds   bool
		}{
			{[]string{"OS_REGION_NAME=" + region, "openstack", "reservation", "lease", "list"}, spelled.openstack},
			{[]string{"OS_REGION_NAME=" + region, "blazar", "lease-list"}, spelled.shell},
		} {
			said := b.demo.clients.Run(one.command...)
			if finds := said.Exit == 0; finds != one.finds || !finds && !strings.Contains(said.Err, "ERROR: there is nothing at /leases") {
				b.t.Errorf("%v with %q in the catalog: exit code %d\n%s%s", one.command, spelled.ending, said.Exit, said.Out, said.Err)
			}
		}
	}
}
