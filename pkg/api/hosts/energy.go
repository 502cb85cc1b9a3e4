// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// EnergyControl is the energy controller as a whole. by is a user id.
type EnergyControl interface {
	Status(ctx context.Context) (controller.Status, error)
	Change(ctx context.Context, by string, change controller.Change) error
	// Approve approves the plan with that id. It fails with a Conflict fault if there is a newer
	// plan.
	Approve(ctx context.Context, by, plan string) error
}

// EnergyHosts reads the hosts that the energy controller switches.
type EnergyHosts interface {
	// Hosts returns all hosts, sorted by name.
	Hosts(ctx context.Context) ([]controller.HostStatus, error)
	Host(ctx context.Context, name string) (controller.HostStatus, error)
}

// EnergyOrders sends manual orders to the energy controller.
type EnergyOrders interface {
	// Order applies a manual order to a host, or releases it, and returns the host's new status.
	// It ignores the user and the time in hold.
	Order(ctx context.Context, by, host string, hold energy.Hold) (controller.HostStatus, error)
	// Foresee returns the host's status and the effect that an order would have, as a sentence. It
	// applies nothing.
	Foresee(ctx context.Context, host string, hold energy.Hold) (controller.HostStatus, string, error)
}

// EnergyHistory is the record of past events; see controller.History.
type EnergyHistory interface {
	Audit(ctx context.Context, host string, before int64, limit int) ([]energy.Entry, error)
	Demand(ctx context.Context, from span.Instant) ([]energy.Demand, error)
}

// Energy serves the calls about hosts that are switched.
type Energy struct {
	// Control, Hosts, Orders and History are nil without an energy controller.
	Control EnergyControl
	Hosts   EnergyHosts
	Orders  EnergyOrders
	History EnergyHistory
	// Snapshot returns the hosts.
	Snapshot func() *inventory.Snapshot
	Now      func() span.Instant
}

// show handles GET /v1/energy.
func (s Energy) show(c *serving.Call) (any, error) {
	status, err := s.Control.Status(c.Request.Context())
	if err != nil {
		return nil, err
	}
	hosts, err := s.Hosts.Hosts(c.Request.Context())
	if err != nil {
		return nil, err
	}
	c.SetVersion(status.Settings.VersionText())
	return energyStatus(status, hosts), nil
}

// change handles PATCH /v1/energy.
func (s Energy) change(c *serving.Call) (any, error) {
	var body v1.EnergyChange
	if _, err := c.Body(&body, serving.AnyBody); err != nil {
		return nil, err
	}
	change, err := energyChange(body, s.Snapshot())
	if change.Expected = c.Expected(); err == nil {
		err = s.Control.Change(c.Request.Context(), c.Asker().UserID, change)
	}
	if err != nil {
		return nil, err
	}
	return s.show(c)
}

func energyChange(body v1.EnergyChange, snapshot *inventory.Snapshot) (controller.Change, error) {
	change := controller.Change{
		Mode: (*energy.Mode)(body.Mode), Aggregates: map[string]energy.Mode{}, Hosts: map[string]energy.Mode{},
		Stop: body.Stop, ResetBreaker: body.ResetBreaker, Reason: body.Reason,
	}
	for list, mode := range body.Hosts {
		hosts, err := inventory.ExpandNames(list)
		if err != nil {
			return change, fault.Field("hosts", "%v", err)
		}
		for _, name := range hosts {
			if other, twice := change.Hosts[name]; twice && other != energy.Mode(mode) {
				return change, fault.Field("hosts", "host %s has two modes; one list names each host", name)
			}
			change.Hosts[name] = energy.Mode(mode)
		}
	}
	var known []string
	for _, h := range snapshot.Hosts() {
		known = append(known, h.Aggregates...)
	}
	for name, mode := range body.Aggregates {
		// Only the mode of an existing aggregate can be set; that of any other can be removed.
		if mode != "" && !slices.Contains(known, name) {
			return change, fault.Field("aggregates."+name, "%s", fault.Unknown("aggregate", name, known))
		}
		change.Aggregates[name] = energy.Mode(mode)
	}
	return change, nil
}

// showPlan handles GET /v1/energy/plan.
func (s Energy) showPlan(c *serving.Call) (any, error) {
	status, err := s.Control.Status(c.Request.Context())
	if err == nil && status.Settings.Plan == nil {
		err = fault.New(fault.NotFound, "no plan has been made yet; the mode is %s", status.Mode)
	}
	if err != nil {
		return nil, err
	}
	return energyPlan(status.Settings), nil
}

// approvePlan handles POST /v1/energy/plan.
func (s Energy) approvePlan(c *serving.Call) (any, error) {
	var body v1.EnergyApprove
	_, err := c.Body(&body, serving.AnyBody)
	if err == nil && body.Approve == "" {
		err = fault.Field("approve", "is required: the id of the plan")
	}
	if err == nil {
		err = s.Control.Approve(c.Request.Context(), c.Asker().UserID, body.Approve)
	}
	if err != nil {
		return nil, err
	}
	return s.showPlan(c)
}

// listAudit handles GET /v1/energy/audit.
func (s Energy) listAudit(c *serving.Call) (any, error) {
	q := c.Parameters("host", "before", "limit")
	host, before, limit := q.Text("host"), q.Number("before", 0, 1, math.MaxInt64), q.Number("limit", serving.DefaultPage, 1, serving.LargestPage)
	if q.Err != nil {
		return nil, q.Err
	}
	// One entry more than the limit shows that there is another page.
	found, err := s.History.Audit(c.Request.Context(), host, int64(before), limit+1)
	if err != nil {
		return nil, err
	}
	var page v1.EnergyAudit
	if len(found) > limit {
		found = found[:limit]
		page.Next = new(found[limit-1].ID)
	}
	page.Entries = energyEntries(found)
	return page, nil
}

// listDemand handles GET /v1/energy/demand.
func (s Energy) listDemand(c *serving.Call) (any, error) {
	q := c.Parameters("from")
	from := q.Time("from")
	if q.Err != nil {
		return nil, q.Err
	}
	const day = 86400
	if from == 0 {
		from = s.Now().Add(-day)
	}
	found, err := s.History.Demand(c.Request.Context(), from)
	if err != nil {
		return nil, err
	}
	answer := v1.EnergyDemands{Demand: []v1.EnergyDemand{}}
	for _, d := range found {
		answer.Demand = append(answer.Demand, v1.EnergyDemand{At: d.At.Time(), InUse: d.InUse, Reserved: d.Reserved})
	}
	return answer, nil
}
