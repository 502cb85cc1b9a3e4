// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/policy"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// pictures knows one image, which is on its way to one host of each reservation.
type pictures struct{}

func (pictures) Resolve(_ context.Context, text, project string) (string, error) {
	if text != "debian" || project == "" {
		return "", fault.Field("image", "there is no image %q", text)
	}
	return "d-1", nil
}

func (pictures) Of(r *reservation.Reservation) (list []controller.HostImage) {
	if r.Image == "" {
		return nil
	}
	for _, host := range r.HostNames() {
		list = append(list, controller.HostImage{Host: host, State: controller.Refused, Start: 10, End: span.Forever, Detail: host + " is down"})
	}
	return list
}

func (pictures) Overview() []controller.Overview {
	return []controller.Overview{{Image: "d-1", Name: "debian", Host: "A", Bytes: 7, HostImage: controller.HostImage{State: controller.Present, Start: 10}, Until: 20}}
}

func TestAnImageIsResolvedBeforeTheReservationIsDecided(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Images = pictures{}
		o.Authenticator = api.Fixed(policy.Credentials{ProjectID: "demo", UserID: "u", Roles: []string{"admin"}})
	}})
	for _, query := range []string{"", "?dry_run=true"} {
		a := c.nobody.send(http.MethodPost, "/v1/reservations"+query, `{"name": "r", "image": "nothing", "duration": 60}`)
		if a.status != http.StatusBadRequest || decode[v1.ErrorAnswer](t, a).Error.Field != "image" {
			t.Errorf("%s: an unknown image gets %v", query, a)
		}
	}
	made := decode[v1.Reservation](t, c.nobody.send(http.MethodPost, "/v1/reservations", `{"name": "r", "image": "debian", "duration": 60}`))
	if made.Image != "d-1" {
		t.Errorf("it was made with image %q", made.Image)
	}
	shown := decode[v1.Reservation](t, c.nobody.get("/v1/reservations/"+made.ID))
	if len(shown.Images) != 1 || shown.Images[0].Host == "" || shown.Images[0].Detail == "" || shown.Images[0].Start == nil || shown.Images[0].End != nil {
		t.Errorf("an admin sees %+v", shown.Images)
	}
	list := decode[v1.Images](t, c.nobody.get("/v1/images"))
	if len(list.Images) != 1 || list.Images[0].State != "there" || list.Images[0].KeptUntil == nil || list.Images[0].Reservations == nil {
		t.Errorf("the list is %+v", list)
	}
	for query, want := range map[string]int{
		"image=d-1": 1, "image=debian&host=A&state=failed,there": 1, "image=d": 0, "host=B": 0, "state=late": 0,
	} {
		if list := decode[v1.Images](t, c.nobody.get("/v1/images?"+query)); len(list.Images) != want {
			t.Errorf("%s: got %+v", query, list)
		}
	}
	for _, query := range []string{"state=here", "node=A"} {
		if a := c.nobody.get("/v1/images?" + query); a.status != http.StatusBadRequest {
			t.Errorf("%s: got %v", query, a)
		}
	}
}

func TestWhoDoesNotSeeTheHostsSeesNothingOfThemInTheImages(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Images = pictures{}
		o.Authenticator = api.Fixed(policy.Credentials{ProjectID: "demo", UserID: "u", Roles: []string{"member"}})
	}})
	made := decode[v1.Reservation](t, c.nobody.send(http.MethodPost, "/v1/reservations",
		`{"name": "r", "image": "debian", "duration": 60, "quantity": 2, "start_time": "2099-01-01T00:00:00Z"}`))
	shown := decode[v1.Reservation](t, c.nobody.get("/v1/reservations/"+made.ID))
	if len(shown.Images) != 2 {
		t.Fatalf("GET shows %+v", shown)
	}
	for _, h := range shown.Images {
		if h.Host != "" || h.Detail != "" || h.State != "failed" {
			t.Errorf("its owner sees %+v", h)
		}
	}
}
