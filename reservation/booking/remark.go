// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Remark adds a sentence about the image to the log of a reservation that has not started. It
// changes nothing else. changed is false if the newest such sentence is the same, or if the
// reservation has started or is over.
func (d *Changes) Remark(ctx context.Context, id, sentence string) (changed bool, err error) {
	_, err = d.modify(ctx, Caller{Admin: true}, id, "store the remark about the image", func(v planning.View, r reservation.Reservation) (amended, error) {
		next := planning.Remarked(r, sentence, v.Now)
		changed = next.Version != r.Version
		return amended{next: next, cause: reservation.Cause{Action: reservation.ActionRemark, Detail: sentence}}, nil
	})
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) { // it is over
		return false, nil
	}
	return changed && err == nil, err
}
