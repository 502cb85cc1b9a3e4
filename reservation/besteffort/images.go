// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// arrivals knows when images can be on which nodes, and puts the transfers of the plan into the
// queue.
type arrivals struct {
	now    span.Instant
	queue  staging.Queue
	nodes  []string
	images map[string]*arrival
}

// arrival is when one image can be on the nodes.
type arrival struct {
	image staging.Image
	there []span.Instant // by node; unknown, or elsewhere
	// fresh is when a new transfer would deliver it to any other node.
	fresh   span.Instant
	seconds int64
	timed   bool
}

const (
	unknown   span.Instant = -1 << 62
	elsewhere span.Instant = unknown + 1
)

func (a *arrivals) of(image staging.Image) *arrival {
	all := a.images[image.ID]
	if all == nil {
		all = &arrival{image: image, there: make([]span.Instant, len(a.nodes)), fresh: unknown}
		for i := range all.there {
			all.there[i] = unknown
		}
		a.images[image.ID] = all
	}
	return all
}

// ready returns when the image can be on the node, and whether that needs a new transfer. A new
// transfer takes longer to some nodes than to others only where pools are limited.
func (a *arrivals) ready(image staging.Image, node int) (at span.Instant, fresh bool) {
	all := a.of(image)
	if at = all.there[node]; at == unknown || at == elsewhere && (a.queue.Limit != 0 || all.fresh == unknown) {
		var transfer *staging.Transfer
		at, transfer = a.queue.Ready(a.now, a.nodes[node], image)
		if transfer == nil {
			all.there[node] = at
			return at, false
		}
		all.there[node] = elsewhere
		if a.queue.Limit != 0 {
			return at, true
		}
		all.fresh = at
	}
	if all.there[node] == elsewhere {
		return all.fresh, true
	}
	return all.there[node], false
}

// seconds returns how long a new transfer takes.
func (a *arrivals) seconds(image staging.Image, node int) int64 {
	all := a.of(image)
	if !all.timed {
		if _, transfer := a.queue.Ready(a.now, a.nodes[node], image); transfer != nil {
			all.seconds, all.timed = transfer.Seconds, true
		}
	}
	return all.seconds
}

// send adds a transfer of the image to the queue, if the node needs one. It returns when the image
// can be on the node, and the transfer, which has the id; nil if none is needed. The transferred
// image stays in the node's pool until the instant until.
func (a *arrivals) send(image staging.Image, node int, id string, until span.Instant) (at span.Instant, transfer *staging.Transfer) {
	at, transfer = a.queue.Ready(a.now, a.nodes[node], image)
	if transfer == nil {
		return at, nil
	}
	transfer.ID, transfer.Expire = id, until
	a.queue = a.queue.With(*transfer)
	for _, all := range a.images {
		all.fresh = unknown
	}
	a.images[image.ID].there[node] = unknown
	return at, transfer
}
