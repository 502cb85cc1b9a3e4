// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// limits handles GET /v1/limits.
func (s API) limits(c *serving.Call) (any, error) {
	q, by := c.Parameters("project_id"), c.Asker()
	project := by.ProjectID
	if chosen := q.Text("project_id"); chosen != "" {
		project = chosen
	}
	if project == "" {
		q.Fail("project_id", "is required: your token is for the system and for no project")
	}
	if q.Err != nil {
		return nil, q.Err
	}
	if project != by.ProjectID {
		if err := by.Check("limits:get_all_projects", project); err != nil {
			return nil, err
		}
	}
	limits, use := s.Asked.Use(project)
	return v1.Limits{
		ProjectID: project,
		Limits: v1.LimitValues{
			MaxDuration: limit(v1.Duration(limits.Duration)), MaxStartAhead: limit(v1.Duration(limits.StartAhead)),
			MaxHostsPerProject: limit(limits.Hosts), MaxHostHoursPerProject: limit(v1.Hours(limits.HostSeconds)),
			MaxEmptyLeases: limit(limits.EmptyLeases), ExtensionWindow: limit(v1.Duration(limits.ExtensionWindow)),
			MaxHold: v1.Duration(limits.Hold), MaxHoldsPerProject: limit(limits.Holds), MaxWaitingPerProject: limits.Waiting,
		},
		Used: v1.LimitedUsage{
			Reservations: use.Reservations, HostsNow: use.HostsNow, MostHosts: use.MostHosts, HostHours: v1.Hours(use.HostSeconds), Holds: use.Holds,
			Waiting: use.Waiting,
		},
	}, nil
}

// limit returns a limit as the API shows it: nil for 0, which means that there is none.
func limit[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}
