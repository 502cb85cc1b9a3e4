// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"encoding/json"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// progress is the type of the notifications about the caching of images on one host
// (nova/compute/utils.py notify_about_aggregate_cache).
const progress = "aggregate.cache_images.progress"

// Own reports whether a notification of Nova concerns Almanac's own aggregate of images. Such a
// notification reveals nothing about hosts.
func Own(n oslo.Notification) bool {
	var payload struct {
		Data struct {
			Name string `json:"name"`
		} `json:"nova_object.data"` // nova/notifications/objects/aggregate.py AggregatePayload
	}
	return strings.HasPrefix(n.EventType, "aggregate.") && json.Unmarshal(n.Payload, &payload) == nil && payload.Data.Name == fence.ImagesAggregate
}

// Said returns what a notification of Nova reports about an image on a host; told is false if the
// notification concerns something else or cannot be read. It may report about a call of somebody
// else who requests images from Nova; Call is then the id of that call.
func Said(n oslo.Notification) (w controller.Word, told bool) {
	if n.EventType != progress {
		return w, false
	}
	var payload struct {
		Data struct {
			Host   string   `json:"host"`
			Cached []string `json:"images_cached"`
			Failed []string `json:"images_failed"`
		} `json:"nova_object.data"` // nova/notifications/objects/aggregate.py AggregateCachePayload
	}
	if json.Unmarshal(n.Payload, &payload) != nil || payload.Data.Host == "" {
		return w, false
	}
	w = controller.Word{Host: payload.Data.Host, Cached: payload.Data.Cached, Failed: payload.Data.Failed}
	// Nova before oslo.context 2.18 has no global request ids.
	_ = json.Unmarshal(n.Context["global_request_id"], &w.Call)
	return w, true
}
