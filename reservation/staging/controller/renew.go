// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// expiring returns the images that hosts may soon remove although a reservation that begins later
// relies on them, because an earlier one has them until then. A host that is requested to cache an
// image that it has keeps it for another lifetime, and answers at once. state is that of the
// demands.
func (r *Rules) expiring(state staging.State, f *staging.Facts, demands []staging.Demand, now span.Instant) []staging.Transfer {
	soon := map[imageOnHost]staging.Transfer{}
	for host, entries := range f.Pools {
		for _, e := range entries {
			if !e.Lasting && e.Expire > now && e.Expire <= now.Add(min(r.Lifetime/4, renewAhead)) {
				soon[imageOnHost{e.Image.ID, host}] = staging.Transfer{Image: e.Image, Node: host, Seconds: 1, Deadline: e.Expire}
			}
		}
	}
	if len(soon) == 0 {
		return nil
	}
	fresh := map[imageOnHost]span.Instant{} // the first deadline of a further transfer
	for _, t := range state.Transfers {
		at := imageOnHost{t.Image.ID, t.Node}
		if first, is := fresh[at]; !t.Started && (!is || t.Deadline < first) {
			fresh[at] = t.Deadline
		}
	}
	var list []staging.Transfer
	for _, d := range demands {
		for _, host := range d.Nodes {
			at := imageOnHost{d.Image.ID, host}
			t, is := soon[at]
			if first, has := fresh[at]; is && d.Span.Start > t.Deadline && (!has || first > d.Span.Start) {
				kept := slices.IndexFunc(state.Pools[host], func(e staging.Entry) bool { return e.Image.ID == d.Image.ID })
				t.Expire = state.Pools[host][kept].Expire
				list = append(list, t)
				delete(soon, at)
			}
		}
	}
	slices.SortFunc(list, func(a, b staging.Transfer) int {
		return cmp.Or(cmp.Compare(a.Image.ID, b.Image.ID), cmp.Compare(a.Node, b.Node))
	})
	return list
}
