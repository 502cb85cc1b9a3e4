// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// almanacd calls Nova at the scheduled time although it was killed before, and reports that
// Nova's fake driver caches no image. Then hosts fetch an image. At last Nova reports success
// for others, after almanacd was killed during the call.
//
//make:test-cloud
func TestTheImageOfAReservationIsPutOnItsHosts(t *testing.T) {
	labtest.Long(t)
	nova := labtest.Interpose(t, labtest.OpenStack(t).Compute)
	b := besideOpenStack(t, "OS_NOVA__ENDPOINT_OVERRIDE="+nova.URL, "OS_STAGING__POLL_INTERVAL=1", "OS_STAGING__MARGIN=0",
		"OS_STAGING__RETRIES=0", "OS_STAGING__REMOVE_UNUSED_ORIGINAL_MINIMUM_AGE_SECONDS=60")
	b.pool("cmp-*")
	said := b.listenToNova()
	b.refusesImages()

	// Nova keeps an image for a minute here, so that it may come at most a minute before the start.
	r := b.reserve(b.demo, v1.ReservationRequest{
		Name: "with an image", Image: "tiny", Quantity: new(2), Duration: new(v1.Duration(3600)), StartTime: new(b.soon(71)),
	})
	planned := b.show(r.ID)
	due := r.Start.Add(-time.Minute)
	if r.Image != b.imageID("tiny") || len(planned.Images) != 2 || !slices.Equal(planned.Hosts, imagedHosts(planned)) ||
		planned.Images[0].State != "scheduled" || !planned.Images[0].Start.Equal(due) {
		t.Fatalf("the reservation is %+v", planned)
	}
	b.crash()
	b.start()
	latest := due // or the return of almanacd, if that is later
	if served := time.Now(); latest.Before(served) {
		latest = served
	}
	b.await("Nova begins to cache the image", func() bool { return len(said.of("start")) > 0 })
	begun := said.of("start")[0]
	if late := begun.at.Sub(latest); begun.at.Before(due.Add(-time.Second)) || late > built.Patience {
		t.Errorf("the call to Nova was at %v, want %v", begun.at, due)
	}
	if !slices.Equal(slices.Sorted(slices.Values(begun.hosts)), planned.Hosts) {
		t.Errorf("the call to Nova has the hosts %v, want %v", begun.hosts, planned.Hosts)
	}
	b.await("Nova has told of both hosts", func() bool { return len(said.of("progress")) == 2 })
	for _, p := range said.of("progress") {
		if !slices.Contains(planned.Hosts, p.host) || !slices.Equal(p.failed, []string{r.Image}) {
			t.Errorf("Nova reports for %s the failed images %v", p.host, p.failed)
		}
	}
	b.imageIs(r.ID, "failed")
	b.await("its owner is told", func() bool {
		return strings.Contains(lastEvent(b.show(r.ID), "image").Detail, "could not be put on 2 of 2 hosts")
	})
	b.told(r.ID, "reservation.image")
	if shown := b.as(labtest.Admin, "reservation", "show", r.ID); !strings.Contains(shown, "failed") {
		t.Errorf("almanac reservation show prints\n%s", shown)
	}

	b.fetches(said)

	// almanacd is killed while it waits for Nova's answer. It is unknown whether Nova got the call,
	// so almanacd does not repeat it while it may be under way.
	ask := fmt.Sprintf("POST /v2.1/os-aggregates/%d/images", b.aggregateID("almanac-images"))
	asked := nova.Count(ask)
	nova.Meddle(ask, labtest.Hang)
	r = b.reserve(b.demo, v1.ReservationRequest{
		Name: "with luck", Image: r.Image, Quantity: new(2), Duration: new(v1.Duration(3600)), StartTime: new(b.soon(62)),
	})
	b.await("Nova gets the call", func() bool { return nova.Count(ask) > asked })
	b.crash()
	nova.Relent()
	b.start()
	b.imageIs(r.ID, "transferring")
	for _, host := range b.show(r.ID).Hosts {
		b.sayCached(host, r.Image)
	}
	b.imageIs(r.ID, "there")
	if n := nova.Count(ask); n != asked+1 {
		t.Errorf("Nova got %d calls, want one", n-asked)
	}
	if list := b.as(labtest.Admin, "image", "list", "--image", r.Image, "-f", "value", "-c", "Host", "-c", "State"); strings.Count(list, "there") != 2 {
		t.Errorf("almanac image list prints\n%s", list)
	}
	b.quiet()
	b.untouched()
}

// fetches checks that hosts whose driver caches an image get it from Glance in time, and that
// Almanac learns that from Nova's notifications.
func (b *beside) fetches(said *novaSaid) {
	b.t.Helper()
	const size = 96 << 20
	data := filepath.Join(b.t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(data, nil, 0o600), os.Truncate(data, size)); err != nil {
		b.t.Fatal(err)
	}
	var image struct{ ID string }
	b.cloud.OpenstackJSON(b.t, labtest.Admin, &image, "image", "create", "--public", "--disk-format", "raw", "--container-format", "bare",
		"--property", "lab_cached=yes", "--file", data, "cached")
	b.t.Cleanup(func() { b.admin.Must(http.MethodDelete, "image", "/v2/images/"+image.ID, nil, nil) })

	r := b.reserve(b.demo, v1.ReservationRequest{
		Name: "fetched", Image: "cached", Quantity: new(2), Duration: new(v1.Duration(3600)), StartTime: new(b.soon(65)),
	})
	b.imageIs(r.ID, "there")
	if !time.Now().Before(r.Start) {
		b.t.Errorf("the image is there at %v, but the reservation started at %v", time.Now(), r.Start)
	}
	var hosts []string
	for _, p := range said.of("progress") {
		if slices.Equal(p.cached, []string{image.ID}) {
			hosts = append(hosts, p.host)
		}
	}
	if slices.Sort(hosts); !slices.Equal(hosts, b.show(r.ID).Hosts) {
		b.t.Errorf("Nova reports the image on %v, want %v", hosts, b.show(r.ID).Hosts)
	}
	if bytes := b.metric("almanac_image_transfer_bytes_total{outcome=\"there\"}"); bytes != 2*size {
		b.t.Errorf("the metrics count %.0f bytes, want %d", bytes, 2*size)
	}
}

// refusesImages checks that an image that does not exist, is not ready or is private to another
// project is the user's error.
func (b *beside) refusesImages() {
	b.t.Helper()
	make := func(who *tenant, name, visibility string) (id string) {
		var made struct{ ID string }
		who.Must("POST", "image", "/v2/images", map[string]any{
			"name": name, "visibility": visibility, "disk_format": "raw", "container_format": "bare",
		}, &made)
		b.t.Cleanup(func() { who.Do("DELETE", "image", "/v2/images/"+made.ID, nil, nil) })
		return made.ID
	}
	queued := make(b.demo, "queued", "private")
	private := make(b.demo2, "hidden", "private")
	make(b.demo, "twice", "private")
	make(b.demo, "twice", "private")
	for image, want := range map[string]string{
		"no such image": "there is no image", uuid.NewString(): "there is no image", private: "there is no image", "hidden": "there is no image",
		queued: "has no data yet", "queued": "has no data yet", "twice": "2 images have the name",
	} {
		_, err := b.demo.almanac.CreateReservation(b.t.Context(), v1.ReservationRequest{Name: "r", Image: image, Duration: new(v1.Duration(60))}, client.CreateOptions{})
		if e, ok := err.(*client.Error); !ok || e.Status != 400 || e.Field != "image" || !strings.Contains(e.Message, want) {
			b.t.Errorf("image %q: got %v, want %s", image, err, want)
		}
	}
}

// untouched checks that bootstrap would remove the aggregate of images, and that it has no
// hosts.
func (b *beside) untouched() {
	b.t.Helper()
	b.await("the aggregate of images is empty", func() bool { return len(b.aggregates()["almanac-images"]) == 0 })
	if said := b.bootstrap("--remove", "--dry-run"); !strings.Contains(said, "delete aggregate almanac-images") {
		b.t.Errorf("almanacd bootstrap --remove would\n%s", said)
	}
}

// imageIs waits until the image of a reservation is in the state on all its hosts.
func (b *beside) imageIs(id, state string) {
	b.t.Helper()
	b.await("its image is "+state+" on all hosts of reservation "+id, func() bool {
		r := b.show(id)
		return len(r.Images) == r.Quantity && !slices.ContainsFunc(r.Images, func(h v1.HostImage) bool { return h.State != state })
	})
}

func imagedHosts(r v1.Reservation) (hosts []string) {
	for _, h := range r.Images {
		hosts = append(hosts, h.Host)
	}
	return hosts
}

func (b *beside) imageID(name string) string {
	b.t.Helper()
	var found struct{ Images []struct{ ID string } }
	b.admin.Must("GET", "image", "/v2/images?name="+name, nil, &found)
	if len(found.Images) != 1 {
		b.t.Fatalf("there are %d images %s", len(found.Images), name)
	}
	return found.Images[0].ID
}

// novaSaid collects Nova's notifications about cached images.
type novaSaid struct {
	mu   sync.Mutex
	list []cacheNews
}

type cacheNews struct {
	phase  string // start, progress or end
	at     time.Time
	hosts  []string // of the aggregate
	host   string
	cached []string
	failed []string
}

func (s *novaSaid) of(phase string) (list []cacheNews) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.list {
		if n.phase == phase {
			list = append(list, n)
		}
	}
	return list
}

func (s *novaSaid) hear(_ context.Context, n oslo.Notification) error {
	phase, is := strings.CutPrefix(n.EventType, "aggregate.cache_images.")
	var payload struct {
		Data struct {
			Hosts  []string `json:"hosts"`
			Host   string   `json:"host"`
			Cached []string `json:"images_cached"`
			Failed []string `json:"images_failed"`
		} `json:"nova_object.data"`
	}
	if !is || json.Unmarshal(n.Payload, &payload) != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, cacheNews{phase, n.Time, payload.Data.Hosts, payload.Data.Host, payload.Data.Cached, payload.Data.Failed})
	return nil
}

// novaTransport returns the broker of Nova's services, with the options of their queues.
func (b *beside) novaTransport() (*amqp.Transport, oslo.QueueOptions) {
	b.t.Helper()
	at, err := oslo.ParseURL(labtest.NovaTransport(b.t))
	if err != nil {
		b.t.Fatal(err)
	}
	queues, err := at.Queues(oslo.QueueOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	transport, err := amqp.Open(at, amqp.Options{Name: "beside nova", NewID: uuid.NewString, Now: time.Now})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { transport.Close() })
	return transport, queues
}

// listenToNova collects Nova's notifications about images until the test ends.
func (b *beside) listenToNova() *novaSaid {
	b.t.Helper()
	transport, queues := b.novaTransport()
	said := &novaSaid{}
	listener := oslo.NewListener(transport, oslo.ListenerOptions{
		Exchange: "nova", Topics: []string{"versioned_notifications"}, Priorities: []oslo.Priority{oslo.Info},
		Pool: "test." + uuid.NewString(), Own: true, Queues: queues, Handle: said.hear,
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- listener.Serve(ctx) }()
	b.t.Cleanup(func() {
		stop()
		<-ended
	})
	select {
	case <-listener.Ready():
	case <-time.After(built.Patience):
		b.t.Fatal("the listener does not receive Nova's notifications")
	}
	return said
}

// sayCached publishes what Nova would report for a host whose driver has cached the image: its
// recorded notification of a failure, with the two lists exchanged.
func (b *beside) sayCached(host, image string) {
	b.t.Helper()
	text, err := os.ReadFile("../../reservation/staging/openstack/testdata/notification-aggregate.cache_images.progress.json")
	if err != nil {
		b.t.Fatal(err)
	}
	var frame struct {
		Publisher string `json:"publisher_id"`
		Type      string `json:"event_type"`
		Payload   map[string]any
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&frame); err != nil {
		b.t.Fatal(err)
	}
	data := frame.Payload["nova_object.data"].(map[string]any)
	data["host"], data["images_cached"], data["images_failed"] = host, []string{image}, []string{}
	payload, err := json.Marshal(frame.Payload)
	if err != nil {
		b.t.Fatal(err)
	}
	transport, queues := b.novaTransport()
	err = oslo.NewNotifier(transport, oslo.NotifierOptions{
		Exchange: "nova", PublisherID: frame.Publisher, Topics: []string{"versioned_notifications"}, Queues: queues, NewID: uuid.NewString, Now: time.Now,
	}).Notify(b.t.Context(), oslo.Notification{EventType: frame.Type, Payload: payload})
	if err != nil {
		b.t.Fatal(err)
	}
}
