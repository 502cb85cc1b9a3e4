// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"net/http"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

// Store has the webhooks.
type Store interface {
	Reader
	// AddWebhook fails with a Conflict fault if the project has most webhooks already.
	AddWebhook(ctx context.Context, w webhook.Webhook, most int) error
	RemoveWebhook(ctx context.Context, id string) error
}

// Reader reads webhooks with what has become of their deliveries.
type Reader interface {
	Webhook(ctx context.Context, id string) (webhook.Webhook, error)
	Webhooks(ctx context.Context, q webhook.Query) ([]webhook.Webhook, error)
}

// API serves the calls about webhooks.
type API struct {
	Store Store
	// Check returns an error unless messages may be sent to a URL.
	Check func(ctx context.Context, url string) error
	// MostPerProject is the largest number of webhooks of a project.
	MostPerProject int
	NewID          func() string
	NewSecret      func() webhook.Secret
	Now            func() span.Instant
}

// Routes returns the calls about webhooks.
func (s API) Routes() []serving.Route {
	const path, one = "/v1/webhooks", "/v1/webhooks/:id"
	return []serving.Route{
		serving.Post(path, serving.Rule("webhooks:create"), serving.InLine, serving.Brief, serving.ByNobody, serving.NoParameters, serving.ForProject, serving.JSON(s.create)),
		serving.Get(path, serving.Rules("webhooks:list", "webhooks:list_all"), serving.InTurn, serving.OnePage, serving.ByCaller, serving.JSON(s.list)),
		serving.Get(one, s.loading("webhooks:get"), serving.InLine, serving.Brief, serving.ByCaller, serving.NoParameters, serving.JSON(s.show)),
		serving.Delete(one, s.loading("webhooks:delete"), serving.InLine, serving.Brief, serving.ByNobody, serving.NoParameters, serving.JSON(s.remove)),
	}
}

// bodyBytes is the largest size of a body.
const bodyBytes = 16 << 10

// create handles POST /v1/webhooks.
func (s API) create(c *serving.Call) (any, error) {
	var body v1.WebhookRequest
	if _, err := c.Body(&body, bodyBytes); err != nil {
		return nil, err
	}
	by := c.Asker()
	if body.AllProjects {
		if err := by.Check("webhooks:create_all_projects", by.ProjectID); err != nil {
			return nil, err
		}
	}
	w := webhook.Webhook{
		ID: s.NewID(), ProjectID: by.ProjectID, AllProjects: body.AllProjects, UserID: by.UserID, Name: body.Name, URL: body.URL,
		Types: slices.Compact(slices.Sorted(slices.Values(body.EventTypes))), Secret: webhook.Secret(body.Secret), Created: s.Now(),
	}
	if err := w.Check(notice.Types()); err != nil {
		return nil, err
	}
	if w.Secret == "" {
		w.Secret = s.NewSecret()
	}
	if err := w.Secret.Check(); err != nil {
		return nil, err
	}
	ctx, end := c.Awaited()
	defer end()
	if err := s.Check(ctx, w.URL); err != nil {
		return nil, err
	}
	if err := s.Store.AddWebhook(ctx, w, s.MostPerProject); err != nil {
		return nil, err
	}
	c.Header("Location", "/v1/webhooks/"+w.ID)
	c.Status(http.StatusCreated)
	made := shown(&w)
	made.Secret = string(w.Secret)
	return made, nil
}

const webhookKey = "webhook"

// loading admits callers that may act on the webhook in the path, and loads it.
func (s API) loading(rule string) serving.Access {
	return serving.Loading(serving.OwnAndOthers(rule), func(c *serving.Call) {
		by, id := c.Asker(), c.PathID()
		w, err := s.Store.Webhook(c.Request.Context(), id)
		err = by.Reach(rule, serving.Found{Err: err, ProjectID: w.ProjectID, Own: w.BelongsTo(by.ProjectID), Missing: webhook.NotFound(id)})
		if err != nil {
			c.Fail(err)
			return
		}
		c.Set(webhookKey, w)
	})
}

func found(c *serving.Call) webhook.Webhook { return c.MustGet(webhookKey).(webhook.Webhook) }

// show handles GET /v1/webhooks/{id}.
func (s API) show(c *serving.Call) (any, error) {
	w := found(c)
	return shown(&w), nil
}

// list handles GET /v1/webhooks.
func (s API) list(c *serving.Call) (any, error) {
	q := c.Parameters("limit", "marker", "project_id", "all_projects")
	selection := webhook.Query{Marker: q.Text("marker"), Limit: q.Number("limit", serving.DefaultPage, 1, serving.LargestPage) + 1}
	var err error
	if selection.ProjectID, err = q.Project(c.Asker(), "webhooks:list"); err != nil {
		return nil, err
	}
	list, err := s.Store.Webhooks(c.Request.Context(), selection)
	if err != nil {
		return nil, err
	}
	page := v1.Webhooks{Webhooks: []v1.Webhook{}}
	if len(list) == selection.Limit {
		list = list[:len(list)-1]
		page.Next = v1.Marker(list[len(list)-1].ID)
	}
	return serving.Later(func() (any, error) {
		for i := range list {
			page.Webhooks = append(page.Webhooks, shown(&list[i]))
		}
		return page, nil
	}), nil
}

// remove handles DELETE /v1/webhooks/{id}.
func (s API) remove(c *serving.Call) (any, error) {
	ctx, end := c.Awaited()
	defer end()
	if err := s.Store.RemoveWebhook(ctx, found(c).ID); err != nil {
		return nil, err
	}
	c.Status(http.StatusNoContent)
	return nil, nil
}

// shown returns a webhook without its secret.
func shown(w *webhook.Webhook) v1.Webhook {
	return v1.Webhook{
		ID: w.ID, Name: w.Name, ProjectID: w.ProjectID, UserID: w.UserID, URL: w.URL, EventTypes: append([]string{}, w.Types...),
		AllProjects: w.AllProjects, CreatedAt: w.Created.Time(), Waiting: w.Waiting, NextTry: v1.TimeOf(w.NextTry), Failures: w.Failures,
		LastSuccess: v1.TimeOf(w.Succeeded), LastFailure: v1.TimeOf(w.Failed), LastError: w.LastError, Disabled: w.Disabled, Dropped: w.Dropped,
	}
}
