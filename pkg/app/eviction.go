// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// evictedAt is the key of a server's metadata with the time of its eviction, RFC 3339.
const evictedAt = "almanac:evicted_at"

// noticeLinger is how long after the end of an eviction its notice may remain visible.
const noticeLinger = 5 * time.Minute

// newEvictions returns the evictions of preemptible instances for others.
func newEvictions(s shared) *eviction.Evictor {
	action, o := s.config.Preemptible.Action, s.config.Preemptible.Eviction
	o.Board, o.Placement, o.Looker = s.source.board, s.cloud.claims(), s.source.cloud
	o.Servers = servers{fenceBackend(s.config, s.cloud, s.hosts, s.db, s.clock.now), s.cloud.metadata(), s.bus.notifier, action, s.pace.Now}
	o.Records, o.NewID, o.EvictFirst, o.Now, o.Log = s.db, uuid.NewString, action == upkeep.OrderMigrate, s.pace.Now, s.logOf("scheduler")
	o.Wait = s.pace.Wait
	return eviction.New(o)
}

func (m *metrics) evictions(evicted func() (gone, stayed int64)) {
	const name, help = "almanac_evictions_total", "Preemptible instances that this process chose as victims, by outcome."
	m.counter(name, help, prometheus.Labels{"outcome": "gone"}, func() float64 { gone, _ := evicted(); return float64(gone) })
	m.counter(name, help, prometheus.Labels{"outcome": "stayed"}, func() float64 { _, stayed := evicted(); return float64(stayed) })
}

// servers are Nova's servers that are evicted.
type servers struct {
	fenceCloud
	metadata serverMetadata
	notifier *notice.Notifier // nil without notifications
	action   upkeep.Order     // the value of [preemptible] preempt_action
	now      func() time.Time
}

// Warn implements eviction.Servers.
func (s servers) Warn(ctx context.Context, w eviction.Warning) error {
	i := w.Instance
	if w.At.IsZero() {
		return s.stays(ctx, i.ID, w.Was)
	}
	var untold error
	if s.notifier != nil {
		untold = s.notifier.Evict(ctx, notice.Eviction{
			Instance: i.ID, Name: i.Name, ProjectID: i.ProjectID, UserID: i.UserID, Host: i.Host,
			At: w.At, Told: s.now(), Action: string(s.action), RequestID: w.Request,
		})
	}
	return errors.Join(untold, s.metadata.SetServerMetadata(ctx, i.ID, map[string]string{evictedAt: noticeTime(w.At)}))
}

// noticeTime is the value of evictedAt.
func noticeTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// withdraw removes the notice from a server, if it is still the one in i.
func (s servers) withdraw(ctx context.Context, i inventory.Instance) error {
	was, err := time.Parse(time.RFC3339, i.Metadata[evictedAt])
	if err != nil {
		return nil
	}
	return s.stays(ctx, i.ID, was)
}

// stays removes the notice from a server if it has the time was, or any notice if was is zero.
func (s servers) stays(ctx context.Context, id string, was time.Time) error {
	if !was.IsZero() {
		now, err := s.Server(ctx, id)
		switch {
		case fault.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		case now.Metadata[evictedAt] != noticeTime(was):
			return nil
		}
	}
	err := s.metadata.DeleteServerMetadata(ctx, id, evictedAt)
	if fault.Is(err, fault.Conflict) { // the server leaves anyway, or Nova is busy with it
		return nil
	}
	return err
}

// Leave implements eviction.Servers.
func (s servers) Leave(ctx context.Context, i inventory.Instance) error {
	return s.Order(ctx, i, s.action)
}

// departures notifies the owners of instances that an ended reservation left behind and that are
// evicted for the next one.
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
