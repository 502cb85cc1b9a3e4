// SPDX-License-Identifier: Apache-2.0

// Package openstack runs best-effort work in Nova. It creates servers in the names of their
// owners, with a Keystone trust, and suspends, resumes and deletes them as the service user. It
// removes the allocation of a suspended server from Placement for a reservation, and restores it
// afterwards.
package openstack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// InstanceRecords stores which servers are preemptible.
type InstanceRecords interface {
	SaveInstanceRecords(ctx context.Context, instances []string, g inventory.InstanceRecord, at span.Instant) error
}

// Scripts reads the user_data of requests.
type Scripts interface {
	// BestEffortUserData returns the user_data of a request's servers, in base64.
	BestEffortUserData(ctx context.Context, request string) (string, error)
}

// Options are the dependencies and settings of a Cloud.
type Options struct {
	Compute   *nova.Client
	Placement *placement.Client
	Trusts    keystone.Trusts
	// Nova and Glance configure the calls in the name of an owner.
	Nova, Glance openstack.Options
	// Session finds services in the catalog.
	Session openstack.Session
	Records InstanceRecords
	Scripts Scripts
	// Hosts returns the hosts of the cloud; nil means that they are not known.
	Hosts func() *inventory.Snapshot
	// PreemptibleHint is the scheduler hint for preemptible servers; empty means none.
	PreemptibleHint string
	Now             func() span.Instant
}

// Servers implements the ports of best-effort work on Nova, Placement and Keystone. It is safe for
// concurrent use.
type Servers struct {
	Options
	owners sync.Map // *keystone.Session by trust
}

var (
	_ controller.Servers       = (*Servers)(nil)
	_ controller.ServerActions = (*Servers)(nil)
	_ controller.Allocations   = (*Servers)(nil)
	_ requests.Trusts          = (*Servers)(nil)
	_ requests.Catalogue       = (*Servers)(nil)
)

// New returns a Cloud.
func New(o Options) *Servers { return &Servers{Options: o} }

// Marked implements controller.Servers.
func (c *Servers) Marked(ctx context.Context, known map[string][]string) (map[string][]state.Server, error) {
	all, err := c.Compute.ServersOf(ctx, slices.Sorted(maps.Keys(known)))
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, ids := range known {
		for _, id := range ids {
			ours[id] = true
		}
	}
	found := map[string][]state.Server{}
	for i := range all {
		s := &all[i]
		vm, marked := s.Metadata[state.Mark]
		if s.Deleted() || !marked && !ours[s.ID] {
			continue
		}
		attempt, err := strconv.Atoi(s.Metadata[state.AttemptMark])
		if err != nil { // its owner changed it
			vm = ""
		}
		found[s.ProjectID] = append(found[s.ProjectID], state.Server{
			ID: s.ID, Host: s.Host, Status: s.Status, Task: s.Task, VM: vm, Attempt: attempt, Locked: s.Locked, Created: s.Created, Fault: s.Fault,
			UserID: s.UserID, Flavor: s.Flavor.Name, Image: s.Image,
		})
	}
	return found, nil
}

// EndedByOwner implements controller.Servers: Nova records the project in whose name a server was
// deleted.
func (c *Servers) EndedByOwner(ctx context.Context, server, project string) (bool, error) {
	acts, err := c.Compute.ActionsOf(ctx, server)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, a := range acts {
		if strings.Contains(strings.ToLower(a.Action), "delete") {
			return a.ProjectID == project, nil
		}
	}
	return false, nil
}

// Create implements controller.ServerActions.
func (c *Servers) Create(ctx context.Context, r *state.Request, vm *state.VM) (string, error) {
	owner, err := c.owner(ctx, r.Trust)
	if err != nil {
		return "", fmt.Errorf("%w: %w", controller.ErrNotSent, err)
	}
	userData, err := c.Scripts.BestEffortUserData(ctx, r.ID)
	if err != nil {
		return "", fmt.Errorf("%w: %w", controller.ErrNotSent, err)
	}
	name, metadata := r.ServerOf(vm)
	hints := map[string]string{state.Mark: vm.ID}
	if c.PreemptibleHint != "" {
		hints[c.PreemptibleHint] = "true"
	}
	return owner.CreateServer(ctx, nova.ServerRequest{
		Name: name, Flavor: r.Flavor.ID, Image: r.Image.ID, Networks: r.Networks, KeyName: r.KeyName, UserData: userData,
		Metadata: metadata, Hints: hints,
	})
}

// owner returns a Nova client in the name of the user who made the trust. It keeps the session for
// the next server. It logs in at once: if that fails, no request has been sent to Nova.
func (c *Servers) owner(ctx context.Context, trust string) (*nova.Client, error) {
	known, kept := c.owners.Load(trust)
	if !kept {
		session, err := c.Trusts.Enter(ctx, trust)
		if err != nil {
			return nil, err
		}
		known = session
		c.owners.Store(trust, session)
	}
	session := known.(*keystone.Session)
	if _, err := session.Token(ctx, ""); err != nil {
		c.owners.Delete(trust)
		if _, err := c.Trusts.Enter(ctx, trust); err != nil { // its error is clearer
			return nil, err
		}
		return nil, err
	}
	return nova.New(session, c.Nova)
}

// Remember implements controller.ServerActions.
func (c *Servers) Remember(ctx context.Context, server string) error {
	return c.Records.SaveInstanceRecords(ctx, []string{server}, inventory.InstanceRecord{Preemptible: true}, c.Now())
}

// Do implements controller.ServerActions.
func (c *Servers) Do(ctx context.Context, order controller.Action, server, reason string) error {
	switch order {
	case controller.ActionLock:
		return c.Compute.LockServer(ctx, server, reason)
	case controller.ActionSuspend:
		return c.Compute.SuspendServer(ctx, server)
	case controller.ActionResume:
		return c.Compute.ResumeServer(ctx, server)
	case controller.ActionUnlock:
		return c.Compute.UnlockServer(ctx, server)
	case controller.ActionDelete:
		return c.Compute.DeleteServer(ctx, server)
	}
	return fmt.Errorf("there is no order %q", order)
}

// Allocation implements controller.Allocations.
func (c *Servers) Allocation(ctx context.Context, server string) (held *state.Held, generation int64, err error) {
	has, err := c.Placement.AllocationsOf(ctx, server)
	if err != nil || len(has.Allocations) == 0 {
		return nil, 0, err
	}
	return &state.Held{ProjectID: has.ProjectID, UserID: has.UserID, Allocations: has.Allocations}, *has.Generation, nil
}

// Remove implements controller.Allocations.
func (c *Servers) Remove(ctx context.Context, server string, has *state.Held, generation int64) error {
	return c.Placement.Claim(ctx, []placing.Claim{{Consumer: server, ProjectID: has.ProjectID, UserID: has.UserID, Generation: &generation}})
}

// Restore implements controller.Allocations.
func (c *Servers) Restore(ctx context.Context, server string, had *state.Held) error {
	return c.Placement.Claim(ctx, []placing.Claim{{
		Consumer: server, ProjectID: had.ProjectID, UserID: had.UserID, Allocations: had.Allocations,
	}})
}

// Make implements requests.Trusts.
func (c *Servers) Make(ctx context.Context, by requests.Caller) (string, error) {
	return c.Trusts.Make(ctx, keystone.Trustor{Token: by.Token, UserID: by.UserID, ProjectID: by.ProjectID, Roles: by.Roles})
}

// End implements controller.Trusts.
func (c *Servers) End(ctx context.Context, trust string) error {
	c.owners.Delete(trust)
	return c.Trusts.End(ctx, trust)
}
