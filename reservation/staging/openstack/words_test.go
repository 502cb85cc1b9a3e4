// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
	"github.com/almanac-cloud/almanac/reservation/staging/openstack"
)

// recorded returns a notification of Nova 26 about an image that its fake driver did not
// cache, after a call with a global request id.
func recorded(t *testing.T) oslo.Notification {
	t.Helper()
	text, err := os.ReadFile("testdata/notification-aggregate.cache_images.progress.json")
	if err != nil {
		t.Fatal(err)
	}
	var frame struct {
		Type    string          `json:"event_type"`
		Payload json.RawMessage `json:"payload"`
		Global  json.RawMessage `json:"_context_global_request_id"`
	}
	if err := json.Unmarshal(text, &frame); err != nil {
		t.Fatal(err)
	}
	return oslo.Notification{EventType: frame.Type, Payload: frame.Payload, Context: oslo.Context{"global_request_id": frame.Global}}
}

const tiny = "6d1cc57a-851a-4ddf-92d6-d41dbf4efaba"

func TestNovaTellsOfTheImagesOfAHost(t *testing.T) {
	failed := recorded(t)
	cached := recorded(t)
	text := string(cached.Payload)
	text = strings.Replace(text, `"images_failed"`, `"x"`, 1)
	text = strings.Replace(text, `"images_cached"`, `"images_failed"`, 1)
	cached.Payload = json.RawMessage(strings.Replace(text, `"x"`, `"images_cached"`, 1))
	const call = "req-75d34f52-5e5b-45fb-81b5-9ede1e624ccf"
	others := recorded(t)
	others.Context = oslo.Context{"global_request_id": json.RawMessage("null")}
	for name, tc := range map[string]struct {
		n    oslo.Notification
		want controller.Word
	}{
		"failed":               {failed, controller.Word{Call: call, Host: "cmp-001", Cached: []string{}, Failed: []string{tiny}}},
		"cached":               {cached, controller.Word{Call: call, Host: "cmp-001", Cached: []string{tiny}, Failed: []string{}}},
		"by an operator's own": {others, controller.Word{Host: "cmp-001", Cached: []string{}, Failed: []string{tiny}}},
	} {
		got, told := openstack.Said(tc.n)
		if d := cmp.Diff(tc.want, got); !told || d != "" {
			t.Errorf("%s: told %v (-want +got):\n%s", name, told, d)
		}
	}
}

func TestWhatTellsOfNoImagesIsLeftAlone(t *testing.T) {
	start := recorded(t)
	start.EventType = "aggregate.cache_images.start"
	broken, empty := recorded(t), recorded(t)
	broken.Payload, empty.Payload = json.RawMessage(`{"nova_object.data": [`), json.RawMessage(`{}`)
	for name, n := range map[string]oslo.Notification{"the start": start, "not readable": broken, "without a host": empty, "nothing": {}} {
		if w, told := openstack.Said(n); told {
			t.Errorf("%s is read as %+v", name, w)
		}
	}
}

func TestWhatComesOfTheAggregateOfImagesTellsNothingOfHosts(t *testing.T) {
	said := func(kind, name string) oslo.Notification {
		return oslo.Notification{EventType: kind, Payload: json.RawMessage(fmt.Sprintf(`{"nova_object.data": {"name": %q}}`, name))}
	}
	if !openstack.Own(said("aggregate.add_host.end", fence.ImagesAggregate)) {
		t.Error("a notification about the images' aggregate counts as one about a host")
	}
	for _, other := range []oslo.Notification{
		said("aggregate.add_host.end", "almanac-pool"), said("instance.update", fence.ImagesAggregate), {EventType: "aggregate.add_host.end", Payload: json.RawMessage(`[`)},
	} {
		if openstack.Own(other) {
			t.Errorf("%s with %s is not reported", other.EventType, other.Payload)
		}
	}
}
