// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Placer chooses hosts and claims their room, as it does for Nova's select_destinations.
type Placer interface {
	Place(ctx context.Context, r placing.Request) (dispatch.Placed, error)
	// Return releases what Place has claimed.
	Return(p dispatch.Placed)
}

// errand is a server that needs a host: for its boot, or for its migration.
type errand struct {
	server    string
	migration string // empty for a boot
	target    string // the only host allowed; empty means any
}

// conductors is how many servers get a host at once. A server may have to wait for others to make
// room.
const conductors = 8

// Conduct finds hosts for servers until ctx ends, like nova-conductor.
func (c *Cloud) Conduct(ctx context.Context, placer Placer) error {
	var all sync.WaitGroup
	for range conductors {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case e := <-c.waiting:
					c.place(ctx, placer, e)
				}
			}
		})
	}
	all.Wait()
	return nil
}

// place finds a host for one server.
func (c *Cloud) place(ctx context.Context, placer Placer, e errand) {
	request, wanted := c.asked(e)
	if !wanted {
		return
	}
	placed, err := placer.Place(ctx, request)
	if err != nil {
		defer c.enter()()
		c.unplaced(e, fault.Of(err).Message)
		return
	}
	if !c.settle(e, placed.Selections[0][0].Host.Name) { // it was deleted in the meantime
		placer.Return(placed)
	}
}

// asked returns the request for an errand; wanted is false if the server no longer needs a host.
func (c *Cloud) asked(e errand) (r placing.Request, wanted bool) {
	defer c.enter()()
	s := c.servers[e.server]
	if s == nil || !s.awaits(e) {
		return r, false
	}
	r = c.requestFor(s)
	if e.migration != "" {
		r.ID, r.Host, r.IgnoreHosts = "req-"+e.migration, e.target, []string{s.Host}
	}
	return r, true
}

// awaits reports whether the server still waits for the host of an errand.
func (s *Server) awaits(e errand) bool {
	if e.migration == "" {
		return s.Task == scheduling
	}
	return s.Task == migrating && s.Migration.ID == e.migration && s.to == ""
}

// settle begins the boot or the migration of a server on a host. It reports whether the server still
// wanted one.
func (c *Cloud) settle(e errand, host string) bool {
	defer c.enter()()
	s := c.servers[e.server]
	if s == nil || !s.awaits(e) {
		return false
	}
	if e.migration != "" {
		s.to, s.Migration.Status = host, "running"
		c.do(s, migrating, c.o.Times.Migrate, func(s *Server) {
			s.Host, s.to, s.Launched = s.to, "", span.At(c.o.Now())
			c.endMigration(s, "completed")
			c.free(s.Migration.ID)
		})
		return true
	}
	s.Host = host
	close(s.placed)
	c.do(s, spawning, c.o.Times.Boot+c.fetches(host, s.Image), func(s *Server) {
		s.Status, s.Launched = active, span.At(s.until)
		if m := c.machines[s.Host]; m != nil {
			m.images[s.Image] = true
		}
	})
	return true
}

// fetches returns how long a host takes to get an image; 0 if it has it.
func (c *Cloud) fetches(host, image string) time.Duration {
	if m := c.machines[host]; m == nil || m.images[image] {
		return 0
	}
	i, err := c.image(image)
	if err != nil {
		return 0
	}
	return c.takes(i.Bytes)
}

func (c *Cloud) takes(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / c.o.Rate * float64(time.Second))
}

// unplaced records that there is no host for a server.
func (c *Cloud) unplaced(e errand, why string) {
	s := c.servers[e.server]
	if s == nil || !s.awaits(e) {
		return
	}
	s.Task, s.Updated = "", span.At(c.o.Now())
	if e.migration == "" {
		s.Status, s.Fault = inError, why
		close(s.placed)
		return
	}
	c.restore(s)
	c.endMigration(s, "error")
}

// migrate begins a live migration. As in Nova, the migration keeps the allocations of the source
// until its end.
func (c *Cloud) migrate(s *Server, target string) error {
	if err := s.idle(active, "PAUSED", shutoff); err != nil {
		return err
	}
	e := errand{server: s.ID, migration: c.o.NewID(), target: target}
	select {
	case c.waiting <- e:
	default:
		return fault.New(fault.Unavailable, "%d servers wait for a host; try again later", mostErrands)
	}
	if claim, has := c.placement.Consumers[s.ID]; has {
		c.free(s.ID)
		claim.Consumer = e.migration
		c.placement.Consumers[e.migration] = claim
	}
	s.Task, s.to, s.Updated = migrating, "", span.At(c.o.Now())
	s.Migration = rebalance.Migration{ID: e.migration, Status: "queued"}
	return nil
}

// restore returns the allocations of its source to a server.
func (c *Cloud) restore(s *Server) {
	c.free(s.ID)
	if claim, has := c.placement.Consumers[s.Migration.ID]; has {
		c.free(s.Migration.ID)
		claim.Consumer = s.ID
		c.placement.Consumers[s.ID] = claim
	}
}

func (c *Cloud) endMigration(s *Server, status string) {
	s.Migration.Status, s.Migration.Over = status, true
}

// drop ends what a server that is being deleted waits for.
func (c *Cloud) drop(s *Server) {
	switch s.Task {
	case scheduling:
		close(s.placed)
	case migrating:
		c.free(s.Migration.ID)
		c.endMigration(s, "cancelled")
	}
}
