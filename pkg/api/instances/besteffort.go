// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// Queue is the queue of best-effort requests; *requests.API implements it.
type Queue interface {
	QueueWriter
	QueueReader
}

// QueueWriter submits and cancels requests.
type QueueWriter interface {
	Submit(ctx context.Context, by requests.Caller, s requests.Submission) (state.Request, error)
	Cancel(ctx context.Context, id string) error
}

// QueueReader reads requests. Expected returns when the VMs that wait are expected to start, by the id of the VM.
type QueueReader interface {
	Get(ctx context.Context, id string) (state.Request, error)
	List(ctx context.Context, q requests.Query) ([]state.Request, error)
	Expected(ctx context.Context) (map[string]besteffort.Expectation, error)
}

// BestEffort serves the calls about servers without a start time.
type BestEffort struct {
	// Queue is nil if there is none.
	Queue Queue
	Now   func() span.Instant
	Log   *slog.Logger
}

const bestEffortPath = "/v1/besteffort"

func noBestEffort() *fault.Error {
	return fault.New(fault.Conflict, "there is no best-effort work here: it requires [inventory] source = openstack, or simulated")
}

// submit handles POST /v1/besteffort.
func (s BestEffort) submit(c *serving.Call) (any, error) {
	var body v1.BestEffortRequest
	raw, err := c.Body(&body, serving.BestEffortBody)
	if err != nil {
		return nil, err
	}
	use, err := c.KeyUse(raw)
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
	by := c.Asker()
	r, err := s.Queue.Submit(c.Request.Context(), requests.Caller{
		ProjectID: by.ProjectID, UserID: by.UserID, Roles: by.Roles, Token: c.Token(),
	}, asked)
	if err != nil {
		return nil, err
	}
	c.Header("Location", bestEffortPath+"/"+r.ID)
	c.Status(http.StatusCreated)
	return s.presented(&r, s.expected(c), by), nil
}

// list handles GET /v1/besteffort.
func (s BestEffort) list(c *serving.Call) (any, error) {
	q := c.Parameters("limit", "marker", "all", "project_id", "all_projects")
	by := c.Asker()
	selection := requests.Query{
		All: q.Truth("all"), Marker: q.Text("marker"), Limit: q.Number("limit", serving.DefaultPage, 1, serving.LargestPage) + 1,
	}
	var err error
	selection.ProjectID, err = q.Project(by, "besteffort:list")
	if err == nil && s.Queue == nil {
		err = noBestEffort()
	}
	if err != nil {
		return nil, err
	}
	found, err := s.Queue.List(c.Request.Context(), selection)
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
		page.Requests = append(page.Requests, s.presented(&found[i], expected, by))
	}
	return page, nil
}

const bestEffortKey = "besteffort"

// loading admits callers that may act on the request in the path, and loads it; see find.
func (s BestEffort) loading(rule string) serving.Access {
	return serving.Loading(serving.OwnAndOthers(rule), s.find(rule))
}

// find loads the request in the path, if the caller may act on it; see serving.Asker.Reach.
func (s BestEffort) find(rule string) serving.Step {
	return func(c *serving.Call) {
		by, id := c.Asker(), c.PathID()
		r, err := state.Request{}, error(noBestEffort())
		if s.Queue != nil {
			r, err = s.Queue.Get(c.Request.Context(), id)
		}
		err = by.Reach(rule, serving.Found{
			Err: err, ProjectID: r.ProjectID, Own: r.ProjectID == by.ProjectID, Missing: fault.New(fault.NotFound, "there is no best-effort request %s", id),
		})
		if err != nil {
			c.Fail(err)
			return
		}
		c.Set(bestEffortKey, &r)
	}
}

// show handles GET /v1/besteffort/{id}.
func (s BestEffort) show(c *serving.Call) (any, error) {
	r := c.MustGet(bestEffortKey).(*state.Request)
	return s.presented(r, s.expected(c), c.Asker()), nil
}

// cancel handles DELETE /v1/besteffort/{id}.
func (s BestEffort) cancel(c *serving.Call) (any, error) {
	if err := s.Queue.Cancel(c.Request.Context(), c.MustGet(bestEffortKey).(*state.Request).ID); err != nil {
		return nil, err
	}
	return nil, nil
}

// expected returns when the waiting VMs are expected to start, by the id of the VM; an empty map if
// that cannot be determined.
func (s BestEffort) expected(c *serving.Call) map[string]besteffort.Expectation {
	expected, err := s.Queue.Expected(c.Request.Context())
	if err != nil {
		s.Log.WarnContext(c.Request.Context(), "could not determine the expected starts of best-effort work", "error", err)
	}
	return expected
}

// presented returns the request with those fields that by may see.
func (s BestEffort) presented(r *state.Request, expected map[string]besteffort.Expectation, by *serving.Asker) v1.BestEffort {
	out := v1.BestEffort{
		ID: r.ID, Name: r.Name, ProjectID: r.ProjectID, UserID: r.UserID, Status: string(r.Status()), Flavor: r.Flavor.Name,
		Image: r.Image.Name, Duration: v1.Duration(r.Duration), Parallel: r.Parallel, Networks: r.Networks,
		VMs: make([]v1.BestEffortVM, len(r.VMs)), CreatedAt: r.Created.Time(),
	}
	if r.Over != 0 {
		out.EndedAt = new(r.Over.Time())
	}
	hosts, first, position := by.May("besteffort:get_hosts", r.ProjectID), span.Forever, math.MaxInt
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

// known returns the time of an instant; nil if it is unknown or beyond serving.LastYear.
func known(at span.Instant) *time.Time {
	if at == span.Forever || at == 0 || at.Time().Year() > serving.LastYear {
		return nil
	}
	return new(at.Time())
}
