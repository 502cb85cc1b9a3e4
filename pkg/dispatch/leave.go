package dispatch

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// vacate has the victims leave and returns when they are gone. It fails with a *staying
// where one of them stays.
func (e *eviction) vacate(ctx context.Context) error {
	waiting, err := e.order(ctx)
	if err != nil {
		return err
	}
	return e.await(ctx, waiting, e.Now().Add(e.EvictionTimeout))
}

// order tells the victims to leave that can be evicted still, all of them or none, and
// gives those that have not gone by then.
func (e *eviction) order(ctx context.Context) (waiting []victim, err error) {
	var stays staying
	for _, v := range e.victims {
		now, there, err := e.look(ctx, v)
		switch {
		case err != nil:
			stays.add(v, err.Error())
		case there:
			waiting = append(waiting, v)
			if reason := e.spared(v, now); reason != "" {
				stays.add(v, reason)
			}
		}
	}
	if len(stays.victims) > 0 {
		return nil, &stays
	}
	return e.press(ctx, waiting)
}

// spared says why a victim that has not been told to leave stays; empty where it goes.
func (e *eviction) spared(v victim, now inventory.Instance) string {
	if leaving(now) {
		return ""
	}
	now.Holds = v.Holds
	return now.NotEvictable()
}

// leaving says that an instance is being deleted, by whomsoever.
func leaving(i inventory.Instance) bool { return i.Task == "deleting" || i.Task == "soft-deleting" }

// press looks at victims, tells those what there is to tell that do not leave yet, and gives
// those that have not gone. It fails with a *staying at the first that stays, and tells the
// others nothing.
func (e *eviction) press(ctx context.Context, victims []victim) (waiting []victim, err error) {
	for _, v := range victims {
		now, there, err := e.look(ctx, v)
		if err == nil && !there && (!e.LeaveFirst || now.Task == "" && now.Status != "VERIFY_RESIZE") {
			e.evicted.gone.Add(1)
			continue
		}
		waiting = append(waiting, v)
		if err != nil {
			continue
		}
		if reason := e.urge(ctx, v, now); reason != "" {
			var stays staying
			stays.add(v, reason)
			return nil, &stays
		}
	}
	return waiting, nil
}

// urge tells a victim to leave, or its next step, if there is one. Nova asks an operator
// neither whether a server is locked nor whether it is busy (nova/compute/api.py
// check_instance_lock, force_delete), so that it is not told that of such a one. urge says
// why it stays; empty where it is on its way, or may be.
func (e *eviction) urge(ctx context.Context, v victim, now inventory.Instance) (reason string) {
	told, ever := e.ordered[v.ID]
	switch {
	case leaving(now):
		e.ordered[v.ID] = now.Status
		return ""
	case !ever:
		if reason := e.spared(v, now); reason != "" {
			return reason
		}
		e.Log.InfoContext(ctx, "an instance is evicted: it has to make room", "instance", v.ID, "name", v.Name, "project", v.ProjectID,
			"host", v.on.Name, "cost", v.cost, "request", e.request.ID)
	case told == now.Status, !now.Preemptible, now.Locked, now.Protected, now.Task != "":
		return ""
	}
	v.Status = now.Status
	err := e.Servers.Leave(ctx, v.Instance)
	if err == nil {
		e.ordered[v.ID] = now.Status
		return ""
	}
	e.Log.WarnContext(ctx, "an instance is not evicted: it did not take its order", "instance", v.ID, "request", e.request.ID, "error", err)
	if !fault.Is(err, fault.Conflict) {
		e.ordered[v.ID] = ""
	} else if !ever {
		e.stubborn.add([]victim{v}, e.Now().Add(stubbornFor))
		return "Nova refuses: " + err.Error()
	}
	return ""
}

// look gives a victim as it is now, and whether it is still where it makes room.
func (d *Dispatcher) look(ctx context.Context, v victim) (now inventory.Instance, there bool, err error) {
	now, err = d.Servers.Server(ctx, v.ID)
	if fault.Is(err, fault.NotFound) {
		return now, false, nil
	}
	return now, err == nil && now.Host == v.Host && now.Status != "SHELVED_OFFLOADED" && now.Status != "DELETED", err
}

// await returns when the victims have gone, or fails with those that have not by then.
func (e *eviction) await(ctx context.Context, waiting []victim, until time.Time) error {
	for pause := firstLook; len(waiting) > 0; pause = min(2*pause, lastLook) {
		left := until.Sub(e.Now())
		if left <= 0 {
			return e.overdue(waiting)
		}
		if err := e.Wait(ctx, min(pause, left)); err != nil {
			return late(err)
		}
		var err error
		if waiting, err = e.press(ctx, waiting); err != nil {
			return err
		}
	}
	return nil
}

func (e *eviction) overdue(waiting []victim) error {
	stays := &staying{}
	for _, v := range waiting {
		stays.add(v, fmt.Sprintf("it has not gone within %v", e.EvictionTimeout))
	}
	e.stubborn.add(stays.victims, e.Now().Add(stubbornFor))
	return stays
}

// late is the fault of an eviction for which there was no time left.
func late(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: stayed, Err: err}
}

// stubborn are instances that have not left when they had to.
type stubborn struct {
	mu   sync.Mutex
	list map[string]stubbornly
}

type stubbornly struct {
	host  string
	until time.Time
}

func (s *stubborn) add(victims []victim, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		s.list = map[string]stubbornly{}
	}
	for _, v := range victims {
		s.list[v.ID] = stubbornly{v.on.Name, until}
	}
}

// with gives the hosts of all that make no room: of those that are aside, and of the
// stubborn ones.
func (s *stubborn) with(aside map[string]string, now time.Time) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.list, func(_ string, one stubbornly) bool { return now.After(one.until) })
	if len(s.list) == 0 {
		return aside
	}
	all := maps.Clone(aside)
	if all == nil {
		all = map[string]string{}
	}
	for id, one := range s.list {
		all[id] = one.host
	}
	return all
}
