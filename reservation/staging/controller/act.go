// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// carryOut begins the transfers that are due according to the records s, and informs owners.
func (c *Controller) carryOut(ctx context.Context, held *job.Held, s *Stored, live []reservation.Reservation, now span.Instant) error {
	generation := c.publish(*s)
	p := c.decide(s, live, now)
	c.laid.Store(&laid{p, generation})
	cleared := c.clear(ctx, held, s)
	err := c.act(ctx, held, s, p)
	return errors.Join(cleared, err, c.remark(ctx, p))
}

// tidy deletes records that are no longer needed.
func (c *Controller) tidy(ctx context.Context, lease job.Lease, s *Stored, live []reservation.Reservation, now span.Instant) error {
	change := c.Rules.tidy(s, imagesOf(live), c.exists(now), now)
	if now >= c.tidied.Add(tidyEvery) {
		change.ForgetBefore, c.tidied = now.Add(-keep), now
	}
	return c.store(ctx, lease, s, change)
}

// clear removes from the cloud what interrupted calls of an earlier holder of the lease have left
// there.
func (c *Controller) clear(ctx context.Context, held *job.Held, s *Stored) error {
	if c.cleared == held.Epoch || len(s.Transfers) == 0 {
		return nil
	}
	if err := held.Ensure(ctx); err != nil {
		return err
	}
	if err := c.Cloud.Clear(ctx); err != nil {
		return fmt.Errorf("clean up after a call for images: %w", err)
	}
	c.cleared = held.Epoch
	return nil
}

// act begins the transfers that are due. It stores them before it calls the cloud, so that no
// replica requests them twice. If the process ends in between, such a transfer ends when its time
// limit, Bound, has passed.
func (c *Controller) act(ctx context.Context, held *job.Held, s *Stored, p *plan) error {
	queued := p.busy()
	for _, batch := range p.due(int64(c.Rules.Poll / time.Second)) {
		rows := c.Rules.begin(batch, p, "req-"+c.NewID(), c.NewID, queued)
		if err := c.store(ctx, held.Lease, s, Change{Transfers: rows}); err != nil {
			return err
		}
		c.publish(*s)
		if err := held.Ensure(ctx); err != nil {
			return err
		}
		if err := c.ask(ctx, held.Lease, s, rows, p); err != nil {
			return err
		}
		queued = int64(rows[len(rows)-1].Expected - p.now)
	}
	return nil
}

// ask sends a stored call to the cloud and stores which transfers will not happen: those to hosts
// that the cloud left out have failed. If the call was not sent, the other transfers are lost and
// will be retried.
func (c *Controller) ask(ctx context.Context, lease job.Lease, s *Stored, rows []Transfer, p *plan) error {
	hosts := make([]string, len(rows))
	for i, t := range rows {
		hosts[i] = t.Host
	}
	c.Log.InfoContext(ctx, "requested an image on hosts", "image", rows[0].Image, "hosts", hosts, "call", rows[0].Call)
	asked, err := c.Cloud.Cache(ctx, rows[0].Call, rows[0].Image, hosts)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("put image %s on %d hosts: %w", rows[0].Image, len(hosts), err)
	left, _ := errors.AsType[*LeftOut](err)
	var ended []Transfer
	for _, t := range rows {
		t.Begun, t.Finished = t.Started, c.Now()
		switch {
		case left != nil && left.Hosts[t.Host] != nil:
			t.Outcome, t.Detail = TransferFailed, fault.Of(left.Hosts[t.Host]).Message
		case !asked:
			t.Outcome, t.Detail = TransferLost, fault.Of(err).Message
			if u, was := p.lost[imageOnHost{t.Image, t.Host}]; was {
				t.Started, t.Begun = u.Started, u.Started
			}
		default: // it may be under way; it ends at its bound
			continue
		}
		ended = append(ended, t)
	}
	if stored := c.store(ctx, lease, s, Change{Transfers: ended}); stored != nil {
		return errors.Join(err, stored)
	}
	c.publish(*s)
	c.tellEnds(ctx, ended)
	return err
}

// tellEnds counts and logs the transfers that have ended.
func (c *Controller) tellEnds(ctx context.Context, ended []Transfer) {
	for _, t := range ended {
		c.done.add(t)
		level := slog.LevelInfo
		if t.Outcome == TransferFailed || t.Outcome == TransferLost {
			level = slog.LevelWarn
		}
		c.Log.Log(ctx, level, "an image transfer has ended", "image", t.Image, "host", t.Host, "outcome", string(t.Outcome),
			"detail", t.Detail, "seconds", int64(t.Finished-t.Begun), "call", t.Call, "reservations", t.Reservations)
	}
}
