// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/glance"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	services "github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
	"github.com/almanac-cloud/almanac/reservation/staging/openstack"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func session(t *testing.T) *keystone.Session {
	t.Helper()
	u := labtest.Almanac
	s, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.OpenStack(t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cloud returns the lab's Nova behind a meddler that can falsify answers, and a function that
// returns the hosts of Almanac's aggregate.
func cloud(t *testing.T) (c openstack.ImageCache, door *labtest.Meddler, hosts func() []string) {
	t.Helper()
	s := session(t)
	door = labtest.Interpose(t, labtest.OpenStack(t).Compute)
	compute, err := nova.New(s, services.Options{Override: door.URL})
	if err != nil {
		t.Fatal(err)
	}
	c = openstack.ImageCache{Compute: compute}
	t.Cleanup(func() {
		door.Relent()
		if err := c.Leave(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c, door, func() []string {
		a, err := compute.AggregateNamed(t.Context(), fence.ImagesAggregate)
		if err != nil {
			t.Fatal(err)
		}
		return a.Hosts
	}
}

const ask = "POST /v2.1/os-aggregates/{id}/images"

func TestNovaIsAskedForTheHostsOfTheCallAlone(t *testing.T) {
	c, _, hosts := cloud(t)
	image := find(t, "tiny", "anybody").ID
	for range 2 {
		if asked, err := c.Cache(t.Context(), "req-"+uuid.NewString(), image, []string{"cmp-001", "cmp-002"}); !asked || err != nil {
			t.Fatalf("asked %v: %v", asked, err)
		}
		if left := hosts(); len(left) > 0 {
			t.Errorf("after the call, the aggregate has %v", left)
		}
	}
}

func TestAHostThatNovaDoesNotKnowIsLeftOutOfTheCall(t *testing.T) {
	c, door, hosts := cloud(t)
	image := find(t, "tiny", "anybody").ID
	for _, tc := range []struct {
		hosts []string
		asked bool
	}{{[]string{"nowhere", "cmp-001"}, true}, {[]string{"nowhere"}, false}} {
		before := door.Count(ask)
		asked, err := c.Cache(t.Context(), "req-"+uuid.NewString(), image, tc.hosts)
		left, is := errors.AsType[*controller.LeftOut](err)
		if asked != tc.asked || !is || len(left.Hosts) != 1 || !fault.Is(left.Hosts["nowhere"], fault.NotFound) {
			t.Errorf("%v: asked %v: %v", tc.hosts, asked, err)
		}
		if sent := door.Count(ask) > before; sent != tc.asked {
			t.Errorf("%v: Nova got a call: %v", tc.hosts, sent)
		}
	}
	if left := hosts(); len(left) > 0 {
		t.Errorf("after the calls, the aggregate has %v", left)
	}
}

func TestOfACallWithoutAnAnswerNobodyKnows(t *testing.T) {
	c, door, _ := cloud(t)
	door.Meddle(ask, labtest.Cut)
	if asked, err := c.Cache(t.Context(), "req-"+uuid.NewString(), uuid.NewString(), []string{"cmp-001"}); !asked || !fault.Is(err, fault.Unavailable) {
		t.Errorf("asked %v: %v", asked, err)
	}
}

func find(t *testing.T, text, project string) controller.Image {
	t.Helper()
	i, err := images(t).Find(t.Context(), text, project)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func images(t *testing.T) openstack.Images {
	t.Helper()
	c, err := glance.New(session(t), services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return openstack.Images{Glance: c}
}

func TestAnImageIsMeantByItsIDOrByANameThatOnlyOneHas(t *testing.T) {
	tiny := find(t, "tiny", "anybody")
	if again := find(t, tiny.ID, "anybody"); again != tiny || tiny.Bytes == 0 || tiny.Name != "tiny" {
		t.Errorf("by name the image is %+v, by id %+v", tiny, again)
	}
	all := images(t)
	if i, gone, err := all.Look(t.Context(), tiny.ID); gone || err != nil || i != tiny {
		t.Errorf("the image is %+v, gone %v: %v", i, gone, err)
	}
	if _, gone, err := all.Look(t.Context(), "debian 12"); !gone || err != nil {
		t.Errorf("a text that is no id is reported as present: %v", err)
	}
}

func TestWhoDoesNotSeeAnImageMeansNone(t *testing.T) {
	all, owner := images(t), labtest.Keystone(t).REST(t, labtest.Demo)
	made := map[string]string{}
	var project string
	for _, visibility := range []string{"private", "shared", "community"} {
		var image struct{ ID, Owner string }
		name := visibility + "-" + uuid.NewString()
		owner.Must("POST", "image", "/v2/images", map[string]any{"name": name, "visibility": visibility, "disk_format": "raw", "container_format": "bare"}, &image)
		t.Cleanup(func() { owner.Do("DELETE", "image", "/v2/images/"+image.ID, nil, nil) })
		made[visibility], made[visibility+" by name"], project = image.ID, name, image.Owner
	}
	owner.Must("POST", "image", "/v2/images/"+made["shared"]+"/members", map[string]string{"member": "friend"}, nil)
	const none, empty = "there is no image", "has no data yet"
	for _, tc := range []struct{ who, image, want string }{
		{project, "private", empty}, {project, "private by name", empty}, {project, "community by name", empty},
		{"stranger", "private", none}, {"stranger", "private by name", none}, {"stranger", "shared", none},
		{"stranger", "community", empty}, {"stranger", "community by name", none},
		{"friend", "shared", empty}, {"friend", "shared by name", none}, // not accepted yet
		{"", "private", none},
	} {
		_, err := all.Find(t.Context(), made[tc.image], tc.who)
		if f := fault.Of(err); f.Field != "image" || !fault.Is(err, fault.Invalid) || !strings.Contains(f.Message, tc.want) {
			t.Errorf("%s for %s: %v, want %s", tc.image, tc.who, err, tc.want)
		}
	}
}

func TestANameThatGlanceCannotLookForIsRefused(t *testing.T) {
	for _, text := range []string{"gt:5", "neq:x", `in:"`} {
		_, err := images(t).Find(t.Context(), text, "p")
		if f := fault.Of(err); f.Kind != fault.Invalid || f.Field != "image" || !strings.Contains(f.Message, "use its id") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Each image of another project that is shared with the caller costs one call.
func TestOfManySharedImagesOfOneNameTheIDIsWanted(t *testing.T) {
	c, err := glance.New(session(t), services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	owner := labtest.Keystone(t).REST(t, labtest.Demo2)
	name := "shared-" + uuid.NewString()
	var image struct{ ID, Owner string }
	for range 21 {
		owner.Must("POST", "image", "/v2/images", map[string]any{"name": name, "visibility": "shared", "disk_format": "raw", "container_format": "bare"}, &image)
		id := image.ID
		t.Cleanup(func() { owner.Do("DELETE", "image", "/v2/images/"+id, nil, nil) })
	}
	before := c.Calls()
	_, err = openstack.Images{Glance: c}.Find(t.Context(), name, "stranger")
	if f := fault.Of(err); f.Field != "image" || !strings.Contains(f.Message, "21 images of other projects") {
		t.Errorf("a stranger: %v", err)
	}
	if n := c.Calls() - before; n > 3 {
		t.Errorf("the lookup made %d calls", n)
	}
	_, err = openstack.Images{Glance: c}.Find(t.Context(), name, image.Owner)
	if f := fault.Of(err); !strings.Contains(f.Message, "21 images have the name") {
		t.Errorf("the owner: %v", err)
	}
}

// bare is a session of a cloud without Glance.
type bare struct{}

func (bare) Token(context.Context, string) (string, error) { return "token", nil }
func (bare) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", &fault.Error{Kind: fault.Unavailable, Message: "there is no service image", Err: keystone.ErrNoService}
}

func TestWithoutGlanceInTheCatalogNothingIsFoundNorGone(t *testing.T) {
	c, err := glance.New(bare{}, services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := openstack.Images{Glance: c}
	for _, text := range []string{"tiny", uuid.NewString()} {
		if _, err := all.Find(t.Context(), text, "p"); !errors.Is(err, controller.ErrNoGlance) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, gone, err := all.Look(t.Context(), "tiny"); gone || !errors.Is(err, controller.ErrNoGlance) {
		t.Errorf("gone %v: %v", gone, err)
	}
}
