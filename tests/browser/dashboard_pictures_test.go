// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// pictured is a cloud with everything that the calendar shows.
const pictured = `hosts:
  - {name: "cpu-[01-08]", vcpus: 32, memory_mb: 131072, disk_gb: 960, zone: az1, aggregates: [general], properties: {rack: 1, gpu: none}, instance_count: 4, used: {vcpus: 12, memory_mb: 32768}}
  - {name: "cpu-[09-12]", vcpus: 32, memory_mb: 131072, disk_gb: 960, zone: az2, aggregates: [general], properties: {rack: 2, gpu: none}}
  - {name: "cpu-[13-14]", vcpus: 32, memory_mb: 131072, disk_gb: 960, zone: az2, aggregates: [general], properties: {rack: 2, gpu: none}, power: {state: sleeping, boot_seconds: 180}}
  - {name: "cpu-15", vcpus: 32, memory_mb: 131072, disk_gb: 960, zone: az2, aggregates: [general], properties: {rack: 2, gpu: none}, power: {state: waking, boot_seconds: 180}}
  - {name: "cpu-16", vcpus: 32, memory_mb: 131072, disk_gb: 960, zone: az2, aggregates: [general], properties: {rack: 2, gpu: none}, power: {state: failed, boot_seconds: 180}}
  - {name: "gpu-[01-04]", vcpus: 64, memory_mb: 524288, disk_gb: 3840, zone: az1, aggregates: [fast, gpu], properties: {rack: 3, gpu: a100}, custom: {CUSTOM_GPU: 4}}
  - {name: "gpu-[05-06]", vcpus: 64, memory_mb: 524288, disk_gb: 3840, zone: az2, aggregates: [fast, gpu], properties: {rack: 4, gpu: h100}, custom: {CUSTOM_GPU: 4}}
  - {name: "login-01", vcpus: 8, memory_mb: 16384, zone: az1, aggregates: [general], properties: {rack: 1, gpu: none}, reservable: false}
`

// shownWish is a reservation of the pictures; times are hours from now.
type shownWish struct {
	name         string
	from, hours  float64
	quantity     int
	filter, kind string
	vcpus        int64
}

var shownOurs = []shownWish{
	{name: "training run 7", from: 0, hours: 40, quantity: 2, filter: `["=", "$gpu", "a100"]`},
	{name: "climate ensemble", from: 20, hours: 52, quantity: 4, filter: `["=", "$rack", 1]`},
	{name: "nightly tests", from: 52, hours: 9, quantity: 3, filter: `["=", "$rack", 2]`},
	{name: "web course", from: 6, hours: 96, quantity: 3, filter: `["=", "$rack", 2]`, kind: "instance", vcpus: 12},
	{name: "שיעור ברשתות", from: 76, hours: 40, quantity: 1, filter: `["=", "$gpu", "h100"]`},
	{name: "inference demo", from: 96, hours: 30, quantity: 2, filter: `["=", "$gpu", "a100"]`},
}

var shownTheirs = []shownWish{
	{name: "genome", from: 0, hours: 18, quantity: 3, filter: `["=", "$rack", 1]`},
	{name: "render", from: 30, hours: 44, quantity: 2, filter: `["=", "$gpu", "a100"]`},
	{name: "fluids", from: 14, hours: 60, quantity: 1, filter: `["=", "$gpu", "h100"]`},
	{name: "storage bench", from: 80, hours: 36, quantity: 4, filter: `["=", "$rack", 1]`},
	{name: "ci", from: 3, hours: 30, quantity: 4, filter: `["=", "$rack", 2]`, kind: "instance", vcpus: 8},
	{name: "kernel builds", from: 8, hours: 110, quantity: 1, filter: `["=", "$name", "cpu-10"]`},
}

// grant books the wishes.
func grant(t *testing.T, s *built.Service, wishes []shownWish) {
	t.Helper()
	for _, w := range wishes {
		duration := v1.Duration(w.hours * 3600)
		request := v1.ReservationRequest{Name: w.name, Kind: w.kind, Duration: &duration, Quantity: &w.quantity, HostProperties: []byte(w.filter)}
		if w.from > 0 {
			begin := time.Now().Add(time.Duration(w.from * float64(time.Hour)))
			request.StartTime = &begin
		}
		if w.vcpus > 0 {
			request.Resources = &v1.Resources{VCPUs: w.vcpus, MemoryMB: 16384, DiskGB: 40}
		}
		if _, err := s.Client(t).CreateReservation(t.Context(), request, client.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
	}
}

// TestPicturesOfThePage writes the pictures of the page, of a full cloud and of an empty one: all of them to the folder
// that ALMANAC_PICTURES names, and four into docs/figures.
func TestPicturesOfThePage(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_PICTURES") == "" {
		t.Skip("make pictures runs it")
	}
	browser := labtest.StartBrowser(t)
	folder := built.NewFolder(t, pictured)
	first := built.Start(t, folder, "OS_NOAUTH__PROJECT_ID=physics", "OS_NOAUTH__ROLES=member")
	grant(t, first, shownTheirs)
	first.Stop(t)
	s := built.Start(t, folder, "OS_NOAUTH__ROLES=member", "OS_API__FEED_SECRET=a secret of the pictures")
	grant(t, s, shownOurs)
	p := &page{Browser: browser, t: t, url: s.URL}
	running := reservations(t, s)[0].ID
	empty := built.StartOn(t, "hosts: [{name: host-01, vcpus: 16, memory_mb: 65536}, {name: host-02, vcpus: 16, memory_mb: 65536}]\n")
	inEachLook(p, func(name string, width int) {
		p.url = s.URL
		p.open("calendar?group=rack", ".picture")
		p.Eventually("the calendar has its hosts", `document.querySelector('.picture').dataset.hosts === '23' && document.querySelector('.live.on')`)
		p.Picture("calendar-" + name)
		p.Click("#book")
		p.Fill(".booking input[name=quantity]", "3")
		p.Fill(".booking input[name=name]", "training run 8")
		labtest.Evaluate[bool](p.Browser, `(() => { const one = document.querySelector('.booking .filter input.code'); one.value = '["=", "$gpu", "a100"]'; for (const type of ['input', 'change']) one.dispatchEvent(new Event(type, {bubbles: true})); return true })()`)
		p.Await("#refusal")
		p.Picture("refusal-" + name)
		p.Click("#take-earliest")
		p.Await("#offer")
		p.Picture("offer-" + name)
		p.tools(width)
		p.Click("#table-switch")
		p.Await(".table-view table")
		p.Picture("table-" + name)
		p.Click("#table-switch")
		p.Click("#close-form") // the tab would keep it
		p.open("reservations", "tbody a")
		p.Picture("reservations-" + name)
		p.open("reservation/"+running, ".badge.active")
		p.Picture("reservation-" + name)
		p.url = empty.URL
		p.calendarOf(2)
		p.Picture("empty-" + name)
		p.open("reservations", ".empty")
		p.Picture("nothing-" + name)
	})
	s.Stop(t)
	p.url = built.Start(t, folder).URL
	inEachLook(p, func(name string, _ int) {
		for _, one := range operatorPages {
			p.open("operator/"+one.name, "main h1")
			p.Eventually("the page "+one.name+" has its content", `!document.querySelector('main').textContent.includes(' …')`)
			p.Picture(one.name + "-" + name)
		}
	})
	for picture, name := range map[string]string{"calendar-1440-light": "dashboard", "offer-1440-dark": "dashboard-offer", "reservation-1024-light": "dashboard-reservation", "calendar-360-dark": "dashboard-phone"} {
		found, err := filepath.Glob(filepath.Join(os.Getenv("ALMANAC_PICTURES"), "*-"+picture+".png"))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no picture %s: %v", picture, err)
		}
		text, err := os.ReadFile(found[len(found)-1])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("../..", "docs", "figures", name+".png"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// inEachLook calls take in each size of the window and in both themes.
func inEachLook(p *page, take func(name string, width int)) {
	for _, size := range []struct{ width, height int }{{1440, 900}, {1024, 768}, {360, 780}} {
		for _, theme := range []string{"light", "dark"} {
			p.Look(size.width, size.height, theme == "dark")
			take(fmt.Sprintf("%d-%s", size.width, theme), size.width)
			p.wellBehaved()
		}
	}
}
