// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// hostHistory is the number of entries of the audit in an answer about one host.
const hostHistory = 20

func phase(h *controller.HostStatus) string {
	return cmp.Or(h.Record.Phase, h.Observed.Machine.Phase).Word()
}

func switchedHost(h *controller.HostStatus) string {
	return cmp.Or(h.Record.Host, h.Observed.Machine.Name)
}

// listEnergyHosts handles GET /v1/energy/hosts, sorted by name.
func (s *server) listEnergyHosts(c *gin.Context) (any, error) {
	q := readQuery(c, "limit", "marker", "phase")
	limit, marker, wanted := q.number("limit", defaultPage, 1, largestPage), q.text("marker"), q.list("phase")
	for _, p := range wanted {
		if !slices.Contains(energy.PhaseWords, p) {
			q.fail("phase", "%s", fault.Unknown("phase", p, energy.PhaseWords))
		}
	}
	if q.err != nil {
		return nil, q.err
	}
	hosts, err := s.Energy.Hosts(c.Request.Context())
	if err != nil {
		return nil, err
	}
	page := v1.EnergyHosts{Hosts: []v1.EnergyHost{}}
	for i := range hosts {
		h := &hosts[i]
		if switchedHost(h) <= marker || len(wanted) > 0 && !slices.Contains(wanted, phase(h)) {
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

// showEnergyHost handles GET /v1/energy/hosts/{name}.
func (s *server) showEnergyHost(c *gin.Context) (any, error) {
	h, err := s.Energy.Host(c.Request.Context(), c.Param("name"))
	if err != nil {
		return nil, err
	}
	return s.answerEnergyHost(c, http.StatusOK, &h)
}

func (s *server) answerEnergyHost(c *gin.Context, status int, h *controller.HostStatus) (any, error) {
	answer := energyHost(h)
	history, err := s.Energy.Audit(c.Request.Context(), answer.Name, 0, hostHistory)
	if err != nil {
		return nil, err
	}
	answer.History = energyEntries(history)
	c.Status(status)
	return answer, nil
}

// orderPower handles POST /v1/energy/hosts/{name}; with dry_run it only returns the effect that
// the order would have.
func (s *server) orderPower(c *gin.Context) (any, error) {
	q := readQuery(c, "dry_run")
	dryRun, err := q.truth("dry_run"), q.err
	var body v1.EnergyOrder
	if err == nil {
		_, err = s.body(c, &body, s.MaxBodyBytes)
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
		h, outcome, err := s.Energy.Foresee(ctx, name, hold)
		if err != nil {
			return nil, err
		}
		return v1.EnergyForeseen{Name: name, Phase: phase(&h), Outcome: outcome}, nil
	}
	h, err := s.Energy.Order(ctx, asking(c).UserID, name, hold)
	if err != nil {
		return nil, err
	}
	return s.answerEnergyHost(c, http.StatusAccepted, &h)
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
		hold.Until = *instant(&body.Until.At)
	}
	if hold.Until > latestHold {
		return hold, fault.Field("until", "must lie in the years up to %d", lastYear)
	}
	return hold, nil
}
