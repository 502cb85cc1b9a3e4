// SPDX-License-Identifier: Apache-2.0

package besteffort_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// drawSituation draws up to 40 nodes with reservations, and requests in all phases.
func drawSituation(t *rapid.T) besteffort.Situation {
	s := besteffort.Situation{Now: 10_000}
	number := func(label string, from, to int) int { return rapid.IntRange(from, to).Draw(t, label) }
	ahead := func(label string) span.Instant { return s.Now + span.Instant(number(label, -50, 600)) }
	nodes := number("nodes", 1, 40)
	for i := range nodes {
		name := fmt.Sprintf("N%02d", i)
		s.Nodes = append(s.Nodes, node(name, int64(number("cpus", 1, 4))))
		for range number("holds", 0, 2) {
			start := ahead("start")
			h := whole(name, start, start+span.Instant(number("held", 1, 300)))
			if rapid.Bool().Draw(t, "partial") {
				h.Resources = cpu(512)
			}
			s.Holds = append(s.Holds, h)
		}
	}
	if rapid.Bool().Draw(t, "images") {
		s.Images = staging.Queue{Rate: 10, Avoid: rapid.Bool().Draw(t, "avoid"), Pools: map[string][]staging.Entry{
			"N00": {{Image: staging.Image{ID: "A", Size: 300}, From: 0, Expire: span.Forever}},
		}}
	}
	phases := []besteffort.Phase{besteffort.Waiting, besteffort.Waiting, besteffort.Running, besteffort.Running, besteffort.Staging,
		besteffort.Starting, besteffort.Suspending, besteffort.Suspended, besteffort.Moving, besteffort.Resuming, besteffort.Stopping}
	for i := range number("requests", 1, 40) {
		r := job(fmt.Sprintf("J%02d", i), int64(number("duration", 0, 500)), number("vms", 1, 6), rapid.Bool().Draw(t, "parallel")).Request
		r.Place = int64(number("place", 1, 50))
		r.Shape.MemoryMB = int64(rapid.SampledFrom([]int{200, 512, 1024}).Draw(t, "memory"))
		if s.Images.Rate > 0 {
			id := rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "image")
			r.Image = staging.Image{ID: id, Size: 300 * int64(len(id))}
		}
		for v := range r.VMs {
			vm := &r.VMs[v]
			if vm.Phase = rapid.SampledFrom(phases).Draw(t, "phase"); vm.Phase != besteffort.Waiting {
				vm.Node, vm.Since, vm.Until = fmt.Sprintf("N%02d", number("on", 0, nodes)), s.Now-100, ahead("until")
				vm.Ran = int64(number("ran", 0, 500))
			}
		}
		s.Requests = append(s.Requests, r)
	}
	return s
}

func TestAPlanIsThatOfSearchesThatLookAtAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := draw(t, anything).rules
		s := drawSituation(t)
		if got, want := rules.Plan(s), rules.PlanThoroughly(s); !reflect.DeepEqual(got, want) {
			t.Fatalf("the plan is\n%+v\nand that of a thorough search\n%+v", got, want)
		}
	})
}
