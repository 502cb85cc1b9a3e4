// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestAWebhookIsMadeShownListedAndDeletedAndOnlyItsFirstAnswerHasTheSecret(t *testing.T) {
	c := start(t, setup{})
	a := c.demo.post("/v1/webhooks", `{"name": "chat", "url": "https://192.0.2.1/almanac?token=1", "event_types": ["reservation.end", "reservation.create", "reservation.end"]}`)
	made := want[v1.Webhook](t, a, http.StatusCreated)
	if a.header.Get("Location") != "/v1/webhooks/"+made.ID || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Errorf("%v", a)
	}
	if got := strings.Join(made.EventTypes, " "); got != "reservation.create reservation.end" || made.ProjectID != "demo" || made.Name != "chat" {
		t.Errorf("it is %+v", made)
	}
	shown := c.demo.get("/v1/webhooks/" + made.ID)
	if w := want[v1.Webhook](t, shown, http.StatusOK); w.URL != made.URL || w.NextTry != nil || w.Waiting != 0 {
		t.Errorf("it is shown as %+v", w)
	}
	listed := c.demo.get("/v1/webhooks?limit=1")
	if page := want[v1.Webhooks](t, listed, http.StatusOK); len(page.Webhooks) != 1 || page.Next != "" {
		t.Errorf("listed are %+v", page)
	}
	for _, a := range []answer{shown, listed} {
		if strings.Contains(string(a.body), strings.TrimPrefix(made.Secret, "whsec_")) || strings.Contains(string(a.body), `"secret"`) {
			t.Errorf("the secret is shown again: %v", a)
		}
	}
	if strings.Contains(c.log.String(), strings.TrimPrefix(made.Secret, "whsec_")) {
		t.Error("the log has the secret")
	}
	if a := c.demo.delete("/v1/webhooks/" + made.ID); a.status != http.StatusNoContent {
		t.Error(a)
	}
	wantError(t, c.demo.get("/v1/webhooks/"+made.ID), http.StatusNotFound)
}

func TestAWebhookThatCannotBeIsRefusedWithItsField(t *testing.T) {
	c := start(t, setup{})
	for body, field := range map[string]string{
		`{"url": "https://192.0.2.1/"}`:                                                           "name",
		`{"name": "w"}`:                                                                           "url",
		`{"name": "w", "url": "ftp://192.0.2.1/"}`:                                                "url",
		`{"name": "w", "url": "http://192.0.2.1/"}`:                                               "url",
		`{"name": "w", "url": "https://127.0.0.1/"}`:                                              "url",
		`{"name": "w", "url": "https://localhost/"}`:                                              "url", // its name may lead into an allowed network, but does not
		`{"name": "w", "url": "https://ada:pw@192.0.2.1/"}`:                                       "url",
		`{"name": "w", "url": "https://192.0.2.1/", "event_types": ["reservation.delete"]}`:       "event_types",
		`{"name": "w", "url": "https://192.0.2.1/", "secret": "whsec_c2hvcnQ="}`:                  "secret",
		`{"name": "w", "url": "https://192.0.2.1/", "secret": "` + strings.Repeat("a", 44) + `"}`: "secret",
	} {
		if failed := wantError(t, c.demo.post("/v1/webhooks", body), http.StatusBadRequest); failed.Field != field {
			t.Errorf("%s: %+v, want field %s", body, failed, field)
		}
	}
}

func TestWithoutAllowedReceiversTheRefusalStatesWhatTheOperatorDoes(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Webhooks.Check = receivers(t).Check }})
	failed := wantError(t, c.demo.post("/v1/webhooks", `{"name": "w", "url": "https://192.0.2.1/"}`), http.StatusForbidden)
	if !strings.Contains(failed.Message, "[webhooks] allowed") {
		t.Errorf("%+v", failed)
	}
}

func TestAProjectHasABoundedNumberOfWebhooks(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Webhooks.MostPerProject = 2 }})
	for range 2 {
		want[v1.Webhook](t, c.demo.post("/v1/webhooks", `{"name": "w", "url": "https://192.0.2.1/"}`), http.StatusCreated)
	}
	wantError(t, c.demo.post("/v1/webhooks", `{"name": "w", "url": "https://192.0.2.1/"}`), http.StatusConflict)
	want[v1.Webhook](t, c.other.post("/v1/webhooks", `{"name": "w", "url": "https://192.0.2.1/"}`), http.StatusCreated)
}
