// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// tick is the unit of drawn times, so that claims often touch and often collide.
const tick = 10

func drawTicks(t *rapid.T, least, most int, label string) int64 {
	return tick * int64(rapid.IntRange(least, most).Draw(t, label))
}

func drawHosts(t *rapid.T) []inventory.Host {
	hosts := make([]inventory.Host, rapid.IntRange(1, 6).Draw(t, "hosts"))
	for i := range hosts {
		h := &hosts[i]
		h.Name = fmt.Sprintf("h%d", i)
		h.Reservable = rapid.IntRange(0, 5).Draw(t, "reservable") > 0
		h.BootSeconds = rapid.SampledFrom([]int64{0, 30, 75}).Draw(t, "boot")
		h.FlopsPerWatt = float64(rapid.IntRange(0, 2).Draw(t, "flops per watt"))
		h.Capacity = rapid.SampledFrom([]resource.Vector{
			{VCPUs: 4, MemoryMB: 4096},
			{VCPUs: 8, MemoryMB: 8192},
			{VCPUs: 8, MemoryMB: 2048, Custom: map[string]int64{"CUSTOM_FPGA": 2}},
		}).Draw(t, "capacity")
		if gpu := rapid.SampledFrom([]string{"", "a100", "h100"}).Draw(t, "gpu"); gpu != "" {
			h.Properties = map[string]inventory.Value{"gpu": inventory.StringValue(gpu)}
		}
		drawState(t, h)
	}
	// A request for a class that no host has is invalid.
	hosts[len(hosts)-1].Capacity.Custom = map[string]int64{"CUSTOM_FPGA": 2}
	return hosts
}

// drawState changes facts that an inventory may report differently from one reading to the next.
func drawState(t *rapid.T, h *inventory.Host) {
	h.Power = rapid.SampledFrom([]inventory.Power{
		inventory.PowerOn, "", inventory.PowerOn, inventory.PowerOn, inventory.PowerSleeping, inventory.PowerWaking, inventory.PowerFailed,
	}).Draw(t, "power")
	h.InstanceCount = rapid.IntRange(0, 2).Draw(t, "guests")
	h.Used = resource.Vector{VCPUs: int64(h.InstanceCount), MemoryMB: 1024 * int64(h.InstanceCount)}
}

// meaning is a filter and its meaning in Go.
type meaning struct {
	filter string
	means  func(h *inventory.Host, ahead bool) bool
}

var meanings = []meaning{
	{"", func(*inventory.Host, bool) bool { return true }},
	{`["=", "$gpu", "a100"]`, func(h *inventory.Host, _ bool) bool { return h.Properties["gpu"].Any() == "a100" }},
	{`["and", [">=", "$vcpus", 8], ["not", ["=", "$name", "h1"]]]`, func(h *inventory.Host, _ bool) bool {
		return h.Capacity.VCPUs >= 8 && h.Name != "h1"
	}},
	{`[">=", "$free_ram_mb", 4000]`, func(h *inventory.Host, ahead bool) bool {
		if ahead {
			return h.Capacity.MemoryMB >= 4000
		}
		return h.Free().MemoryMB >= 4000
	}},
	{`["=", "$colour", "red"]`, func(*inventory.Host, bool) bool { return false }},
}

func meaningOf(filter string) func(h *inventory.Host, ahead bool) bool {
	for _, m := range meanings {
		if m.filter == filter {
			return m.means
		}
	}
	panic("no such filter: " + filter)
}

var projects = []booking.Caller{{ProjectID: "demo", UserID: "ann"}, {ProjectID: "lab", UserID: "bob"}}

// drawRequest draws a request at now; a few of them are invalid.
func drawRequest(t *rapid.T, now span.Instant) reservation.Request {
	req := reservation.Request{Terms: reservation.Terms{
		Kind:           rapid.SampledFrom(reservation.HostKinds).Draw(t, "kind"),
		Quantity:       rapid.IntRange(1, 4).Draw(t, "quantity"),
		HostProperties: meanings[max(0, rapid.IntRange(-6, len(meanings)-1).Draw(t, "filter"))].filter,
		BeforeEnd:      drawTicks(t, 0, 3, "before end"),
	}}
	if req.Kind == reservation.Instances {
		req.Affinity = rapid.SampledFrom([]calendar.Affinity{"", calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}).Draw(t, "affinity")
		req.Resources = rapid.SampledFrom(shapes).Draw(t, "shape")
	} else {
		req.Policy = rapid.SampledFrom(calendar.Policies).Draw(t, "policy")
	}
	form := rapid.IntRange(0, 15).Draw(t, "which times")
	if form&1 != 0 {
		req.Start = now.Add(drawTicks(t, 0, 25, "start"))
	}
	if form&2 != 0 {
		req.End = max(req.Start, now).Add(drawTicks(t, 1, 30, "window"))
	}
	if form&4 != 0 || req.End == 0 {
		req.Duration = drawTicks(t, 1, 12, "duration")
	}
	return req
}

var (
	shapes     = []resource.Vector{{VCPUs: 1}, {VCPUs: 3, MemoryMB: 1024}, {MemoryMB: 2048}, {VCPUs: 2, Custom: map[string]int64{"CUSTOM_FPGA": 1}}}
	affinities = []calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}
)

// drawChange draws a change of one or several parts of r.
func drawChange(t *rapid.T, r reservation.Reservation) planning.Change {
	var c planning.Change
	parts := rapid.IntRange(1, 15).Draw(t, "parts")
	if parts&1 != 0 {
		c.Quantity = new(rapid.IntRange(1, 6).Draw(t, "new quantity"))
	}
	if parts&2 != 0 {
		c.End = new(r.Span.End + span.Instant(drawTicks(t, -6, 10, "later end")))
	}
	if parts&4 != 0 {
		c.Start = new(r.Span.Start + span.Instant(drawTicks(t, -6, 10, "later start")))
	}
	if parts&8 != 0 {
		c.Name = new(rapid.SampledFrom([]string{"", "night run"}).Draw(t, "new name"))
	}
	if filter := rapid.SampledFrom(meanings).Draw(t, "new filter").filter; rapid.IntRange(0, 3).Draw(t, "another filter") == 0 && filter != r.HostProperties {
		c.HostProperties = &filter
	}
	if rapid.IntRange(0, 5).Draw(t, "another end") == 0 {
		c.OnEnd = new(rapid.SampledFrom(reservation.OnEnds).Draw(t, "new on_end"))
	}
	if rapid.IntRange(0, 5).Draw(t, "another warning") == 0 {
		c.BeforeEnd = new(drawTicks(t, 0, 6, "new before_end"))
	}
	if shape := rapid.SampledFrom(shapes).Draw(t, "new shape"); r.Kind == reservation.Instances && rapid.IntRange(0, 3).Draw(t, "another shape") == 0 {
		c.Resources = &shape
	}
	if affinity := rapid.SampledFrom(affinities).Draw(t, "new affinity"); r.Kind == reservation.Instances && rapid.IntRange(0, 3).Draw(t, "another affinity") == 0 {
		c.Affinity = &affinity
	}
	return c
}

// drawLimits draws limits that are sometimes reached; half of the time there are none.
func drawLimits(t *rapid.T) planning.Limits {
	if rapid.Bool().Draw(t, "without limits") {
		return planning.Limits{}
	}
	return planning.Limits{
		Duration:        rapid.SampledFrom([]int64{0, 100, 200}).Draw(t, "longest"),
		StartAhead:      rapid.SampledFrom([]int64{0, 100, 200}).Draw(t, "farthest"),
		Hosts:           rapid.SampledFrom([]int{0, 2, 4, 8}).Draw(t, "most hosts"),
		HostSeconds:     rapid.SampledFrom([]int64{0, 400, 1200}).Draw(t, "most host-seconds"),
		ExtensionWindow: rapid.SampledFrom([]int64{0, 50}).Draw(t, "extension window"),
	}
}

// drawLive draws one of the live reservations; ok is false if there is none.
func drawLive(t *rapid.T, s *scene) (r reservation.Reservation, ok bool) {
	live := s.live(t)
	if len(live) == 0 {
		return r, false
	}
	return rapid.SampledFrom(live).Draw(t, "which"), true
}
