// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// showLimits handles GET /v1/limits.
func (s *server) showLimits(c *gin.Context) (any, error) {
	q, by := readQuery(c, "project_id"), asking(c)
	project := by.ProjectID
	if chosen := q.text("project_id"); chosen != "" {
		project = chosen
	}
	if project == "" {
		q.fail("project_id", "is required: your token is for the system and for no project")
	}
	if q.err != nil {
		return nil, q.err
	}
	if project != by.ProjectID {
		if err := by.check("limits:get_all_projects", project); err != nil {
			return nil, err
		}
	}
	limits, use := s.Booking.Use(project)
	return v1.Limits{
		ProjectID: project,
		Limits: v1.LimitValues{
			MaxDuration: limit(v1.Duration(limits.Duration)), MaxStartAhead: limit(v1.Duration(limits.StartAhead)),
			MaxHostsPerProject: limit(limits.Hosts), MaxHostHoursPerProject: limit(hours(limits.HostSeconds)),
			MaxEmptyLeases: limit(limits.EmptyLeases), ExtensionWindow: limit(v1.Duration(limits.ExtensionWindow)),
		},
		Used: v1.LimitedUsage{
			Reservations: use.Reservations, HostsNow: use.HostsNow, MostHosts: use.MostHosts, HostHours: hours(use.HostSeconds),
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
