// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"net/http"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// hostHistory is the number of entries of the audit in an answer about one host.
const hostHistory = 20

// listHosts handles GET /v1/energy/hosts, sorted by name.
func (s Energy) listHosts(c *serving.Call) (any, error) {
	q := c.Parameters("limit", "marker", "phase")
	limit, marker, wanted := q.Number("limit", serving.DefaultPage, 1, serving.LargestPage), q.Text("marker"), q.List("phase")
	for _, p := range wanted {
		if !slices.Contains(energy.PhaseWords, p) {
			q.Fail("phase", "%s", fault.Unknown("phase", p, energy.PhaseWords))
		}
	}
	if q.Err != nil {
		return nil, q.Err
	}
	hosts, err := s.Hosts.Hosts(c.Request.Context())
	if err != nil {
		return nil, err
	}
	page := v1.EnergyHosts{Hosts: []v1.EnergyHost{}}
	for i := range hosts {
		h := &hosts[i]
		if h.Name() <= marker || len(wanted) > 0 && !slices.Contains(wanted, h.Phase()) {
			continue
		}
		if len(page.Hosts) == limit {
			page.Next = v1.Marker(page.Hosts[limit-1].Name)
			break
		}
		page.Hosts = append(page.Hosts, energyHost(h))
	}
	return page, nil
}

// showHost handles GET /v1/energy/hosts/{name}.
func (s Energy) showHost(c *serving.Call) (any, error) {
	h, err := s.Hosts.Host(c.Request.Context(), c.Param("name"))
	if err != nil {
		return nil, err
	}
	return s.answerHost(c, http.StatusOK, &h)
}

func (s Energy) answerHost(c *serving.Call, status int, h *controller.HostStatus) (any, error) {
	answer := energyHost(h)
	history, err := s.History.Audit(c.Request.Context(), answer.Name, 0, hostHistory)
	if err != nil {
		return nil, err
	}
	answer.History = energyEntries(history)
	c.Status(status)
	return answer, nil
}

// order handles POST /v1/energy/hosts/{name}; with dry_run it only returns the effect that
// the order would have.
func (s Energy) order(c *serving.Call) (any, error) {
	q := c.Parameters("dry_run")
	dryRun, err := q.Truth("dry_run"), q.Err
	var body v1.EnergyOrder
	if err == nil {
		_, err = c.Body(&body, serving.AnyBody)
	}
	var hold energy.Hold
	if err == nil {
		hold, err = manual(body, s.Now())
	}
	if err != nil {
		return nil, err
	}
	ctx, name := c.Request.Context(), c.Param("name")
	if dryRun {
		h, outcome, err := s.Orders.Foresee(ctx, name, hold)
		if err != nil {
			return nil, err
		}
		return v1.EnergyForeseen{Name: name, Phase: h.Phase(), Outcome: outcome}, nil
	}
	h, err := s.Orders.Order(ctx, c.Asker().UserID, name, hold)
	if err != nil {
		return nil, err
	}
	return s.answerHost(c, http.StatusAccepted, &h)
}

// manual converts the body of an order.
func manual(body v1.EnergyOrder, now span.Instant) (energy.Hold, error) {
	hold := energy.Hold{Action: energy.ManualAction(body.Action), Reason: body.Reason}
	switch {
	case body.Action == "":
		return hold, fault.Field("action", "is required: on, off, standby, release or test")
	case body.Until == nil:
		return hold, nil
	case hold.Action == energy.Release || hold.Action == energy.Test:
		return hold, fault.Field("until", "is only for the actions on, off and standby")
	}
	if hold.Until = now.Add(int64(body.Until.In)); body.Until.In == 0 {
		hold.Until = *v1.InstantOf(&body.Until.At)
	}
	if hold.Until > latestHold {
		return hold, fault.Field("until", "must lie in the years up to %d", serving.LastYear)
	}
	return hold, nil
}
