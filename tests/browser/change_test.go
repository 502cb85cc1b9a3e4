// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// An owner changes what else a change can change: the filter, what happens at the end, the warning, and before the start
// the size and the placement of instances. The end has the choices of the operator.
func TestWhatAChangeCanChangeIsChangedInTheBrowser(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, gpuHosts, "OS_RESERVATION__ON_END_CHOICES=delete,stop")
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	one := book(t, s, v1.ReservationRequest{Name: "course", Kind: "instance", Resources: &v1.Resources{VCPUs: 2, MemoryMB: 4096}}, 24*time.Hour, 5*time.Hour)
	p.open("reservation/"+one.ID, "#rename")

	becomes := func(what string, is func(v1.Reservation) bool) {
		t.Helper()
		built.Eventually(t, what, func() bool {
			got, err := s.Client(t).GetReservation(t.Context(), one.ID)
			return err == nil && is(got)
		})
		p.Eventually("the change is over", `!document.querySelector('#cancel[aria-disabled]')`)
	}
	if choices := labtest.Evaluate[string](p.Browser, `[...document.querySelectorAll('#on-end option')].map(one => one.value).join(' ')`); choices != "delete stop" {
		t.Errorf("at the end the page offers %q", choices)
	}
	p.Choose("#on-end", "stop")
	p.Click("#submit-on_end")
	becomes("its servers are stopped", func(r v1.Reservation) bool { return r.OnEnd == "stop" })
	p.Choose("#affinity", "same")
	p.Click("#submit-affinity")
	becomes("its instances are on one host", func(r v1.Reservation) bool { return r.Affinity == "same" })
	p.replace("#size-vcpus", "8")
	p.Click("#submit-resources")
	becomes("an instance has 8 vCPUs", func(r v1.Reservation) bool { return r.Resources.VCPUs == 8 && r.Resources.MemoryMB == 4096 })
	p.replace("#before-end", "90")
	p.Press(labtest.Enter)
	becomes("it warns 90 minutes before", func(r v1.Reservation) bool { return r.BeforeEnd == 5400 })
	p.Eventually("the field has the new warning", `document.querySelector('#before-end').value === '1h 30m'`)

	p.Click(".forms summary")
	p.Await("#change-filter select")
	p.replace("#change-filter-plain", "gpu=a100")
	p.Click("#submit-host_properties")
	becomes("it has a filter", func(r v1.Reservation) bool { return string(r.HostProperties) == `["=","$gpu","a100"]` })
	p.says(".toast:last-child", "gpu = a100")
	for _, width := range []int{1440, 390} {
		p.Look(width, 900, false)
		labtest.Evaluate[bool](p.Browser, `(document.querySelector('.forms').scrollIntoView(), true)`)
		if wide := labtest.Evaluate[int](p.Browser, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("at %d pixels the page is %d wide", width, wide)
		}
		p.Picture(fmt.Sprintf("change-%d", width))
	}
	p.Click(".toast:last-child .undo")
	becomes("it has no filter again", func(r v1.Reservation) bool { return r.HostProperties == nil })
	p.wellBehaved()
}

// A cancellation is one of what the question shows. What somebody changes while it is asked is shown there, and the user
// decides again.
func TestACancellationOfWhatHasChangedAsksAgain(t *testing.T) {
	p, s := startPage(t)
	one := book(t, s, v1.ReservationRequest{Name: "training"}, 24*time.Hour, 2*time.Hour)
	p.open("reservation/"+one.ID, "#rename")
	p.Eventually("the page hears of changes", `document.querySelector('.live.on')`)
	p.Click("#cancel")
	p.Await("#confirm-cancel")
	rename(t, s, one.ID, "still needed")
	p.says("dialog #cancel-changed", "This is what it is now")
	p.says("dialog", "still needed")
	p.Picture("cancel-changed")
	p.Click("#keep")
	p.Eventually("the focus is back on the button", `document.activeElement.id === 'cancel'`)
	if got := reservations(t, s)[0].Status; got != "pending" {
		t.Errorf("the reservation is %s", got)
	}

	// A change that the page has not heard of when the user confirms is found in the answer to the cancellation.
	labtest.Evaluate[bool](p.Browser, `(() => {
		const send = window.fetch, path = location.pathname.replace('dashboard/', 'v1/reservations/') + location.hash.split('/').at(-1);
		window.fetch = async (to, options) => {
			if (options?.method === 'DELETE' && !to.includes('dry_run')) {
				window.fetch = send;
				await send(path, {method: 'PATCH', body: JSON.stringify({name: 'changed at the last moment'})});
			}
			return send(to, options);
		};
		return true;
	})()`)
	p.Click("#cancel")
	p.Await("#confirm-cancel")
	p.Click("#confirm-cancel")
	p.says("dialog #cancel-changed", "This is what it is now")
	p.says("dialog", "changed at the last moment")
	if got := reservations(t, s)[0].Status; got != "pending" {
		t.Errorf("the reservation is %s", got)
	}
	p.Eventually("the question can be answered", `!document.querySelector('#confirm-cancel[aria-disabled]')`)
	p.Click("#confirm-cancel")
	p.Await(".badge.canceled")
	for _, trouble := range p.Troubles() {
		if want := "412"; !strings.Contains(trouble, want) {
			t.Errorf("the page has the trouble %s", trouble)
		}
	}
}
