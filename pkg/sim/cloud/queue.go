// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// Queue implements the ports of best-effort work. The cloud knows no trusts: it creates a server
// in the name of the request's owner.
type Queue struct {
	Cloud *Cloud
	// Records stores which servers are preemptible.
	Records interface {
		SaveInstanceRecords(ctx context.Context, instances []string, g inventory.InstanceRecord, at span.Instant) error
	}
	Now func() span.Instant
}

// Marked implements controller.Servers.
func (q Queue) Marked(_ context.Context, known map[string][]string) (map[string][]state.Server, error) {
	ours := map[string]bool{}
	for _, ids := range known {
		for _, id := range ids {
			ours[id] = true
		}
	}
	found := map[string][]state.Server{}
	for _, s := range q.Cloud.Servers(func(s *Server) bool {
		_, project := known[s.ProjectID]
		return project && (ours[s.ID] || s.Metadata[state.Mark] != "")
	}) {
		attempt, _ := strconv.Atoi(s.Metadata[state.AttemptMark]) // a server of another kind has none
		found[s.ProjectID] = append(found[s.ProjectID], state.Server{
			ID: s.ID, Host: s.Host, Status: s.Status, Task: s.Task, VM: s.Metadata[state.Mark], Attempt: attempt, Locked: s.Locked,
			Created: s.Created, Fault: s.Fault, UserID: s.UserID, Flavor: s.Flavor.Name, Image: s.Image,
		})
	}
	return found, nil
}

// EndedByOwner implements controller.Servers.
func (q Queue) EndedByOwner(_ context.Context, server, project string) (bool, error) {
	defer q.Cloud.enter()()
	by, known := q.Cloud.deleted.by[server]
	return known && by == project, nil
}

// Create implements controller.ServerActions.
func (q Queue) Create(ctx context.Context, r *state.Request, vm *state.VM) (string, error) {
	name, metadata := r.ServerOf(vm)
	hints := map[string][]string{state.Mark: {vm.ID}}
	if hint := q.Cloud.o.Preemptible.Hint; hint != "" {
		hints[hint] = []string{"true"}
	}
	s, err := q.Cloud.Create(ctx, ServerRequest{
		Name: name, ProjectID: r.ProjectID, UserID: r.UserID, Flavor: r.Flavor.ID, Image: r.Image.ID, Metadata: metadata, Hints: hints,
	})
	if fault.Is(err, fault.Unavailable) {
		err = errors.Join(controller.ErrNotSent, err)
	}
	return s.ID, err
}

// Do implements controller.ServerActions.
func (q Queue) Do(ctx context.Context, action controller.Action, server, _ string) error {
	if action == controller.ActionDelete {
		return q.Cloud.Delete(ctx, server, "")
	}
	c := q.Cloud
	defer c.enter()()
	s := c.servers[server]
	if s == nil {
		return nil
	}
	switch action {
	case controller.ActionLock, controller.ActionUnlock:
		s.Locked = action == controller.ActionLock
	case controller.ActionSuspend:
		if err := s.idle(active); err != nil {
			return err
		}
		c.do(s, suspending, c.o.Times.Suspend, become(suspended))
	case controller.ActionResume:
		if err := s.idle(suspended); err != nil {
			return err
		}
		c.do(s, resuming, c.o.Times.Resume, become(active))
	default:
		return fmt.Errorf("there is no action %q", action)
	}
	return nil
}

// Remember implements controller.ServerActions.
func (q Queue) Remember(ctx context.Context, server string) error {
	return q.Records.SaveInstanceRecords(ctx, []string{server}, inventory.InstanceRecord{Preemptible: true}, q.Now())
}

// Allocation implements controller.Allocations.
func (q Queue) Allocation(_ context.Context, server string) (*state.Held, int64, error) {
	defer q.Cloud.enter()()
	has := q.Cloud.placement.Of(server)
	if len(has.Allocations) == 0 {
		return nil, 0, nil
	}
	return &state.Held{ProjectID: has.ProjectID, UserID: has.UserID, Allocations: has.Allocations}, *has.Generation, nil
}

// Remove implements controller.Allocations.
func (q Queue) Remove(ctx context.Context, server string, has *state.Held, generation int64) error {
	return Allocations{q.Cloud}.Claim(ctx, []placing.Claim{{
		Consumer: server, ProjectID: has.ProjectID, UserID: has.UserID, Generation: &generation,
	}})
}

// Restore implements controller.Allocations.
func (q Queue) Restore(ctx context.Context, server string, had *state.Held) error {
	return Allocations{q.Cloud}.Claim(ctx, []placing.Claim{{
		Consumer: server, ProjectID: had.ProjectID, UserID: had.UserID, Allocations: had.Allocations,
	}})
}

// Flavor implements requests.Catalogue. Servers of a flavor that Almanac makes for a reservation are
// no best-effort work.
func (q Queue) Flavor(_ context.Context, by requests.Caller, named string) (state.Named, resource.Vector, error) {
	defer q.Cloud.enter()()
	f, err := q.Cloud.flavorFor(by.ProjectID, named)
	if err == nil && f.ExtraSpecs[inventory.ReservationMark] != "" {
		err = fault.Field("flavor", "%.100q cannot be used for best-effort work: it is that of a reservation", named)
	}
	return state.Named{ID: f.ID, Name: f.Name}, f.Resources, err
}

// Image implements requests.Catalogue.
func (q Queue) Image(_ context.Context, _ requests.Caller, named string) (state.Named, error) {
	i, err := q.Cloud.image(named)
	return state.Named{ID: i.ID, Name: i.Name}, err
}

// Make implements requests.Trusts; there is no trust.
func (q Queue) Make(context.Context, requests.Caller) (string, error) { return "", nil }

// End implements controller.Trusts.
func (q Queue) End(context.Context, string) error { return nil }
