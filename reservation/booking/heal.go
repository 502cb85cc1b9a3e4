// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Heal replaces the failed hosts of a reservation: from now on if it has started or is about to,
// for its whole span if it is pending. If no host is free, the reservation keeps its claims on the
// failed host, and Degraded states what is missing, until no host is missing any more. The
// project's limits do not apply. Heal does not change a reservation that is ending or over, or
// maintenance, whose hosts need not work. changed is true if anything changed.
func (d *Changes) Heal(ctx context.Context, id string, failed planning.Failed) (r reservation.Reservation, changed bool, err error) {
	return d.heal(ctx, id, failed, false)
}

// Rehome replaces, like Heal, hosts that the owner cannot use yet because they are not free, although
// they have not failed. If no host is free, nothing changes, and the reservation is not degraded.
func (d *Changes) Rehome(ctx context.Context, id string, blocked planning.Failed) (r reservation.Reservation, changed bool, err error) {
	return d.heal(ctx, id, blocked, true)
}

func (d *Changes) heal(ctx context.Context, id string, failed planning.Failed, blocked bool) (r reservation.Reservation, changed bool, err error) {
	r, err = d.modify(ctx, Caller{Admin: true, SeesHidden: true}, id, "store the healed reservation", func(v planning.View, r reservation.Reservation) (amended, error) {
		next, cause := planning.Heal(v, r, failed, blocked)
		changed = next.Version != r.Version
		return amended{next: next, cause: cause}, nil
	})
	switch {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Conflict): // it is over
		return r, false, nil
	case err != nil:
		return r, false, err
	}
	return r, changed, nil
}
