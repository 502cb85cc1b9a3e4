// SPDX-License-Identifier: Apache-2.0

package blazar

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

	"github.com/almanac-cloud/almanac/tests/blazartest"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Blazar's own command line, as Debian has it, uses Almanac in the place of Blazar.
//
//make:test-blazar-clients
func TestBlazarsCommandLineUsesAlmanac(t *testing.T) {
	b := inCatalog{blazartest.StartInCatalog(t, "region-"+rand.Text())} // other tests use the catalog too
	b.managesHosts()
	b.keepsLeases()
	b.changesLeases()
	b.isToldWhatIsWrong()
	b.endsLeases()
	b.isFound()
}

// inCatalog is an almanacd that Blazar's command line uses.
type inCatalog struct{ *blazartest.InCatalog }

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
func (b inCatalog) managesHosts() {
	if list := b.Admin.Lists("host list"); len(list) != 0 {
		b.T.Errorf("the pool is empty, and the list is %v", list)
	}
	for i := 1; i <= 4; i++ {
		b.Admin.Does("host create", fmt.Sprintf("host-%02d", i), "--extra", "gpu=a100", "--extra", "rack=4")
	}
	b.Admin.Has(b.Admin.Shows("host create host-05 --extra nvme=True"), blazartest.Table{"id": "5", "hypervisor_hostname": "host-05", "nvme": "True", "vcpus": 16.0})
	b.Admin.Fails("ERROR: Host 'host-99' not found!", "host create host-99")
	b.Admin.Fails("host-05", "host create host-05")
	b.Admin.Fails("Extra capability key too long", "host create host-06 --extra", strings.Repeat("k", 65)+"=1")
	list := b.Demo.Lists("host list")
	if got := blazartest.Column(list, "hypervisor_hostname"); !slices.Equal(got, []string{"host-01", "host-02", "host-03", "host-04", "host-05"}) {
		b.T.Errorf("the pool is %v", got)
	}
	b.Demo.Has(list[1], blazartest.Table{"id": "2", "vcpus": 16.0, "memory_mb": 65536.0, "local_gb": 500.0})

	b.Admin.Does("host set host-02 --extra rack=b12")
	b.Demo.Has(b.Demo.Shows("host show 2"), blazartest.Table{"rack": "b12", "gpu": "a100", "service_name": "host-02"})
	b.Demo.Has(b.Demo.Shows("host show host-02"), blazartest.Table{"id": "2", "rack": "b12"})
	b.Demo.Fails("Unable to find resource with name 'host-06'", "host show host-06")
	b.Demo.Fails("ERROR: Policy doesn't allow blazar:oshosts:put", "host set 2 --extra rack=mine")

	if got := blazartest.Column(b.Demo.Lists("host property list"), "property"); !slices.Equal(got, []string{"gpu", "nvme", "rack"}) {
		b.T.Errorf("the properties are %v", got)
	}
	detail := b.Demo.Lists("host property list --detail")
	if want := []any{"4", "b12"}; !cmp.Equal(detail[2]["property_values"], any(want)) {
		b.T.Errorf("the values of rack are %#v, want %v", detail[2]["property_values"], want)
	}
	shown := b.Demo.Shows("host property show gpu")
	if want := []any{"a100"}; !cmp.Equal(shown["property_values"], any(want)) || shown["private"] != false {
		b.T.Errorf("gpu is shown as %v", shown)
	}
	b.Admin.Does("host property set rack --private")
	if got := blazartest.Column(b.Demo.Lists("host property list"), "property"); slices.Contains(got, "rack") {
		b.T.Errorf("others see the private property: %v", got)
	}
	if got := blazartest.Column(b.Admin.Lists("host property list --all"), "property"); !slices.Contains(got, "rack") {
		b.T.Errorf("the admin does not see the private property: %v", got)
	}
	b.Admin.Does("host property set rack") // which makes it public
	if got := blazartest.Column(b.Demo.Lists("host property list"), "property"); !slices.Contains(got, "rack") {
		b.T.Errorf("the public property is not there: %v", got)
	}

	b.Demo.Does("lease create on-gpu", "--start-date", tomorrowAt(1).sent(), "--end-date", tomorrowAt(2).sent(),
		"--reservation", `resource_type=physical:host,min=4,max=4,hypervisor_properties=["==", "$gpu", "a100"]`)
	b.Admin.Fails("ERROR: Can't add extracapabilities ['gpu'] to Host 2", "host set host-02 --extra gpu=h100")
	b.Admin.Fails("ERROR: Can't delete host host-02. The host is reserved.", "host delete host-02")
	b.seesAllocations()
	b.Demo.Does("lease delete on-gpu")
	b.Admin.Does("host delete 2")
	b.Admin.Does("host delete host-01")
	if got := blazartest.Column(b.Demo.Lists("host list"), "id"); !slices.Equal(got, []string{"3", "4", "5"}) {
		b.T.Errorf("after two hosts have left, the pool is %v", got)
	}
	for _, name := range []string{"host-01", "host-02"} {
		b.Admin.Does("host create", name)
	}
}

// seesAllocations uses the commands for allocations, which came with client 3.6.
func (b inCatalog) seesAllocations() {
	version, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "python3-blazarclient").Output()
	if err != nil {
		b.T.Fatalf("which version of the client is installed: %v", err)
	}
	if strings.HasPrefix(string(version), "3.5.") {
		return
	}
	if list := b.Demo.Lists("allocation list host"); len(list) != 5 {
		b.T.Errorf("five hosts have the allocations %v", list)
	}
	lease, start := b.Demo.Shows("lease show on-gpu")["id"].(string), tomorrowAt(1).answered()
	for _, one := range []struct {
		by             blazartest.Client
		host           string
		knows, ignores string
	}{
		{b.Admin, "host-01", lease, "nothing"},
		{b.Admin, "5", "", start},
		{b.Demo, "1", start, lease}, // the owner learns the hosts when the lease starts
	} {
		shown := fmt.Sprint(one.by.Shows("allocation show host", one.host)["reservations"])
		if !strings.Contains(shown, one.knows) || strings.Contains(shown, one.ignores) {
			b.T.Errorf("the allocations of %s are %s; want %q, not %q", one.host, shown, one.knows, one.ignores)
		}
	}
}

// keepsLeases creates, lists and shows leases: of hosts, of instances, and of both.
func (b inCatalog) keepsLeases() {
	if list := b.Demo.Lists("lease list"); len(list) != 0 {
		b.T.Errorf("without leases, the list is %v", list)
	}
	start, end := tomorrowAt(10), tomorrowAt(12)
	dates := []string{"--start-date", start.sent(), "--end-date", end.sent()}
	const query = `["and", [">=", "$vcpus", "4"], ["==", "$gpu", "a100"]]`
	hosts := b.Demo.Shows("lease create hosts", append(dates, "--before-end-date", tomorrowAt(11).sent(),
		"--event", "event_type=notify,event_date="+start.sent(),
		"--reservation", "resource_type=physical:host,min=1,max=2,hypervisor_properties="+query)...)
	b.Demo.Has(hosts, blazartest.Table{"name": "hosts", "status": "PENDING", "degraded": false, "start_date": start.answered(), "end_date": end.answered()})
	one := b.Demo.Reservations(hosts)[0]
	b.Demo.Has(one, blazartest.Table{"resource_type": "physical:host", "min": 1.0, "max": 2.0, "hypervisor_properties": query,
		"resource_properties": "", "status": "pending", "lease_id": hosts["id"]})
	for _, event := range []string{"start_lease", "end_lease", "before_end_lease", "notify", tomorrowAt(11).answered()} {
		if !strings.Contains(hosts["events"].(string), event) {
			b.T.Errorf("the events are %s, without %s", hosts["events"], event)
		}
	}

	instances := b.Demo.Shows("lease create", append([]string{"two words", "--reservation",
		"resource_type=virtual:instance,vcpus=2,memory_mb=2048,disk_gb=10,amount=2,affinity=False"}, dates...)...)
	one = b.Demo.Reservations(instances)[0]
	b.Demo.Has(one, blazartest.Table{"vcpus": 2.0, "memory_mb": 2048.0, "disk_gb": 10.0, "amount": 2.0, "affinity": false, "flavor_id": one["id"]})
	mixed := b.Demo.Shows("lease create mixed", append(dates,
		"--reservation", "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=0,amount=1",
		"--reservation", "resource_type=physical:host,min=,max=")...)
	if all := b.Demo.Reservations(mixed); len(all) != 2 || all[0]["affinity"] != nil || all[1]["min"] != 1.0 || all[1]["max"] != 1.0 {
		b.T.Errorf("the reservations are %v", all)
	}

	if got := blazartest.Column(b.Demo.Lists("lease list"), "name"); !slices.Equal(got, []string{"hosts", "mixed", "two words"}) {
		b.T.Errorf("the leases are %v", got)
	}
	if got := blazartest.Column(b.Demo.Lists("lease list --sort-by start_date"), "start_date"); !slices.Equal(got, []string{start.answered(), start.answered(), start.answered()}) {
		b.T.Errorf("the starts are %v", got)
	}
	for _, name := range []string{"two words", instances["id"].(string)} {
		b.Demo.Has(b.Demo.Shows("lease show", name), blazartest.Table{"id": instances["id"], "name": "two words"})
	}
	if list := b.Demo2.Lists("lease list"); len(list) != 0 {
		b.T.Errorf("another project sees %v", list)
	}
	if list := b.Admin.Lists("lease list"); len(list) != 3 {
		b.T.Errorf("the admin sees %v", list)
	}
	b.Demo2.Fails("ERROR: Policy doesn't allow blazar:leases:get to be performed", "lease show", hosts["id"].(string))
	b.Demo.Does("lease delete mixed")
	b.Demo.Does("lease delete", "two words")
}

// changesLeases changes the lease that is called hosts, by its name and by its id.
func (b inCatalog) changesLeases() {
	before := b.Demo.Shows("lease show hosts")
	id, start, end := before["id"].(string), tomorrowAt(10), tomorrowAt(12)
	changed := func(name string, want blazartest.Table, words ...string) {
		b.T.Helper()
		b.Demo.Does("lease set", append([]string{name}, words...)...)
		b.Demo.Has(b.Demo.Shows("lease show", name), want)
	}
	changed("hosts", blazartest.Table{"end_date": end.after(time.Hour).answered()}, "--prolong-for", "1h")
	changed(id, blazartest.Table{"end_date": end.after(30 * time.Minute).answered()}, "--reduce-by", "30m")
	changed("hosts", blazartest.Table{"start_date": start.after(time.Hour).answered()}, "--defer-by", "1h")
	changed(id, blazartest.Table{"start_date": start.after(30 * time.Minute).answered()}, "--advance-by", "30m")
	changed("hosts", blazartest.Table{"start_date": start.answered(), "end_date": end.answered()}, "--start-date", start.sent(), "--end-date", end.sent())
	changed("hosts", blazartest.Table{"start_date": before["start_date"], "end_date": before["end_date"]}) // the client sends nothing

	reservation := b.Demo.Reservations(before)[0]["id"].(string)
	b.Demo.Does("lease set hosts --reservation", "id="+reservation+",min=2,max=3")
	b.Demo.Has(b.Demo.Reservations(b.Demo.Shows("lease show hosts"))[0], blazartest.Table{"min": 2.0, "max": 3.0, "id": reservation})
	b.Demo.Fails("ERROR: Please enter valid reservation IDs. Invalid reservation IDs are: "+reservation+",before_end=default",
		"lease set hosts --reservation", "id="+reservation+",before_end=default,max=1")
	b.Demo.Fails("ERROR: Not enough hosts available", "lease set hosts --reservation", "id="+reservation+",min=6,max=9")
	b.Demo2.Fails("ERROR: Policy doesn't allow blazar:leases:put to be performed", "lease set", id, "--name", "mine")

	b.Demo.Does("lease set hosts --name", "renamed it")
	b.Demo.Has(b.Demo.Shows("lease show", "renamed it"), blazartest.Table{"id": id})
	b.Demo.Does("lease create", "renamed it", "--end-date", end.sent(), "--start-date", start.sent(), "--reservation",
		"resource_type=physical:host,min=1,max=1")
	b.Demo.Fails("There are more than one appropriate resources", "lease set", "renamed it", "--prolong-for", "1h") // of the client itself
	for _, lease := range b.Demo.Lists("lease list") {
		b.Demo.Does("lease delete", lease["id"].(string))
	}
}

// isToldWhatIsWrong makes mistakes.
func (b inCatalog) isToldWhatIsWrong() {
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
		b.Demo.Fails(wrong.message, "lease create wrong", append(dates, wrong.words...)...)
	}
	b.Client(labtest.Reader).Fails("ERROR: Policy doesn't allow blazar:leases:post to be performed", "lease create mine --reservation", hosts("min=1,max=1"))
	const unknown = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, words := range []string{"lease show", "lease delete", "lease set --name new"} {
		b.Demo.Fails("ERROR: Object with {'lease_id': '"+unknown+"'} not found", words, unknown)
		b.Demo.Fails("Unable to find resource with name 'no one'", words, "no one")
	}
	if list := b.Demo.Lists("floatingip list"); len(list) != 0 {
		b.T.Errorf("no floating IP is enrolled, and the list is %v", list)
	}
	b.Demo.Fails("ERROR: Floating IP no-such not found.", "floatingip show no-such")
	b.Demo.Fails("ERROR: Policy doesn't allow blazar:floatingips:post", "floatingip create no-such 198.51.100.7")
	b.Admin.Fails("ERROR: ", "floatingip create no-such 198.51.100.7") // there is no such network, or no Neutron
	b.Admin.Fails("ERROR: Floating IP no-such not found.", "floatingip delete no-such")
	b.Demo.Fails("ERROR: Not enough floating IPs available", "lease create addresses", "--reservation", "resource_type=virtual:floatingip,network_id=no-such,amount=1")
	if list := b.Demo.Lists("lease list"); len(list) != 0 {
		b.T.Errorf("mistakes leave %v", list)
	}
}

// endsLeases deletes a lease that is active.
func (b inCatalog) endsLeases() {
	b.Demo.Does("lease create now --reservation", "resource_type=physical:host,min=1,max=1")
	id := b.Demo.Shows("lease show now")["id"].(string)
	built.Eventually(b.T, "the lease is not active", func() bool { return b.Demo.Shows("lease show", id)["status"] == "ACTIVE" })
	b.Demo.Fails("ERROR: Cannot modify the start date of already started leases", "lease set now --defer-by 1h")
	b.Demo.Does("lease set now --prolong-for 1h")
	b.Demo2.Fails("ERROR: Policy doesn't allow blazar:leases:delete to be performed", "lease delete", id)
	b.Demo.Does("lease delete now")
	built.Eventually(b.T, "the lease stays", func() bool { return b.Demo.Run("lease show", id).Exit == 1 })
	b.Demo.Fails("not found", "lease show", id)
}

// isFound finds the service by each way in which a catalog spells its URL. The openstack client takes
// the URL as it is; the client blazar asks for the versions there.
func (b inCatalog) isFound() {
	for _, spelled := range []struct {
		ending           string
		openstack, shell bool
	}{
		{"/v1", true, true}, {"/v1/", true, true}, {"", false, true}, {"/", false, true},
	} {
		region := b.Region
		if spelled.ending != "/v1" {
			region = fmt.Sprintf("%s-%d", b.Region, len(spelled.ending))
			b.T.Cleanup(func() { b.LeaveCatalog(region) })
			b.Administer("region", "create", region)
			b.Administer("endpoint", "create", "--region", region, "almanac", "public", b.URL+spelled.ending)
		}
		for _, one := range []struct {
			command []string
			finds   bool
		}{
			{[]string{"OS_REGION_NAME=" + region, "openstack", "reservation", "lease", "list"}, spelled.openstack},
			{[]string{"OS_REGION_NAME=" + region, "blazar", "lease-list"}, spelled.shell},
		} {
			said := b.Demo.Clients.Run(one.command...)
			if finds := said.Exit == 0; finds != one.finds || !finds && !strings.Contains(said.Err, "ERROR: there is nothing at /leases") {
				b.T.Errorf("%v with %q in the catalog: exit code %d\n%s%s", one.command, spelled.ending, said.Exit, said.Out, said.Err)
			}
		}
	}
}
