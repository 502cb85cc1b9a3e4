package app

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	novafence "github.com/almanac-cloud/almanac/reservation/upkeep/openstack"
)

// evictedAt is the key of a server's metadata that says when it has to go, RFC 3339.
const evictedAt = "almanac:evicted_at"

// noticeLinger is how long after the end of an eviction its notice may be seen still.
const noticeLinger = 5 * time.Minute

// servers are those of Nova that make room.
type servers struct {
	*novafence.Cloud
	compute  *nova.Client
	notifier *notice.Notifier // nil where nobody is notified
	action   string           // as [preemptible] make_room has it
	now      func() time.Time
}

// Warn implements dispatch.Servers.
func (s servers) Warn(ctx context.Context, w dispatch.Warning) error {
	i := w.Instance
	if w.At.IsZero() {
		return s.stays(ctx, i.ID, w.Was)
	}
	var untold error
	if s.notifier != nil {
		untold = s.notifier.Evict(ctx, notice.Eviction{
			Instance: i.ID, Name: i.Name, ProjectID: i.ProjectID, UserID: i.UserID, Host: i.Host,
			At: w.At, Told: s.now(), Action: s.action, RequestID: w.Request,
		})
	}
	return errors.Join(untold, s.compute.SetServerMetadata(ctx, i.ID, map[string]string{evictedAt: noticeTime(w.At)}))
}

// noticeTime is the value of evictedAt.
func noticeTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// withdraw takes the notice from a server, where it is the one that i has.
func (s servers) withdraw(ctx context.Context, i inventory.Instance) error {
	was, err := time.Parse(time.RFC3339, i.Metadata[evictedAt])
	if err != nil {
		return nil
	}
	return s.stays(ctx, i.ID, was)
}

// stays takes the notice from a server, where it is that for a time or the time is zero.
func (s servers) stays(ctx context.Context, id string, was time.Time) error {
	if !was.IsZero() {
		now, err := s.compute.Server(ctx, id)
		switch {
		case fault.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		case now.Metadata[evictedAt] != noticeTime(was):
			return nil
		}
	}
	err := s.compute.DeleteServerMetadata(ctx, id, evictedAt)
	if fault.Is(err, fault.Conflict) { // it goes all the same, or Nova is busy with it
		return nil
	}
	return err
}

// Leave implements dispatch.Servers.
func (s servers) Leave(ctx context.Context, i inventory.Instance) error {
	return s.Order(ctx, i, orders[s.action])
}

// departures tells the owners of instances that a reservation has left, and that make room
// for the next one.
type departures struct {
	notifier *notice.Notifier
}

func (t departures) tell(ctx context.Context, d upkeep.Departure) error {
	i, at := d.Instance, d.At.Time()
	return t.notifier.Evict(ctx, notice.Eviction{
		Instance: i.ID, Name: i.Name, ProjectID: i.ProjectID, UserID: i.UserID, Host: i.Host,
		At: at, Told: at, Action: string(d.Order), Reservation: d.Reservation,
	})
}
