// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// plugin is the folder of the Python package.
const plugin = "../../plugin"

// weigh is the plugin's call to Almanac.
const weigh = "POST /v1/scheduler/weigh"

// lookup is the message for tenants while Almanac does not answer.
const lookup = " The reservations cannot be looked up now; try again later."

// The plugin's own tests and its type check pass with Debian's Nova.
func TestThePluginIsRightByItself(t *testing.T) {
	modules := labtest.InstallPython(t, plugin)
	if err := os.CopyFS(filepath.Join(modules, "tests"), os.DirFS(filepath.Join(plugin, "tests"))); err != nil {
		t.Fatal(err)
	}
	labtest.Python(t, modules, "-B", "-W", "ignore", "-m", "unittest", "tests.test_plugin")
	labtest.Python(t, plugin, "-B", "-m", "mypy", "--no-incremental", "--cache-dir", os.DevNull, "almanac_nova")
}

// The plugin runs in Debian's nova-scheduler, and Almanac has no place in Nova.
//
//make:test-cloud
func TestAStockSchedulerWithThePluginKeepsReservations(t *testing.T) {
	labtest.Long(t)
	t.Run("fail-closed", func(t *testing.T) {
		b, door := withPlugin(t)
		r, reserved, others := b.reservesHalf()
		b.usesPlugin(door, r, reserved, others)
		b.rebuildsWithoutAlmanac(door, r, reserved)
		b.failing(door, b.cloud.Hosts(t), func(what string) {
			if said := b.unplaced(b.demo2, wish{name: what}); said != lookup {
				b.t.Errorf("%s: the tenant reads %q", what, said)
			}
			b.unplaced(b.demo2, wish{name: "three, " + what, count: 3})
			b.unplaced(b.demo, wish{name: "with its hint, " + what, hints: map[string]any{"reservation": r.ID}})
		})
	})
	t.Run("fail-open", func(t *testing.T) {
		b, door := withPlugin(t, "almanac.fail_open=true")
		r, reserved, others := b.reservesHalf()
		b.startsNow(r)
		b.await("the fence has the reserved hosts", func() bool { return slices.Equal(b.aggregates()["almanac-fence"], reserved) })
		b.failing(door, others, func(what string) {
			b.remove(b.placed(b.demo2, others, 0, wish{name: what})...)
			b.remove(b.placed(b.demo2, others, 0, wish{name: "three, " + what, count: 3})...)
			hint := wish{name: "with its hint, " + what, hints: map[string]any{"reservation": r.ID}}
			if said := b.unplaced(b.demo, hint); said != lookup {
				b.t.Errorf("%s: the tenant reads %q", what, said)
			}
		})
		b.deletesAll()
	})
}

// withPlugin starts almanacd beside the lab's OpenStack, and the plugin in its nova-scheduler.
// The plugin's calls go through the meddler.
func withPlugin(t *testing.T, options ...string) (*beside, *labtest.Meddler) {
	t.Helper()
	b := besideOpenStack(t, "OS_RESERVATION__LEAD_TIME=2h")
	door := labtest.Interpose(t, b.URL)
	labtest.SchedulerWith(t, plugin, append([]string{
		"scheduler.enable_isolated_aggregate_filtering=false",
		"filter_scheduler.available_filters=nova.scheduler.filters.all_filters", "filter_scheduler.available_filters=almanac_nova.AlmanacFilter",
		"filter_scheduler.enabled_filters=ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter," +
			"ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,AlmanacFilter",
		"filter_scheduler.weight_classes=nova.scheduler.weights.all_weighers,almanac_nova.AlmanacWeigher",
		"almanac.auth_section=placement", "almanac.endpoint_override=" + door.URL, "almanac.timeout=10",
	}, options...)...)
	return b, door
}

// reservesHalf reserves half of the hosts for later.
func (b *beside) reservesHalf() (r v1.Reservation, reserved, others []string) {
	b.t.Helper()
	hosts := b.cloud.Hosts(b.t)
	reserved, others = hosts[:len(hosts)/2], hosts[len(hosts)/2:]
	b.pool("cmp-*")
	r = b.reserve(b.demo, v1.ReservationRequest{
		Name: "render", HostProperties: among(reserved...), Quantity: new(len(reserved)),
		StartTime: new(b.soon(3600)), Duration: new(v1.Duration(3600)),
	})
	// The plugin keeps the hosts free even before the fence exists on the cloud.
	b.remove(b.placed(b.demo2, others, 0, wish{name: "before the fence"})...)
	b.prepared(r)
	return r, reserved, others
}

// usesPlugin checks that the hint admits the owner with any flavor, and no other project.
func (b *beside) usesPlugin(door *labtest.Meddler, r v1.Reservation, reserved, others []string) {
	b.t.Helper()
	hint := map[string]any{"reservation": r.ID}
	b.tellsWhy(b.demo, r.ID, wish{name: "too early", hints: hint})
	b.startsNow(r)

	before := door.Count(weigh)
	b.placed(b.demo2, others, 1, wish{name: "asked about once"})
	if n := door.Count(weigh) - before; n != 1 {
		b.t.Errorf("the plugin made %d calls for one server", n)
	}
	b.placed(b.demo2, others, 0, wish{name: "three outside", count: 3})
	// There are three passes, and one for the alternates.
	if n := door.Count(weigh) - before; n != 1+4 {
		b.t.Errorf("the plugin made %d calls for three servers", n-1)
	}
	b.deletesAll()

	b.placed(b.demo2, others, len(others), wish{name: "fill the others", count: len(others), flavor: big})
	b.unplaced(b.demo2, wish{name: "no room but on promised hosts", flavor: big})
	b.unplaced(b.demo, wish{name: "the owner without the hint", flavor: big})
	b.unplaced(b.admin, wish{name: "asked for a promised host", fields: map[string]any{"host": reserved[0]}})
	b.placed(b.demo, reserved, len(reserved), wish{name: "fill the reservation", count: len(reserved), flavor: big, hints: hint})
	b.deletesAll()
	b.placed(b.demo, reserved, 1, wish{name: "by its flavor", flavor: r.ID})
	b.deletesAll()
	b.placed(b.demo, reserved, 0, wish{name: "three inside", count: 3, hints: hint})
	b.unplaced(b.demo, wish{name: "more than it holds", count: len(reserved) + 1, flavor: big, hints: hint})
	b.wrongHints(r)
	b.deletesAll()
	b.quiet()
}

// rebuildsWithoutAlmanac checks that a rebuilt server stays on its host, whatever Almanac answers.
func (b *beside) rebuildsWithoutAlmanac(door *labtest.Meddler, r v1.Reservation, reserved []string) {
	b.t.Helper()
	guest := b.placed(b.demo, reserved, 1, wish{name: "to be rebuilt", hints: map[string]any{"reservation": r.ID}})[0]
	file := filepath.Join(b.t.TempDir(), "image")
	if err := os.WriteFile(file, []byte("almanac"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	var image struct{ ID string }
	b.cloud.OpenstackJSON(b.t, labtest.Admin, &image, "image", "create", "--public", "--file", file, "--disk-format", "raw", "--container-format", "bare", "other")
	b.t.Cleanup(func() { b.admin.Do(http.MethodDelete, "image", "/v2/images/"+image.ID, nil, nil) })

	door.Meddle("/", labtest.Cut)
	before := door.Count(weigh)
	b.demo.Must(http.MethodPost, "compute", "/servers/"+guest.ID+"/action", map[string]any{"rebuild": map[string]string{"imageRef": image.ID}}, nil)
	rebuilt := b.settled(guest.ID)[0]
	b.runOn([]string{guest.Host}, rebuilt)
	if n := door.Count(weigh) - before; n > 0 {
		b.t.Errorf("the plugin made %d calls for a rebuild", n)
	}
	door.Relent()
	b.endsWithItsGuests(r, reserved)
}

// failing runs holds while Almanac fails in one way after another, and at the end while it does
// not run. In between, servers are placed on the free hosts again.
func (b *beside) failing(door *labtest.Meddler, free []string, holds func(what string)) {
	b.t.Helper()
	before := len(labtest.SchedulerLog(b.t))
	for _, way := range []struct {
		what  string
		wrong labtest.Wrong
	}{
		{"answering garbage", labtest.Text("<html>")}, {"failing", labtest.Status(http.StatusInternalServerError)},
		{"slow", labtest.Hang}, {"ending connections", labtest.Cut},
	} {
		door.Meddle(weigh, way.wrong)
		holds(way.what)
		door.Relent()
		b.remove(b.placed(b.demo2, free, 1, wish{name: "after " + way.what})...)
	}
	b.crash()
	holds("stopped")
	if strings.Contains(labtest.SchedulerLog(b.t)[before:], "Traceback") {
		b.t.Error("nova-scheduler has logged a traceback")
	}
}
