// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

const (
	// retryAfter is how long an instance that did not leave is not chosen again, so that not every
	// request waits for it.
	retryAfter = 10 * time.Minute
	// cleanupTimeout limits the wait for Nova to delete the allocations of a victim that is gone: a
	// busy conductor needs many seconds for that.
	cleanupTimeout = 30 * time.Second
)

// evictAll orders the victims to leave and returns when they are gone. It fails with a Failure if a
// victim stays.
func (e *eviction) evictAll(ctx context.Context) error {
	waiting, err := e.order(ctx)
	if err != nil {
		return err
	}
	until := e.evictor.Now().Add(e.evictor.Timeout)
	for pause := firstPoll; len(waiting) > 0; pause = min(2*pause, lastPoll) {
		left := until.Sub(e.evictor.Now())
		if left <= 0 {
			var failure Failure
			for _, v := range waiting {
				failure = append(failure, stay{v, fmt.Sprintf("it has not gone within %v", e.evictor.Timeout)})
			}
			e.evictor.unevictable.add(waiting, e.evictor.Now().Add(retryAfter))
			return failure
		}
		if err := e.evictor.Wait(ctx, min(pause, left)); err != nil {
			return timedOut(err)
		}
		if waiting, err = e.progress(ctx, waiting); err != nil {
			return err
		}
	}
	return nil
}

// order orders all victims to leave, or none if one of them can no longer be evicted. It returns
// those that are not gone yet.
func (e *eviction) order(ctx context.Context) (waiting []Victim, err error) {
	var failure Failure
	for _, v := range e.Victims {
		now, there, err := e.evictor.locate(ctx, v.Instance.ID, v.Instance.Host)
		switch {
		case err != nil:
			failure = append(failure, stay{v, err.Error()})
		case there:
			waiting = append(waiting, v)
			if reason := spared(v, now); reason != "" {
				failure = append(failure, stay{v, reason})
			}
		}
	}
	if len(failure) > 0 {
		return nil, failure
	}
	return e.progress(ctx, waiting)
}

// spared returns the reason why a victim that was not ordered to leave stays; "" if it should
// leave.
func spared(v Victim, now inventory.Instance) string {
	if isBeingDeleted(now) {
		return ""
	}
	now.Holds = v.Instance.Holds
	return now.NotEvictable()
}

// progress takes the next step for each victim and returns those that are not gone yet. At the
// first victim that stays, it fails with a Failure and orders no other victim.
func (e *eviction) progress(ctx context.Context, victims []Victim) (waiting []Victim, err error) {
	for _, v := range victims {
		now, there, err := e.evictor.locate(ctx, v.Instance.ID, v.Instance.Host)
		if err == nil && !there && (!e.evictor.EvictFirst || now.Task == "" && now.Status != "VERIFY_RESIZE") {
			e.evictor.evicted.Add(1)
			continue
		}
		waiting = append(waiting, v)
		if err != nil {
			continue
		}
		if reason := e.requestEviction(ctx, v, now); reason != "" {
			return nil, Failure{{v, reason}}
		}
	}
	return waiting, nil
}

// requestEviction orders a victim to leave, or to take the next step. It does not order a victim
// again that is locked or busy: Nova does not check that for an operator (nova/compute/api.py
// check_instance_lock, force_delete). It returns the reason why the victim stays; "" if it leaves,
// or may leave.
func (e *eviction) requestEviction(ctx context.Context, v Victim, now inventory.Instance) (reason string) {
	status, ordered := e.ordered[v.Instance.ID]
	switch {
	case isBeingDeleted(now):
		e.ordered[v.Instance.ID] = now.Status
		return ""
	case !ordered:
		if reason := spared(v, now); reason != "" {
			return reason
		}
		e.evictor.Log.InfoContext(ctx, "evicting an instance to make room", "instance", v.Instance.ID, "name", v.Instance.Name,
			"project", v.Instance.ProjectID, "host", v.On.Name, "cost", v.Cost, "request", e.ID)
	case status == now.Status, !now.Preemptible, now.Locked, now.Protected, now.Task != "":
		return ""
	}
	v.Instance.Status = now.Status
	err := e.evictor.Servers.Leave(ctx, v.Instance)
	if err == nil {
		e.ordered[v.Instance.ID] = now.Status
		return ""
	}
	e.evictor.Log.WarnContext(ctx, "Nova did not accept the order to evict an instance", "instance", v.Instance.ID, "request", e.ID, "error", err)
	if !fault.Is(err, fault.Conflict) {
		e.ordered[v.Instance.ID] = ""
	} else if !ordered {
		e.evictor.unevictable.add([]Victim{v}, e.evictor.Now().Add(retryAfter))
		return "Nova refuses: " + err.Error()
	}
	return ""
}

// isBeingDeleted reports whether any user has started to delete the instance.
func isBeingDeleted(i inventory.Instance) bool {
	return i.Task == "deleting" || i.Task == "soft-deleting"
}

// awaitCleanup waits, at most cleanupTimeout for each victim, until Nova has deleted the
// allocations that Placement still had for the victim when it left. Nova does so some moments after
// an instance is gone (nova/compute/manager.py _delete_instance). Then awaitCleanup reads the
// victims' hosts again, so that Almanac counts their room as free.
func (e *eviction) awaitCleanup(ctx context.Context) {
	var hosts []string
	for _, v := range e.Victims {
		if len(v.claim.Allocations) == 0 {
			continue
		}
		if !slices.Contains(hosts, v.On.Name) {
			hosts = append(hosts, v.On.Name)
		}
		for pause, waited := firstPoll, time.Duration(0); waited < cleanupTimeout; pause = min(2*pause, lastPoll) {
			has, err := e.evictor.Placement.AllocationsOf(ctx, v.Instance.ID)
			if err != nil || !has.Allocations.Equal(v.claim.Allocations) || e.evictor.Wait(ctx, pause) != nil {
				break
			}
			waited += pause
		}
	}
	if len(hosts) == 0 {
		return
	}
	if err := e.evictor.Looker.Look(ctx, hosts); err != nil {
		e.evictor.Log.WarnContext(ctx, "could not read hosts again", "hosts", hosts, "request", e.ID, "error", err)
	}
	for _, host := range hosts {
		e.evictor.Board.InstanceLeft(host)
	}
}
