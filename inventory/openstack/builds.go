package openstack

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// remembered is how long a failed build is held against a host on which none is tried any
// more. Nova does so until its nova-compute starts anew, of which nothing tells for sure.
const remembered = 24 * time.Hour

// Builds counts for each host the builds that have failed on it since the last that did
// not. Each nova-compute does so for itself, and no API shows it (nova/compute/stats.py
// build_failed); its notifications tell of what it counts, but for builds that end before
// they begin. What is missed stays unknown: it is a statistic. It is safe for concurrent
// use; nil counts nothing.
type Builds struct {
	now func() time.Time

	mu    sync.Mutex
	hosts map[string]builds
}

// builds are those of one host.
type builds struct {
	failed int64
	last   time.Time // when the last failure was heard of
	// since is the time of the last build that did not fail. Failures and successes come
	// in two queues, so that one from before it may be heard of afterwards.
	since time.Time
}

// NewBuilds gives a count by the clock now.
func NewBuilds(now func() time.Time) *Builds { return &Builds{now: now, hosts: map[string]builds{}} }

// Forget has nothing held against a host any more: its nova-compute has started anew.
func (b *Builds) Forget(host string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.hosts, host)
}

// byPolicy is the exception of builds that fail where a server group forbids the host,
// which Nova does not hold against it (nova/compute/manager.py RescheduledByPolicyException).
const byPolicy = "GroupAffinityViolation"

// hear follows a notification.
func (b *Builds) hear(n oslo.Notification) {
	if b == nil {
		return
	}
	// The payload of a failed build may name no host any more; its sender does.
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

func (b *Builds) fail(host string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := b.of(host)
	if at.Before(had.since) {
		return
	}
	b.hosts[host] = builds{failed: had.failed + 1, last: b.now(), since: had.since}
}

// of gives what is remembered of a host; mu is held.
func (b *Builds) of(host string) builds {
	had := b.hosts[host]
	if had.last.Before(b.now().Add(-remembered)) {
		had.failed = 0
	}
	return had
}

// exceptionOf gives the class of the exception that a notification tells of
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
	_ = json.Unmarshal(n.Payload, &payload) // then it is one like any other
	return payload.Data.Fault.Data.Exception
}

// usable gives the host whose nova-compute is new, gone or open again for instances, as
// somebody has said; empty is none (nova/notifications/objects/service.py).
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

// lay puts the counts into the states of all hosts. A nova-compute that is down has lost
// its own with its process, and of hosts that are not there nothing is kept.
func (b *Builds) lay(states []inventory.HostState) {
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
