// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const groupsEvery = time.Minute

// ServerGroups reads and deletes the server groups of all projects.
type ServerGroups interface {
	// GroupNames returns the names of all server groups, by their ids.
	GroupNames(ctx context.Context) (map[string]string, error)
	// DeleteGroup deletes a server group; a missing one is no error.
	DeleteGroup(ctx context.Context, id string) error
}

// GroupOptions are the dependencies of Groups.
type GroupOptions struct {
	Groups  ServerGroups
	Records booking.Recaller
	Leases  job.Leases
	Log     *slog.Logger
}

// Groups returns the job that deletes the server groups of reservations that are over.
func Groups(o GroupOptions) job.Job {
	const name = "server groups of reservations"
	return job.Job{Name: name, Every: groupsEvery, Step: job.Leased(o.Leases, name, leaseTTL, func(ctx context.Context, _ *job.Held) error {
		return o.clear(ctx)
	})}
}

func (o GroupOptions) clear(ctx context.Context) error {
	left, err := GroupsLeft(ctx, o.Groups, o.Records, false)
	if err != nil {
		return err
	}
	var errs []error
	for group, r := range left {
		if err := o.Groups.DeleteGroup(ctx, group); err != nil {
			errs = append(errs, wrapForUser(err, "delete the server group of reservation %s", r.ID))
			continue
		}
		o.Log.InfoContext(ctx, "deleted the server group of a reservation that is over", "reservation", r.ID, "group", group)
	}
	return errors.Join(errs...)
}

// GroupsLeft returns the existing server groups that were created for reservations that are over, by
// the id of the group; with all, also those of live reservations. Anybody can create a group of such
// a name, so the record of the reservation decides.
func GroupsLeft(ctx context.Context, groups ServerGroups, records booking.Recaller, all bool) (map[string]reservation.Reservation, error) {
	names, err := groups.GroupNames(ctx)
	if err != nil {
		return nil, wrapForUser(err, "read the server groups")
	}
	var ids []string
	for _, name := range names {
		if id, is := strings.CutPrefix(name, fence.FlavorPrefix); is && placing.IsUUID(id) {
			ids = append(ids, id)
		}
	}
	known, err := booking.Stored(ctx, records, ids)
	if err != nil {
		return nil, wrapForUser(err, "read the reservations that have server groups")
	}
	left := map[string]reservation.Reservation{}
	for _, r := range known {
		if name, there := names[r.Membership.ServerGroup]; there && name == fence.FlavorPrefix+r.ID && (all || !r.Status.Live()) {
			left[r.Membership.ServerGroup] = r
		}
	}
	return left, nil
}
