// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// groupPolicies are Nova's policies for the server group of a reservation.
var groupPolicies = map[calendar.Affinity]string{calendar.AffinitySame: "affinity", calendar.AffinityDifferent: "anti-affinity"}

// flavorReader returns the function that reads a flavor for the sender of the request, each flavor
// once; nil without a cloud.
func (s leases) flavorReader(ctx context.Context, c *serving.Call) func(id string) (reservation.MemberRequest, error) {
	if s.Nova == nil {
		return nil
	}
	known := map[string]reservation.MemberRequest{}
	return func(id string) (m reservation.MemberRequest, err error) {
		if m, read := known[id]; read {
			return m, nil
		}
		f, text, err := s.Nova.FlavorAs(ctx, c.Token(), id)
		if fault.Is(err, fault.NotFound) {
			return m, fault.Field("flavor_id", "must be the id of a flavor that you may use, not %s", serving.Shorten([]byte(id)))
		}
		if err != nil {
			return m, err
		}
		if m, err = fence.ForFlavor(f, text); err == nil {
			known[id] = m
		}
		return m, err
	}
}

// makeGroups creates a server group for each requested reservation with an affinity, and enters it
// in the request. Nova creates a group only for the project of the token, so it must be done while
// the request is there, and before the lease is stored. If one group cannot be created, none stays.
func (s leases) makeGroups(ctx context.Context, c *serving.Call, r *reservation.LeaseRequest) (made []string, err error) {
	for i := range r.Members {
		m := &r.Members[i]
		policy, has := groupPolicies[m.Affinity]
		if s.Nova == nil || !has {
			continue
		}
		m.ServerGroup, err = s.Nova.CreateGroupAs(ctx, c.Token(), fence.FlavorPrefix+m.ID, policy)
		if err != nil {
			s.dropGroups(ctx, made)
			return nil, err
		}
		made = append(made, m.ServerGroup)
	}
	return made, nil
}

// dropLimit bounds the deletion of server groups.
const dropLimit = 10 * time.Second

// dropGroups deletes server groups of a lease that does not exist. It logs a failure: the group is
// the caller's, who can delete it.
func (s leases) dropGroups(ctx context.Context, groups []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropLimit)
	defer cancel()
	for _, id := range groups {
		if err := s.Nova.DeleteGroup(ctx, id); err != nil {
			s.Log.WarnContext(ctx, "could not delete the server group of a lease that was refused", "group", id, "error", err)
		}
	}
}
