package filters

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// slices judges a request that names a reservation of instances: each of its hosts may run as
// many as the reservation has slices there.
func (f Reservation) slices(s *inventory.States, r *placing.Request, of *reservation.Reservation, now span.Instant) Test {
	var class *inventory.Column
	if f.Class != nil {
		class = s.Column(f.Class(of.ID))
	}
	left, slots := 0, held(of, now)
	inside, open := hostset.New(s.Len()), hostset.New(s.Len())
	for host, most := range slots {
		i, known := s.Index(host)
		if !known {
			continue
		}
		inside.Add(i)
		others, own := count(s.InstancesOn(i), of.ID, r.Instances)
		if class != nil {
			others = max(others, int(class.Used[i])-own)
		}
		if free := most - others; free > 0 {
			open.Add(i)
			left += free
		}
	}
	if left < len(r.Instances) {
		return refuseAll(fmt.Sprintf("reservation %s has room for %d more instances, %d are requested", of.ID, left, len(r.Instances)))
	}
	return subset{open, func(i int) string {
		if !inside.Has(i) {
			return notOf(of)
		}
		return fmt.Sprintf("all slices of reservation %s on the host are in use", of.ID)
	}}
}

// count returns how many of the instances belong to the reservation but not to the request, and
// how many belong to the request.
func count(on []inventory.Instance, id string, request []string) (others, own int) {
	for n := range on {
		switch i := &on[n]; {
		case slices.Contains(request, i.ID):
			own++
		case i.ReservationID() == id:
			others++
		}
	}
	return others, own
}
