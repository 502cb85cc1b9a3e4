package booking

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// own gives the IDs of the instances that run in the reservation on a host, as the
// inventory has them; none before the start.
func (m *move) own(host string) []string {
	number, known := m.search.view.roster.numbers[host]
	if !known || !m.pinned() {
		return nil
	}
	h := m.search.view.roster.host(number)
	if h == nil {
		return nil
	}
	var ids []string
	for i := range h.Instances {
		if h.Instances[i].ReservationID() == m.from.ID {
			ids = append(ids, h.Instances[i].ID)
		}
	}
	return ids
}

// share says how much of each of kept stays, quantity at most together: first what the
// reservation's instances use where it is well, then the rest in their order.
func (m *move) share(quantity int) []int {
	shares, used := make([]int, len(m.kept)), make(map[int]int)
	for _, k := range m.kept {
		used[k.host] = len(m.own(m.search.view.roster.names[k.host]))
	}
	for i, k := range m.kept {
		if m.misses(k) {
			continue
		}
		shares[i] = min(k.count, used[k.host], quantity)
		used[k.host] -= shares[i]
		quantity -= shares[i]
	}
	for i, k := range m.kept {
		more := min(k.count-shares[i], quantity)
		shares[i] += more
		quantity -= more
	}
	return shares
}

// vacated fails with a Conflict fault where claims give up a host, or a part of one,
// that instances of the reservation still use: nobody would take them off it, and the
// next who has it could not begin.
func (m *move) vacated(claims []reservation.Claim) error {
	before, after := m.current(m.from.Claims), m.current(claims)
	for _, host := range hostNames(before) {
		had, has := countOn(before, host), countOn(after, host)
		own := m.own(host)
		if has >= had || len(own) <= has {
			continue
		}
		names := strings.Join(shortened(own), ", ")
		what := fmt.Sprintf("delete its instances on host %s first: %s", host, names)
		if has > 0 {
			what = fmt.Sprintf("delete %d of its instances on host %s first: it would keep %d there, and has %s", len(own)-has, host, has, names)
		}
		return &fault.Error{Kind: fault.Conflict, Field: "quantity", Message: "the reservation would give up what its instances use; " + what}
	}
	return nil
}

// current are those of the claims that last now.
func (m *move) current(claims []reservation.Claim) []reservation.Claim {
	return slices.DeleteFunc(slices.Clone(claims), func(c reservation.Claim) bool { return !c.Span.Contains(m.search.view.Now) })
}
