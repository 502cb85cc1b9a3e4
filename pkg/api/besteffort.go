// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// BestEffort is the queue of best-effort requests; *requests.API implements it.
type BestEffort interface {
	Submit(ctx context.Context, by requests.Caller, s requests.Submission) (state.Request, error)
	Cancel(ctx context.Context, id string) error
	Get(ctx context.Context, id string) (state.Request, error)
	List(ctx context.Context, q requests.Query) ([]state.Request, error)
	Expected(ctx context.Context) (map[string]besteffort.Expectation, error)
}

const bestEffortPath = "/v1/besteffort"

func noBestEffort() *fault.Error {
	return fault.New(fault.Conflict, "there is no best-effort work here: it requires [inventory] source = openstack, or simulated")
}

// submitBestEffort handles POST /v1/besteffort.
func (s *server) submitBestEffort(c *gin.Context) (any, error) {
	var body v1.BestEffortRequest
	raw, err := s.body(c, &body, bestEffortBody)
	if err != nil {
		return nil, err
	}
	use, err := keyUse(c, raw)
	if err != nil {
		return nil, err
	}
	asked := requests.Submission{
		Name: body.Name, VMs: 1, Flavor: body.Flavor, Image: body.Image, Parallel: body.Parallel, Networks: body.Networks,
		KeyName: body.KeyName, UserData: body.UserData, Metadata: body.Metadata,
	}
	if body.VMs != nil {
		asked.VMs = *body.VMs
	}
	if body.Duration != nil {
		asked.Duration = int64(*body.Duration)
	}
	if use != nil {
		asked.Key, asked.BodyHash = use.Key, use.BodyHash
	}
	by := asking(c)
	r, err := s.BestEffort.Submit(c.Request.Context(), requests.Caller{
		ProjectID: by.ProjectID, UserID: by.UserID, Roles: by.Roles, Token: c.GetHeader("X-Auth-Token"),
	}, asked)
	if err != nil {
		return nil, err
	}
	c.Header("Location", bestEffortPath+"/"+r.ID)
	c.Status(http.StatusCreated)
	return s.presentBestEffort(&r, s.expected(c), by), nil
}

// listBestEffort handles GET /v1/besteffort.
func (s *server) listBestEffort(c *gin.Context) (any, error) {
	q := readQuery(c, "limit", "marker", "all", "project_id", "all_projects")
	by := asking(c)
	selection := requests.Query{
		All: q.truth("all"), Marker: q.text("marker"), Limit: q.number("limit", defaultPage, 1, largestPage) + 1,
	}
	var err error
	selection.ProjectID, err = q.project(by, "besteffort:list")
	if err == nil && s.BestEffort == nil {
		err = noBestEffort()
	}
	if err != nil {
		return nil, err
	}
	found, err := s.BestEffort.List(c.Request.Context(), selection)
	if err != nil {
		return nil, err
	}
	page := v1.BestEfforts{Requests: []v1.BestEffort{}}
	if len(found) == selection.Limit {
		found = found[:len(found)-1]
		page.Next = v1.Marker(found[len(found)-1].ID)
	}
	expected := s.expected(c)
	for i := range found {
		page.Requests = append(page.Requests, s.presentBestEffort(&found[i], expected, by))
	}
	return page, nil
}

const bestEffortKey = "besteffort"

// findBestEffort loads the request in the path and checks the rule, as find does for reservations.
func (s *server) findBestEffort(rule string) gin.HandlerFunc {
	return func(c *gin.Context) {
		by, id := asking(c), pathID(c)
		r, err := state.Request{}, error(noBestEffort())
		if s.BestEffort != nil {
			r, err = s.BestEffort.Get(c.Request.Context(), id)
		}
		if err == nil && r.ProjectID != by.ProjectID {
			if by.may(rule+"_all_projects", r.ProjectID) {
				c.Set(bestEffortKey, &r)
				return
			}
			err = fault.New(fault.NotFound, "there is no best-effort request %s", id)
		}
		if denied := by.check(rule, by.ProjectID); denied != nil {
			err = denied
		}
		if err != nil {
			s.fail(c, err)
			return
		}
		c.Set(bestEffortKey, &r)
	}
}

// showBestEffort handles GET /v1/besteffort/{id}.
func (s *server) showBestEffort(c *gin.Context) (any, error) {
	r := c.MustGet(bestEffortKey).(*state.Request)
	return s.presentBestEffort(r, s.expected(c), asking(c)), nil
}

// cancelBestEffort handles DELETE /v1/besteffort/{id}.
func (s *server) cancelBestEffort(c *gin.Context) (any, error) {
	if err := s.BestEffort.Cancel(c.Request.Context(), c.MustGet(bestEffortKey).(*state.Request).ID); err != nil {
		return nil, err
	}
	return nil, nil
}

// expected returns when the waiting VMs are expected to start, by the id of the VM; an empty map if
// that cannot be determined.
func (s *server) expected(c *gin.Context) map[string]besteffort.Expectation {
	expected, err := s.BestEffort.Expected(c.Request.Context())
	if err != nil {
		s.Log.WarnContext(c.Request.Context(), "could not determine the expected starts of best-effort work", "error", err)
	}
	return expected
}

// presentBestEffort returns the request with those fields that by may see.
func (s *server) presentBestEffort(r *state.Request, expected map[string]besteffort.Expectation, by *asker) v1.BestEffort {
	out := v1.BestEffort{
		ID: r.ID, Name: r.Name, ProjectID: r.ProjectID, UserID: r.UserID, Status: string(r.Status()), Flavor: r.Flavor.Name,
		Image: r.Image.Name, Duration: v1.Duration(r.Duration), Parallel: r.Parallel, Networks: r.Networks,
		VMs: make([]v1.BestEffortVM, len(r.VMs)), CreatedAt: r.Created.Time(),
	}
	if r.Over != 0 {
		out.EndedAt = new(r.Over.Time())
	}
	hosts, first, position := by.may("besteffort:get_hosts", r.ProjectID), span.Forever, math.MaxInt
	for i := range r.VMs {
		v := &r.VMs[i]
		vm := v1.BestEffortVM{ID: v.ID, Status: string(v.Phase), ServerID: v.Server, Ran: v1.Duration(v.Used(s.Now())), Reason: v.Reason}
		if hosts {
			vm.Host = v.Node
		}
		if e, waits := expected[v.ID]; waits && (v.Phase == besteffort.Waiting || v.Phase == besteffort.Suspended) {
			vm.ExpectedStart = known(e.Start)
			if vm.Reason == "" {
				vm.Reason = e.Reason
			}
			first = min(first, e.Start)
			if e.Position > 0 {
				position = min(position, e.Position)
			}
		}
		out.VMs[i] = vm
	}
	out.ExpectedStart = known(first)
	if position < math.MaxInt {
		out.Position = &position
	}
	return out
}

// known returns the time of an instant; nil if it is unknown or beyond lastYear.
func known(at span.Instant) *time.Time {
	if at == span.Forever || at == 0 || at.Time().Year() > lastYear {
		return nil
	}
	return new(at.Time())
}
