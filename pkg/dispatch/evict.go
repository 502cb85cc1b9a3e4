package dispatch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
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
	// leftFor bounds how long it is waited until Nova has taken away what a victim that is
	// gone had left: a busy conductor takes many seconds for it.
	leftFor = 30 * time.Second
	// stubbornFor is how long an instance that has not left makes no room for any request,
	// so that they do not all wait for it.
	stubbornFor = 10 * time.Minute
)

// stayed tells a tenant why an instance that could have made room has not.
const stayed = "Instances that were to make room have not done so in time."

// goneAlready is why one makes no room that was deleted before anybody told it to go.
const goneAlready = "it is gone already"

// errOwed says that instances could not be given back what they had.
var errOwed = errors.New("instances that did not make room have not got back what they had")

// victim is an instance that makes room, as it was last seen.
type victim struct {
	inventory.Instance
	on   *inventory.HostState // where it makes room
	cost int64                // of its loss, for the log; in the unit of [preemptible] cost
	// claim leaves it, of what it has Before, what nobody takes who came for its room.
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
		if s.reasons[i] != goneAlready {
			t.evicted.stayed.Add(1)
		}
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
	ordered   map[string]string // the status in which a victim was last told to leave; empty where nobody knows whether Nova heard it
	notice    *Eviction         // as it is stored; nil where no victim was told anything
	recorded  []placing.Claim   // the newcomers of the last of the records; nil where none is of this eviction
}

// makeRoom has the victims of what was chosen make room for it.
func (t *task) makeRoom(ctx context.Context, c chosen) error {
	release, ok := t.slot()
	if !ok {
		c.hold.Undo()
		return &fault.Error{Kind: fault.Unavailable, Message: "too many others wait for instances to make room; try again later"}
	}
	defer release()
	e := eviction{task: t, newcomers: c.claims, victims: c.victims, ordered: map[string]string{}}
	err := e.announce(ctx)
	switch {
	case err != nil:
		c.hold.Undo()
	case t.LeaveFirst:
		err = e.leaveFirst(ctx, c)
	default:
		err = e.replace(ctx, c)
	}
	if err != nil {
		e.takeBack(ctx)
		return err
	}
	c.hold.Confirm()
	e.forgetNotice(ctx)
	e.lookAfter(ctx)
	return nil
}

// announce has the owners of the victims told, and gives them their notice. Where it fails
// nothing has happened to any victim.
func (e *eviction) announce(ctx context.Context) error {
	if err := e.examine(ctx); err != nil {
		return err
	}
	if err := e.giveNotice(ctx, e.Now().Add(e.Notice)); err != nil {
		return err
	}
	if e.Notice == 0 {
		return nil
	}
	if err := e.Wait(ctx, e.Notice); err != nil {
		return late(err)
	}
	return e.examine(ctx)
}

// leaveFirst has the victims leave, and claims then what they have left.
func (e *eviction) leaveFirst(ctx context.Context, c chosen) error {
	err := e.vacate(ctx)
	if err == nil {
		err = e.follow(ctx)
	}
	if err != nil {
		e.drop(c.hold)
	}
	return err
}

// replace claims what the victims have, and then has them leave.
func (e *eviction) replace(ctx context.Context, c chosen) error {
	e.debts.disclaim(e.victims)
	claims := claiming{task: e.task, targets: targets(c.claims), claims: c.claims, victims: e.victims, look: true, prepare: e.begin}
	if err := claims.make(ctx); err != nil {
		e.drop(c.hold)
		if !claims.unsure {
			_ = e.end(ctx) // or it is with the debt of the request
		}
		return err
	}
	c.hold.Confirm()
	e.stubborn.add(e.victims, e.Now().Add(e.EvictionTimeout)) // what they are left is for nobody
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

// begin has it remembered what Placement is about to be asked, where that is not what it
// was before.
func (e *eviction) begin(ctx context.Context, unsure bool) error {
	if e.Evictions == nil || e.recorded != nil && reflect.DeepEqual(e.recorded, e.newcomers) {
		return nil
	}
	plan := Eviction{ID: e.NewID(), Newcomers: slices.Clone(e.newcomers)}
	for _, v := range e.victims {
		plan.Victims = append(plan.Victims, Victim{Host: v.on.Name, Claim: v.claim})
	}
	if err := e.Evictions.BeginEviction(ctx, plan); err != nil {
		return unrecorded(err)
	}
	if !unsure {
		_ = e.end(ctx) // or it is with the debt of the request
	}
	e.records, e.recorded = append(e.records, plan.ID), plan.Newcomers
	return nil
}

// end has it forgotten what was last remembered of this eviction. It fails with a Conflict
// fault where another replica has taken it over.
func (e *eviction) end(ctx context.Context) error {
	if e.recorded == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	last := len(e.records) - 1
	err := e.Evictions.EndEviction(ctx, e.records[last])
	if err == nil || fault.Is(err, fault.Conflict) {
		e.records, e.recorded = e.records[:last], nil
	}
	return err
}

// conclude has it forgotten what has happened. Where another replica has taken it over,
// which took this one for dead, the newcomers lose what they have.
func (e *eviction) conclude(ctx context.Context) error {
	if err := e.end(ctx); fault.Is(err, fault.Conflict) {
		e.leave(e.newcomers)
		return late(fmt.Errorf("%w; %v", errOwed, err))
	}
	return nil // one that is not forgotten yet is later
}

// lookAfter has the board count no more what the victims were left until they had gone.
// Nova may take that away some moments after an instance has (nova/compute/manager.py
// _delete_instance).
func (e *eviction) lookAfter(ctx context.Context) {
	var hosts []string
	for _, v := range e.victims {
		if len(v.claim.Allocations) == 0 {
			continue
		}
		if !slices.Contains(hosts, v.on.Name) {
			hosts = append(hosts, v.on.Name)
		}
		for pause, waited := firstLook, time.Duration(0); waited < leftFor; pause = min(2*pause, lastLook) {
			has, err := e.Claims.AllocationsOf(ctx, v.ID)
			if err != nil || !has.Allocations.Equal(v.claim.Allocations) || e.Wait(ctx, pause) != nil {
				break
			}
			waited += pause
		}
	}
	if len(hosts) == 0 {
		return
	}
	if err := e.Looker.Look(ctx, hosts); err != nil {
		e.Log.WarnContext(ctx, "hosts could not be read anew", "hosts", hosts, "request", e.request.ID, "error", err)
	}
	for _, host := range hosts {
		e.Board.InstanceLeft(host)
	}
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
			stays.add(*v, goneAlready)
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
		} else if e.debts.owe(v.ID, has) {
			stays.add(*v, "it is to get back what it had in Placement")
		}
	}
	wanted := wants(targets(e.newcomers))
	for i := range e.victims {
		v := &e.victims[i]
		v.claim.Allocations = e.rest(v.on, v.claim.Before, wanted)
	}
	return stays.orNil()
}

// bound says why a victim cannot leave the host now; empty where it can.
func (v *victim) bound(host string) string {
	if v.Host != host {
		return "it is on another host"
	}
	return v.NotEvictable()
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

// follow claims what victims have left. A migration gives its place free some moments
// after the instance has moved.
func (e *eviction) follow(ctx context.Context) error {
	until, asked := e.Now().Add(e.EvictionTimeout), slices.Clone(e.newcomers)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		copy(e.newcomers, asked) // an attempt changes them
		err := e.claim(ctx, e.newcomers)
		if _, full := errors.AsType[*placing.NoRoom](err); !full || e.Now().After(until) {
			return err
		}
		if waited := e.Wait(ctx, pause); waited != nil {
			return late(waited)
		}
	}
}
