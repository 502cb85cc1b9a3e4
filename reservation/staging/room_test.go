// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// The oracle tries each start. The nodes of the request need no image otherwise.
func TestTheFirstStartWithRoomForTransfersIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const now, farthest = 100, 700
		images := make([]staging.Image, 3)
		for i := range images {
			images[i] = staging.Image{ID: fmt.Sprint("i", i), Size: rapid.Int64Range(0, 25).Draw(t, "size")}
		}
		f := drawFacts(t, images, now)
		f.Site.Limit, f.Site.Links = 0, nil
		var live []staging.Demand
		for i := range rapid.IntRange(0, 14).Draw(t, "demands") {
			live = append(live, drawDemand(t, fmt.Sprint("d", i), images, now))
		}
		a := f.Accepted(now, live).Admission()
		d := staging.Demand{ID: "request", Image: rapid.SampledFrom(images).Draw(t, "image")}
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			d.Nodes = append(d.Nodes, fmt.Sprint("other", i))
		}
		seconds := a.Seconds(d.Image, d.Nodes...)
		from := now + span.Instant(rapid.IntRange(0, 200).Draw(t, "from"))
		got, ok := a.FirstRoom(seconds, from, false)
		if !a.OneChannel() {
			return // a transfer under way that has not begun yet
		}
		if least, could := a.FirstRoom(seconds, from, true); ok && (!could || least > got) {
			t.Fatalf("%v is possible, but nothing before %v, %v", got, least, could)
		}
		for start := from; start < farthest; start++ {
			d.Span = span.New(start, 50)
			if a.Allows(d) != (ok && start == got) && (!ok || start <= got) {
				t.Fatalf("%v, %v; %v is allowed: %v", got, ok, start, a.Allows(d))
			}
			if ok && start == got {
				return
			}
		}
	})
}
