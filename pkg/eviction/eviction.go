// SPDX-License-Identifier: Apache-2.0

// Package eviction makes room for instances: it notifies the owners of preemptible instances,
// orders Nova to evict these instances, waits until they are gone, and rolls back what fails. One
// transaction in Placement contains the claims of the preemptors and the reduced claims of the
// victims; another one undoes both.
package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// firstPoll is the wait before the first check whether victims are gone; each further wait is twice
// as long, up to lastPoll.
const firstPoll, lastPoll = 100 * time.Millisecond, 2 * time.Second

// TimedOut is the message for the tenant if a preemptible instance has not made room in time.
const TimedOut = "Instances that were to make room have not done so in time."

// Servers reads and evicts instances in Nova.
type Servers interface {
	// Server returns the present state of an instance, without its Holds. It fails with a NotFound
	// fault if the instance does not exist.
	Server(ctx context.Context, id string) (inventory.Instance, error)
	// Warn sends or withdraws an eviction notice.
	Warn(ctx context.Context, w Warning) error
	// Leave starts to evict an instance from i.Host and does not wait for the end. Another call
	// with a different Status takes the next step, or does nothing while a step is in progress. It
	// fails with a Conflict fault if Nova refuses the step.
	Leave(ctx context.Context, i inventory.Instance) error
}

// Warning is an eviction notice to the owner of an instance.
type Warning struct {
	Instance inventory.Instance
	At       time.Time // of the eviction; the zero time withdraws the notice
	Was      time.Time // with a zero At: withdraw only the notice for this time; the zero time is any
	Request  string    // id of the API request that needs the room
}

// Looker reads hosts again and corrects the live state.
type Looker interface {
	Look(ctx context.Context, hosts []string) error
}

// Records stores the evictions in progress, so that another replica rolls back those that a stopped
// replica has not finished. Their ids are unique.
type Records interface {
	BeginEviction(ctx context.Context, e Record) error
	// EndEviction deletes a record. It fails with a Conflict fault if another replica has taken it
	// over.
	EndEviction(ctx context.Context, id string) error
	// TakeEvictions takes over and returns the records of stopped replicas.
	TakeEvictions(ctx context.Context) ([]Record, error)
}

// Record is a stored eviction: the claims that are about to be sent to Placement in one
// transaction. If NoticeFor is set, it contains only the notice before the eviction.
type Record struct {
	ID         string            `json:"id"`
	NoticeFor  time.Time         `json:"notice_for,omitzero"` // of the eviction; the victims' claims then have only their consumers
	Preemptors []placing.Claim   `json:"preemptors"`
	Victims    []claiming.Victim `json:"victims"`
}

// Options are the dependencies and settings of an Evictor.
type Options struct {
	Board      *inventory.LiveState
	Placement  claiming.Placement
	Looker     Looker
	Servers    Servers       // nil only where no request has victims
	Records    Records       // nil stores none
	NewID      func() string // for Records
	Notice     time.Duration // between the notice to the owners and the eviction
	Timeout    time.Duration // of a call that notifies an owner; after the notice, until victims must be gone
	EvictFirst bool          // before the claim: a migration takes its allocations along
	Now        func() time.Time
	Wait       func(ctx context.Context, d time.Duration) error // between two attempts; nil waits by the clock
	Log        *slog.Logger
}

// locate returns the present state of an instance, and whether it is still on the host.
func (o *Options) locate(ctx context.Context, id, host string) (now inventory.Instance, there bool, err error) {
	now, err = o.Servers.Server(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return now, false, nil
	}
	return now, err == nil && now.Host == host && now.Status != "SHELVED_OFFLOADED" && now.Status != "DELETED", err
}

// warn sends or withdraws one notice.
func (o *Options) warn(ctx context.Context, w Warning) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return o.Servers.Warn(ctx, w)
}

// deleteRecord deletes a record, also if ctx has ended.
func (o *Options) deleteRecord(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claiming.CallTimeout)
	defer cancel()
	return o.Records.EndEviction(ctx, id)
}

// Evictor evicts instances. It is safe for concurrent use.
type Evictor struct {
	Options
	Ledger          *Ledger // its Sweep must be called periodically
	unevictable     unevictable
	evicted, stayed atomic.Int64
}

// New returns an Evictor.
func New(o Options) *Evictor {
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	e := &Evictor{Options: o}
	e.Ledger = newLedger(&e.Options)
	return e
}

// Duration returns the longest time that an eviction takes.
func (e *Evictor) Duration() time.Duration { return e.Notice + e.Timeout }

// Unevictable returns the instances that cannot be evicted for any request now: a new map from the
// id of an instance to its host.
func (e *Evictor) Unevictable() map[string]string { return e.unevictable.at(e.Now()) }

// Evicted returns how many instances were evicted, and how many were chosen but stayed.
func (e *Evictor) Evicted() (gone, stayed int64) { return e.evicted.Load(), e.stayed.Load() }

// Request is a request for the room of preemptible instances.
type Request struct {
	ID          string          // of the API request
	Preemptors  []placing.Claim // that need the room; Evict updates them in place to what Placement has granted
	Victims     []Victim
	Hold        *inventory.Hold        // of the preemptors in the live state, until Evict ends it
	Refused     func(host string) bool // reports whether Placement has refused a host to the request before
	Unconfirmed *claiming.Unconfirmed  // claims of the request whose answers were lost
}

// Victim is a preemptible instance that makes room on a host.
type Victim struct {
	Instance inventory.Instance
	On       *inventory.HostState
	Cost     int64         // of its loss, for the log; in the unit of [preemptible] victim_cost
	claim    placing.Claim // its allocations Before, and those that it keeps until it is gone
}

// Failure is the error of an eviction if victims stay; it lists these victims.
type Failure []stay

// stay is a victim that does not make room, and why.
type stay struct {
	victim Victim
	reason string
}

// alreadyGone is the reason in a Failure for a victim that had left before the eviction.
const alreadyGone = "it is gone already"

// Hosts returns the host of each victim in the failure, by the id of the instance.
func (f Failure) Hosts() map[string]string {
	hosts := map[string]string{}
	for _, s := range f {
		hosts[s.victim.Instance.ID] = s.victim.On.Name
	}
	return hosts
}

func (f Failure) Error() string {
	texts := make([]string, len(f))
	for i, s := range f {
		texts[i] = fmt.Sprintf("instance %s stays: %s", s.victim.Instance.ID, s.reason)
	}
	return strings.Join(texts, "; ")
}

// timedOut returns the fault for an eviction whose time is over.
func timedOut(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: TimedOut, Err: err}
}

// unrecorded returns the fault for an eviction that could not be stored.
func unrecorded(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "nobody can make room now; try again later", Err: err}
}

// eviction is a request whose victims are being evicted.
type eviction struct {
	evictor *Evictor
	Request
	ordered  map[string]string // the status in which each victim was last ordered to leave; empty if Nova may not have heard it
	notice   *Record           // as it is stored; nil if no owner was notified
	recorded []placing.Claim   // the preemptors in the last stored record; nil if none of this eviction is stored
}

// Evict evicts the victims of a request and claims their room for the preemptors.
//
// It fails with a Failure if victims stay, with Placement's refusal, or with an Unavailable fault
// if the time is over or a service does not answer. Then victims that still run keep their
// allocations or get them back.
func (e *Evictor) Evict(ctx context.Context, r Request) error {
	current := &eviction{evictor: e, Request: r, ordered: map[string]string{}}
	err := current.run(ctx)
	if failure, stays := errors.AsType[Failure](err); stays && ctx.Err() == nil {
		for _, s := range failure {
			if s.reason != alreadyGone {
				e.stayed.Add(1)
			}
			e.Log.InfoContext(ctx, "could not evict an instance; trying other victims", "instance", s.victim.Instance.ID,
				"host", s.victim.On.Name, "request", r.ID, "reason", s.reason)
		}
	}
	return err
}

// run notifies the owners, evicts the victims and claims their room, in the order that EvictFirst sets.
// After an error the hold ends and the notices are withdrawn.
func (e *eviction) run(ctx context.Context) error {
	err := e.announce(ctx)
	switch {
	case err != nil:
		e.Hold.Undo()
	case !e.evictor.EvictFirst:
		err = e.claimThenEvict(ctx)
	default:
		if err = e.evictAll(ctx); err == nil {
			err = e.claimFreed(ctx)
		}
	}
	if err != nil {
		e.Unconfirmed.EndHold(e.Hold) // does nothing after another end
		e.withdrawNotice(ctx)
		return err
	}
	e.Hold.Confirm()
	e.deleteNotice(ctx)
	e.awaitCleanup(ctx)
	return nil
}

// announce notifies the owners of the victims and waits for the notice period. If it fails, nothing
// has happened to any victim.
func (e *eviction) announce(ctx context.Context) error {
	if err := e.examine(ctx); err != nil {
		return err
	}
	if err := e.notifyOwners(ctx, e.evictor.Now().Add(e.evictor.Notice)); err != nil {
		return err
	}
	if e.evictor.Notice == 0 {
		return nil
	}
	if err := e.evictor.Wait(ctx, e.evictor.Notice); err != nil {
		return timedOut(err)
	}
	return e.examine(ctx)
}

// claimFreed claims the room of victims that have left already. It may wait: a migration releases
// the allocations of its source some moments after the instance has moved.
func (e *eviction) claimFreed(ctx context.Context) error {
	until, wanted := e.evictor.Now().Add(e.evictor.Timeout), slices.Clone(e.Preemptors)
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		copy(e.Preemptors, wanted) // an attempt changes them
		transaction := e.transaction()
		err := transaction.Run(ctx)
		if _, full := errors.AsType[*placing.ErrNoCapacity](err); !full || e.evictor.Now().After(until) {
			return err
		}
		if waited := e.evictor.Wait(ctx, pause); waited != nil {
			return timedOut(waited)
		}
	}
}

func (e *eviction) transaction() claiming.Transaction {
	return claiming.Transaction{Placement: e.evictor.Placement, Wait: e.evictor.Wait, Claims: e.Preemptors, Unconfirmed: e.Unconfirmed}
}

// claimThenEvict claims the room of the victims for the preemptors, evicts the victims, and rolls
// back if one stays.
func (e *eviction) claimThenEvict(ctx context.Context) error {
	e.evictor.Ledger.dropRestores(e.Victims)
	transaction := e.transaction()
	transaction.Victims = reductions(e.Victims)
	transaction.BeforeClaim = func(ctx context.Context) error { return e.record(ctx, !transaction.Lost) }
	if err := transaction.Run(ctx); err != nil {
		if !transaction.Lost {
			_ = e.deleteRecord(ctx) // or the rollback of the request does
		}
		return e.failed(err, transaction.Changed)
	}
	e.Hold.Confirm()
	// The victims' residual allocations are not available to other requests until the victims are
	// gone.
	e.evictor.unevictable.add(e.Victims, e.evictor.Now().Add(e.evictor.Timeout))
	before := *e.Unconfirmed
	e.Unconfirmed.Granted(transaction.Victims)
	err := e.evictAll(ctx)
	if err == nil {
		return e.finish(ctx)
	}
	*e.Unconfirmed = before // Placement may still carry out a request without an answer
	if pending := e.rollBack(ctx, transaction.Victims); pending != nil {
		// Before the request claims again, Sweep must release the preemptors.
		return timedOut(fmt.Errorf("restore allocations: %v", pending))
	}
	return err
}

// failed returns the error of a transaction; a Failure if victims have changed.
func (e *eviction) failed(err error, changed []string) error {
	if !errors.Is(err, claiming.ErrVictimsChanged) {
		return err
	}
	var failure Failure
	for _, v := range e.Victims {
		if slices.Contains(changed, v.Instance.ID) {
			failure = append(failure, stay{v, "its allocations in Placement have changed"})
		}
	}
	return failure
}

// finish deletes the record of an eviction that has succeeded. If another replica has taken over
// the record, because this replica seemed to have stopped, the preemptors lose their claims.
func (e *eviction) finish(ctx context.Context) error {
	if err := e.deleteRecord(ctx); fault.Is(err, fault.Conflict) {
		e.evictor.Ledger.Schedule(claiming.Unconfirmed{Claims: e.Preemptors})
		return timedOut(fmt.Errorf("delete the record: %v", err))
	}
	return nil // the ledger deletes a record that remains
}

// reductions returns the claims that reduce the allocations of the victims.
func reductions(victims []Victim) []claiming.Victim {
	all := make([]claiming.Victim, len(victims))
	for i, v := range victims {
		all[i] = claiming.Victim{Host: v.Instance.Host, Claim: v.claim}
	}
	return all
}
