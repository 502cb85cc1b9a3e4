// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

const (
	// maxRefusals is how often Placement may refuse a host before the request ignores the host:
	// Placement may have reasons that reading the host again does not reveal.
	maxRefusals = 3
	// maxLooks is how often a request may read uncertain hosts before it is refused, or before it
	// waits for an eviction: other requests may make hosts uncertain again in the meantime.
	maxLooks = 10
	// readTimeout limits a reading for which requests wait. It is long, because a refusal is final for
	// the tenant, while Nova's conductor waits half an hour for a scheduler that shows signs of life.
	readTimeout = 2 * time.Minute
)

// confirm checks, before a request is refused, that there is really no room. It reads the uncertain
// hosts, then once all hosts, and then uncertain hosts again, which are few now, until none is left.
// After each reading it returns true: the caller should choose hosts again.
func (t *task) confirm(ctx context.Context, refusal error) bool {
	if !fault.Is(refusal, fault.Conflict) {
		return false
	}
	return t.looks == 0 && t.lookAtUncertain(ctx) || t.readAll(ctx) || t.lookAtUncertain(ctx)
}

// lookAtUncertain reads the hosts that may have more room than the live state shows. It reports
// whether it has read them.
func (t *task) lookAtUncertain(ctx context.Context) bool {
	hosts := t.dispatcher.Board.UncertainHosts()
	if len(hosts) == 0 || t.looks == maxLooks {
		return false
	}
	t.looks++
	return t.look(ctx, hosts) == nil
}

// readAll reads all hosts, once for a request. It reports whether it has read them.
func (t *task) readAll(ctx context.Context) bool {
	d := t.dispatcher
	if t.reread || d.Reread == nil {
		return false
	}
	t.reread = true
	if _, err := d.reads.Get(ctx); err != nil {
		d.Log.WarnContext(ctx, "could not read the hosts again", "request", t.request.ID, "error", err)
		return false
	}
	return true
}

// lookAt reads hosts again after Placement has refused them. The request then ignores those that
// cannot be read, and those that Placement has refused several times.
func (t *task) lookAt(ctx context.Context, hosts []string, refusal error) {
	err := t.look(ctx, hosts)
	_, stay := errors.AsType[eviction.Failure](refusal)
	for _, host := range hosts {
		if !stay && !errors.Is(refusal, placing.ErrConcurrentUpdate) {
			t.refusals[host]++
		}
		if err != nil || t.refusals[host] >= maxRefusals {
			t.request.IgnoreHosts = append(slices.Clip(t.request.IgnoreHosts), host)
		}
	}
}

// look reads the hosts from the cloud again, and logs a failure.
func (t *task) look(ctx context.Context, hosts []string) error {
	err := t.dispatcher.Looker.Look(ctx, hosts)
	if err != nil {
		t.dispatcher.Log.WarnContext(ctx, "could not read hosts again", "hosts", hosts, "request", t.request.ID, "error", err)
	}
	return err
}
