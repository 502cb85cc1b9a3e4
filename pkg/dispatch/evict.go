package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

const (
	// warnTime bounds how long the owner of a victim is tried to be told.
	warnTime = 5 * time.Second
	// firstLook is after what time it is looked for the first time whether victims have
	// gone; each further time is twice as long as the one before, up to lastLook.
	firstLook, lastLook = 100 * time.Millisecond, 2 * time.Second
	// stubbornFor is how long an instance that has not left makes no room for any request,
	// so that they do not all wait for it.
	stubbornFor = 10 * time.Minute
)

// stayed tells a tenant why an instance that could have made room has not.
const stayed = "Instances that were to make room have not done so in time."

// errOwed says that instances could not be given back what they had.
var errOwed = errors.New("instances that did not make room have not got back what they had")

// victim is an instance that makes room, as it was last seen.
type victim struct {
	inventory.Instance
	on *inventory.HostState // where it makes room
	// claim leaves it nothing of what it has Before.
	claim placing.Claim
}

// staying says why instances do not make room.
type staying struct {
	victims []victim
	reasons []string
}

func (s *staying) add(v victim, reason string) {
	s.victims, s.reasons = append(s.victims, v), append(s.reasons, reason)
}

func (s *staying) orNil() error {
	if len(s.victims) == 0 {
		return nil
	}
	return s
}

func (s *staying) Error() string {
	texts := make([]string, len(s.victims))
	for i, v := range s.victims {
		texts[i] = fmt.Sprintf("instance %s stays: %s", v.ID, s.reasons[i])
	}
	return strings.Join(texts, "; ")
}

// putAside has instances make no room for the request any more.
func (t *task) putAside(ctx context.Context, s *staying) {
	if t.aside == nil {
		t.aside = map[string]string{}
	}
	for i, v := range s.victims {
		t.aside[v.ID] = v.on.Name
		t.Log.InfoContext(ctx, "an instance does not make room; others are looked for", "instance", v.ID, "host", v.on.Name,
			"request", t.request.ID, "reason", s.reasons[i])
	}
}

// eviction is the leaving of victims for a request.
type eviction struct {
	*task
	newcomers []placing.Claim
	victims   []victim
	ordered   map[string]string // the status in which a victim was last told to leave
}

// makeRoom has the victims of what was chosen make room for it.
func (t *task) makeRoom(ctx context.Context, c chosen) error {
	e := eviction{task: t, newcomers: c.claims, victims: c.victims, ordered: map[string]string{}}
	if err := e.examine(ctx); err != nil {
		c.hold.Undo()
		return err
	}
	if !t.LeaveFirst {
		return e.replace(ctx, c)
	}
	err := e.vacate(ctx)
	if err == nil {
		err = e.follow(ctx)
	}
	if err != nil {
		t.drop(c.hold)
	}
	return err
}

// replace claims what the victims have, and then has them leave.
func (e *eviction) replace(ctx context.Context, c chosen) error {
	if err := e.begin(ctx); err != nil {
		c.hold.Undo()
		return err
	}
	e.debts.disclaim(e.victims)
	if err := e.claim(ctx, c.claims, e.victims); err != nil {
		e.drop(c.hold)
		return err
	}
	c.hold.Settle()
	lost, robbed := e.lost, slices.DeleteFunc(slices.Clone(e.robbed), func(v victim) bool { return !e.has(v) })
	e.lost, e.robbed = nil, slices.DeleteFunc(e.robbed, e.has)
	err := e.vacate(ctx)
	if err == nil {
		return e.conclude(ctx)
	}
	e.lost, e.robbed = lost, append(e.robbed, robbed...) // a request without an answer may be carried out even now
	if owed := e.giveBack(ctx); owed != nil {
		return late(fmt.Errorf("%w; %v", errOwed, owed)) // the newcomers are for Sweep to release first
	}
	return err
}

func (e *eviction) has(v victim) bool {
	return slices.ContainsFunc(e.victims, func(one victim) bool { return one.ID == v.ID })
}

// begin has it remembered what is going to happen, before it does.
func (e *eviction) begin(ctx context.Context) error {
	if e.Evictions == nil {
		return nil
	}
	plan := Eviction{ID: e.NewID(), Newcomers: e.newcomers}
	for _, v := range e.victims {
		plan.Victims = append(plan.Victims, Victim{Host: v.on.Name, Claim: v.claim})
	}
	if err := e.Evictions.BeginEviction(ctx, plan); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Message: "nobody can make room now; try again later", Err: err}
	}
	e.records = append(e.records, plan.ID)
	return nil
}

// conclude has it forgotten what has happened. Where another replica has taken it over,
// which took this one for dead, the newcomers lose what they have.
func (e *eviction) conclude(ctx context.Context) error {
	if len(e.records) == 0 {
		return nil
	}
	last := len(e.records) - 1
	err := e.Evictions.EndEviction(ctx, e.records[last])
	if fault.Is(err, fault.Conflict) {
		e.records = e.records[:last]
		e.leave(e.newcomers)
		return late(fmt.Errorf("%w; %v", errOwed, err))
	}
	if err == nil {
		e.records = e.records[:last]
	}
	return nil // one that is not forgotten yet is later
}

// examine makes sure, before anything happens to them, that the victims can be evicted as
// they are now. Where it fails nothing has happened to any.
func (e *eviction) examine(ctx context.Context) error {
	var stays staying
	for i := range e.victims {
		v := &e.victims[i]
		now, err := e.Servers.Server(ctx, v.ID)
		switch {
		case fault.Is(err, fault.NotFound):
			stays.add(*v, "it is gone already")
			continue
		case err != nil:
			stays.add(*v, err.Error())
			continue
		}
		has, err := e.Claims.AllocationsOf(ctx, v.ID)
		if err != nil {
			return unanswered(err)
		}
		v.claim = placing.Claim{
			Consumer: v.ID, ProjectID: has.ProjectID, UserID: has.UserID, Generation: has.Generation, Before: has.Allocations,
		}
		host := v.Host
		v.Instance = now
		v.Holds = holds(v.on, has.Allocations)
		if reason := v.bound(host); reason != "" {
			stays.add(*v, reason)
		}
	}
	return stays.orNil()
}

// bound says why a victim cannot leave the host now; empty where it can.
func (v *victim) bound(host string) string {
	if v.Host != host {
		return "it is on another host"
	}
	return v.Spared()
}

// holds are the amounts that an instance has of the host; nil where it has something
// elsewhere too, as while it moves.
func holds(h *inventory.HostState, has placing.Allocations) map[string]int64 {
	sum := map[string]int64{}
	for provider, amounts := range has {
		for class, amount := range amounts {
			if provider != h.Provider && provider != h.Stocks[class].Provider {
				return nil
			}
			sum[class] += amount
		}
	}
	return sum
}

// vacate has the victims leave and returns when they are gone. It fails with a *staying
// where one of them stays.
func (e *eviction) vacate(ctx context.Context) error {
	for _, v := range e.victims {
		e.warn(ctx, v)
	}
	if e.Notice > 0 {
		if err := e.Wait(ctx, e.Notice); err != nil {
			return late(err)
		}
	}
	waiting, err := e.order(ctx)
	if err != nil {
		return err
	}
	return e.await(ctx, waiting, e.Now().Add(e.EvictionTimeout))
}

func (e *eviction) warn(ctx context.Context, v victim) {
	ctx, cancel := context.WithTimeout(ctx, warnTime)
	defer cancel()
	w := Warning{Instance: v.Instance, At: e.Now().Add(e.Notice), Request: e.request.ID}
	if err := e.Servers.Warn(ctx, w); err != nil {
		e.Log.WarnContext(ctx, "the owner of an instance that makes room could not be told in every way", "instance", v.ID,
			"request", e.request.ID, "error", err)
	}
}

// order tells the victims to leave that can be evicted still, all of them or none, and
// gives those that have not gone by then.
func (e *eviction) order(ctx context.Context) (waiting []victim, err error) {
	var stays staying
	for _, v := range e.victims {
		now, there, err := e.look(ctx, v)
		if err != nil {
			stays.add(v, err.Error())
			continue
		}
		if !there {
			continue
		}
		waiting = append(waiting, v)
		if leaving(now) {
			e.ordered[v.ID] = now.Status
			continue
		}
		now.Holds = v.Holds
		if reason := now.Spared(); reason != "" {
			stays.add(v, reason)
		}
	}
	if err := stays.orNil(); err != nil {
		return nil, err
	}
	for _, v := range waiting {
		if _, told := e.ordered[v.ID]; told {
			continue
		}
		e.Log.InfoContext(ctx, "an instance has to make room", "instance", v.ID, "project", v.ProjectID, "host", v.on.Name, "request", e.request.ID)
		if err := e.tell(ctx, v); fault.Is(err, fault.Conflict) {
			stays.add(v, "Nova refuses: "+err.Error())
			e.stubborn.add(stays.victims, e.Now().Add(stubbornFor))
			break
		}
	}
	return waiting, stays.orNil()
}

// leaving says that an instance is being deleted, by whomsoever.
func leaving(i inventory.Instance) bool { return i.Task == "deleting" || i.Task == "soft-deleting" }

// tell tells a victim to leave. Where nobody knows whether Nova has heard it, it is told
// again.
func (e *eviction) tell(ctx context.Context, v victim) error {
	err := e.Servers.Leave(ctx, v.Instance)
	if err == nil {
		e.ordered[v.ID] = v.Status
		return nil
	}
	e.Log.WarnContext(ctx, "an instance that has to make room did not take its order", "instance", v.ID, "request", e.request.ID, "error", err)
	return err
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
		waiting = slices.DeleteFunc(waiting, func(v victim) bool { return e.gone(ctx, v) })
	}
	return nil
}

// gone says that a victim has left. One that has not is told its next step, if there is
// one.
func (e *eviction) gone(ctx context.Context, v victim) bool {
	now, there, err := e.look(ctx, v)
	if err != nil {
		return false
	}
	if !there && (!e.LeaveFirst || now.Task == "" && now.Status != "VERIFY_RESIZE") {
		return true
	}
	if told, ever := e.ordered[v.ID]; (!ever || told != now.Status) && !leaving(now) {
		v.Status = now.Status
		_ = e.tell(ctx, v) // which says so in the log
	}
	return false
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

// follow claims what victims have left. A migration gives its place free some moments
// after the instance has moved.
func (e *eviction) follow(ctx context.Context) error {
	until, asked := e.Now().Add(e.EvictionTimeout), slices.Clone(e.newcomers)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		copy(e.newcomers, asked) // an attempt changes them
		err := e.claim(ctx, e.newcomers, nil)
		if _, full := errors.AsType[*placing.NoRoom](err); !full || e.Now().After(until) {
			return err
		}
		if waited := e.Wait(ctx, pause); waited != nil {
			return late(waited)
		}
	}
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
