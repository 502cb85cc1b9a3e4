package notice

import (
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation"
)

// eventTypes has our event type of each action that is told.
var eventTypes = map[reservation.Action]string{
	reservation.Create:    "reservation.create",
	reservation.Modify:    "reservation.change",
	reservation.Cancel:    "reservation.cancel",
	reservation.Start:     "reservation.start",
	reservation.WarnOfEnd: "reservation.before_end",
	reservation.End:       "reservation.end",
	reservation.Heal:      "reservation.heal",
	reservation.Degrade:   "reservation.degrade",
	reservation.Restore:   "reservation.restore",

	reservation.TellOfImage: "reservation.image",
}

// payloadVersion is that of our payload: the first number grows when something is
// taken away or means something else, the second when something is added.
const payloadVersion = "1.0"

// payload is what ours say: the reservation as REST shows it to an admin, and more.
type payload struct {
	Version string `json:"version"`
	v1.Reservation
	// ReservationVersion grows by one with every stored change, told or not.
	ReservationVersion int64   `json:"reservation_version"`
	Claims             []claim `json:"claims"`
	// Detail is what is different, in words; may be empty.
	Detail string `json:"detail"`
	// RequestID is that of the request that led to the change; empty where time did.
	RequestID string `json:"request_id"`
}

// claim is one host, or room for so many instances on it, from start to end.
type claim struct {
	Host      string    `json:"host"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Instances int       `json:"instances,omitempty"`
}

// ours gives the notification in our format, none for an action that is not told.
func ours(change reservation.Change, host string) []event {
	eventType, told := eventTypes[change.Action]
	if !told {
		return nil
	}
	r := &change.Reservation
	priority := oslo.Info
	if r.Status == reservation.Failed {
		priority = oslo.Error
	}
	claims := make([]claim, len(r.Claims))
	for i, c := range r.Claims {
		claims[i] = claim{c.Host, c.Span.Start.Time(), c.Span.End.Time(), c.Slices}
	}
	return []event{{"almanac." + host, eventType, priority, payload{
		payloadVersion, v1.Of(r), r.Version, claims, change.Detail, change.RequestID,
	}}}
}
