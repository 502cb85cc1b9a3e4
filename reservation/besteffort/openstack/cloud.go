// Package openstack has best-effort work done by Nova: servers are made in the names of
// their owners, by a trust of Keystone, and suspended, resumed and deleted as the service
// user. What a suspended server has in Placement is taken away for a reservation and put
// back after it.
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
)

const (
	// Mark is the key of a server's metadata that names the VM it was made for, and the
	// scheduler hint of its boot request that does.
	Mark = placing.BestEffortHint
	// attemptMark is the key of its metadata that says which of the VM's servers it is.
	attemptMark = Mark + "_attempt"
)

// Guests remembers which servers make room.
type Guests interface {
	SaveInstanceRecords(ctx context.Context, instances []string, g inventory.InstanceRecord, at span.Instant) error
}

// Scripts are what the servers of requests are given to begin with.
type Scripts interface {
	// BestEffortUserData gives the user_data of a request's servers, in base64.
	BestEffortUserData(ctx context.Context, request string) (string, error)
}

// Options are what a Cloud is made of.
type Options struct {
	Compute   *nova.Client
	Placement *placement.Client
	Trusts    keystone.Trusts
	// Nova is how Nova is called in the name of an owner, and Glance how Glance is.
	Nova, Glance openstack.Options
	// Session finds services in the catalog.
	Session openstack.Session
	Guests  Guests
	Scripts Scripts
	// Hosts are those that there are; nil is not known.
	Hosts func() *inventory.Snapshot
	// PreemptibleHint is the scheduler hint by which a server says that it makes room; empty
	// is none.
	PreemptibleHint string
	Now             func() span.Instant
}

// Cloud is the ports of the controller on Nova, Placement and Keystone. It is safe for
// concurrent use.
type Cloud struct {
	Options
	owners sync.Map // *keystone.Session by trust
}

var (
	_ controller.Servers   = (*Cloud)(nil)
	_ controller.Orders    = (*Cloud)(nil)
	_ controller.Rooms     = (*Cloud)(nil)
	_ controller.Truster   = (*Cloud)(nil)
	_ controller.Catalogue = (*Cloud)(nil)
)

// New gives a cloud.
func New(o Options) *Cloud { return &Cloud{Options: o} }

// Marked implements controller.Servers.
func (c *Cloud) Marked(ctx context.Context, known map[string][]string) (map[string][]controller.Server, error) {
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
	found := map[string][]controller.Server{}
	for i := range all {
		s := &all[i]
		vm, marked := s.Metadata[Mark]
		if s.Deleted() || !marked && !ours[s.ID] {
			continue
		}
		attempt, err := strconv.Atoi(s.Metadata[attemptMark])
		if err != nil { // its owner has changed it
			vm = ""
		}
		found[s.ProjectID] = append(found[s.ProjectID], controller.Server{
			ID: s.ID, Host: s.Host, Status: s.Status, Task: s.Task, VM: vm, Attempt: attempt, Locked: s.Locked, Created: s.Created, Fault: s.Fault,
			UserID: s.UserID, Flavor: s.Flavor.Name, Image: s.Image,
		})
	}
	return found, nil
}

// EndedByOwner implements controller.Servers: Nova tells in the name of which project the
// server was deleted.
func (c *Cloud) EndedByOwner(ctx context.Context, server, project string) (bool, error) {
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

// Create implements controller.Orders.
func (c *Cloud) Create(ctx context.Context, r *controller.Request, vm *controller.VM) (string, error) {
	owner, err := c.owner(ctx, r.Trust)
	if err != nil {
		return "", fmt.Errorf("%w: %w", controller.ErrUnasked, err)
	}
	userData, err := c.Scripts.BestEffortUserData(ctx, r.ID)
	if err != nil {
		return "", fmt.Errorf("%w: %w", controller.ErrUnasked, err)
	}
	name := r.Name
	if len(r.VMs) > 1 {
		name = fmt.Sprintf("%.240s-%d", r.Name, vm.Number)
	}
	metadata := maps.Clone(r.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[Mark], metadata[attemptMark] = vm.ID, strconv.Itoa(vm.Attempt)
	hints := map[string]string{Mark: vm.ID}
	if c.PreemptibleHint != "" {
		hints[c.PreemptibleHint] = "true"
	}
	return owner.CreateServer(ctx, nova.ServerRequest{
		Name: name, Flavor: r.Flavor.ID, Image: r.Image.ID, Networks: r.Networks, KeyName: r.KeyName, UserData: userData,
		Metadata: metadata, Hints: hints,
	})
}

// owner gives Nova in the name of who made the trust. His session is kept for the next
// server, and he is asked to log in first: where he cannot, nothing was asked of Nova.
func (c *Cloud) owner(ctx context.Context, trust string) (*nova.Client, error) {
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
		if _, err := c.Trusts.Enter(ctx, trust); err != nil { // it says why
			return nil, err
		}
		return nil, err
	}
	return nova.New(session, c.Nova)
}

// Remember implements controller.Orders.
func (c *Cloud) Remember(ctx context.Context, server string) error {
	return c.Guests.SaveInstanceRecords(ctx, []string{server}, inventory.InstanceRecord{Preemptible: true}, c.Now())
}

// Do implements controller.Orders.
func (c *Cloud) Do(ctx context.Context, order controller.Order, server, reason string) error {
	switch order {
	case controller.Lock:
		return c.Compute.LockServer(ctx, server, reason)
	case controller.Suspend:
		return c.Compute.SuspendServer(ctx, server)
	case controller.Resume:
		return c.Compute.ResumeServer(ctx, server)
	case controller.Unlock:
		return c.Compute.UnlockServer(ctx, server)
	case controller.Delete:
		return c.Compute.DeleteServer(ctx, server)
	}
	return fmt.Errorf("there is no order %q", order)
}

// Held implements controller.Rooms.
func (c *Cloud) Held(ctx context.Context, server string) (held *controller.Held, generation int64, err error) {
	has, err := c.Placement.AllocationsOf(ctx, server)
	if err != nil || len(has.Allocations) == 0 {
		return nil, 0, err
	}
	return &controller.Held{ProjectID: has.ProjectID, UserID: has.UserID, Allocations: has.Allocations}, *has.Generation, nil
}

// Take implements controller.Rooms.
func (c *Cloud) Take(ctx context.Context, server string, has *controller.Held, generation int64) error {
	return c.Placement.Claim(ctx, []placing.Claim{{Consumer: server, ProjectID: has.ProjectID, UserID: has.UserID, Generation: &generation}})
}

// Give implements controller.Rooms.
func (c *Cloud) Give(ctx context.Context, server string, had *controller.Held) error {
	return c.Placement.Claim(ctx, []placing.Claim{{
		Consumer: server, ProjectID: had.ProjectID, UserID: had.UserID, Allocations: had.Allocations,
	}})
}

// Make implements controller.Truster.
func (c *Cloud) Make(ctx context.Context, by controller.Caller) (string, error) {
	return c.Trusts.Make(ctx, keystone.Trustor{Token: by.Token, UserID: by.UserID, ProjectID: by.ProjectID, Roles: by.Roles})
}

// End implements controller.Trusts.
func (c *Cloud) End(ctx context.Context, trust string) error {
	c.owners.Delete(trust)
	return c.Trusts.End(ctx, trust)
}
