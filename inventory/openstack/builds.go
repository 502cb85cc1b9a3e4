// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// remembered is how long a failed build counts against a host without further builds. Nova
// counts it until its nova-compute restarts, which no notification reports reliably.
const remembered = 24 * time.Hour

// Builds counts, for each host, the builds that failed on it since the last success. Each
// nova-compute counts these itself, and no API returns the count (nova/compute/stats.py
// build_failed). Its notifications report them, except for builds that fail before they begin. A
// lost notification makes the count wrong, which is acceptable for a statistic. Builds is safe for
// concurrent use; a nil *Builds counts nothing.
type Builds struct {
	now func() time.Time

	mu    sync.Mutex
	hosts map[string]builds
}

// builds is the count of one host.
type builds struct {
	failed int64
	last   time.Time // when the last failure was received
	// since is the time of the last success. Failures and successes arrive in two queues, so a
	// failure from before it may arrive after it.
	since time.Time
}

// NewBuilds returns an empty count with the clock now.
func NewBuilds(now func() time.Time) *Builds { return &Builds{now: now, hosts: map[string]builds{}} }

// Forget resets a host's count, after its nova-compute restarted.
func (b *Builds) Forget(host string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.hosts, host)
}

// byPolicy is the exception of builds that fail because a server group forbids the host, which
// Nova does not count (nova/compute/manager.py RescheduledByPolicyException).
const byPolicy = "GroupAffinityViolation"

// observe updates the count from a notification.
func (b *Builds) observe(n oslo.Notification) {
	if b == nil {
		return
	}
	// The payload of a failed build may no longer name the host; its publisher id does.
	compute, sent := strings.CutPrefix(n.PublisherID, "nova-compute:")
	switch n.EventType {
	case "instance.create.end":
		if sent {
			b.succeeded(compute, n.Time)
		}
	case "instance.create.error":
		if sent && exceptionOf(n) != byPolicy {
			b.fail(compute, n.Time)
		}
	case "service.create", "service.update", "service.delete":
		if host := usable(n); host != "" {
			b.Forget(host)
		}
	}
}

func (b *Builds) succeeded(host string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts[host] = builds{since: at}
}

// fail counts a failed build on the host, unless a later build has succeeded there.
func (b *Builds) fail(host string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := b.of(host)
	if at.Before(had.since) {
		return
	}
	b.hosts[host] = builds{failed: had.failed + 1, last: b.now(), since: had.since}
}

// of returns the count of a host. The caller holds mu.
func (b *Builds) of(host string) builds {
	had := b.hosts[host]
	if had.last.Before(b.now().Add(-remembered)) {
		had.failed = 0
	}
	return had
}

// exceptionOf returns the class of the exception in a notification
// (nova/notifications/objects/exception.py).
func exceptionOf(n oslo.Notification) string {
	var payload struct {
		Data struct {
			Fault struct {
				Data struct {
					Exception string `json:"exception"`
				} `json:"nova_object.data"`
			} `json:"fault"`
		} `json:"nova_object.data"`
	}
	_ = json.Unmarshal(n.Payload, &payload) // without one, it is an ordinary failure
	return payload.Data.Fault.Data.Exception
}

// usable returns the host whose nova-compute is new, deleted or enabled again; empty means none
// (nova/notifications/objects/service.py).
func usable(n oslo.Notification) string {
	var payload struct {
		Data struct {
			Host       string `json:"host"`
			Binary     string `json:"binary"`
			Disabled   bool   `json:"disabled"`
			ForcedDown bool   `json:"forced_down"`
		} `json:"nova_object.data"`
	}
	if json.Unmarshal(n.Payload, &payload) != nil || payload.Data.Binary != "nova-compute" || payload.Data.Disabled || payload.Data.ForcedDown {
		return ""
	}
	return payload.Data.Host
}

// apply sets the counts in the states of all hosts. It drops those of hosts that are gone or
// down: a nova-compute that is down has lost its own count.
func (b *Builds) apply(states []inventory.HostState) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := make(map[string]builds, len(b.hosts))
	for i := range states {
		host := &states[i]
		if _, known := b.hosts[host.Name]; known && host.Up {
			kept[host.Name] = b.of(host.Name)
			host.FailedBuilds = kept[host.Name].failed
		}
	}
	b.hosts = kept
}
