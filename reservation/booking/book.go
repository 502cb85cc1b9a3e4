package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// KeyUse is the idempotency key of a request, and a hash of the request's body.
type KeyUse struct {
	Key, BodyHash string
}

// Book makes a reservation and stores it. If the project has used the key with the same body
// before, Book returns the reservation made then; with another body it fails with an
// Unprocessable fault.
func (d *Service) Book(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (reservation.Reservation, error) {
	if use != nil {
		unlock, err := d.keys.lock(ctx, [2]string{by.ProjectID, use.Key})
		if err != nil {
			return reservation.Reservation{}, err
		}
		defer unlock()
	}
	if made, ok, err := d.madeBefore(ctx, by, use); ok || err != nil {
		return made, err
	}
	var again retry
	for {
		again.decide(d)
		a, err := d.bookOnce(ctx, by, req, use)
		if err == nil {
			return a.next, nil
		}
		if errors.Is(err, reservation.ErrKeyUsed) {
			return d.madeMeanwhile(ctx, by, use)
		}
		var q Recall
		if a != nil {
			q = Recall{Hosts: d.versioned(&a.next), Project: by.ProjectID}
		}
		if err := again.after(ctx, d, err, q); err != nil {
			// The obstacle may be the reservation that the same request has made through another replica.
			if made, ok, keyErr := d.madeBefore(ctx, by, use); ok && keyErr == nil {
				return made, nil
			}
			return reservation.Reservation{}, err
		}
	}
}

func (d *Service) bookOnce(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (*attempt, error) {
	a, err := d.decide(ctx, by.ProjectID, (*turns.Gate).Enter, func() (*attempt, error) { return d.reserve(ctx, by, req, use) })
	if err != nil {
		return nil, err
	}
	defer a.entry.changing.Leave(byRequest)
	if err := d.commit(ctx, a); err != nil {
		return a, fmt.Errorf("store the reservation: %w", err)
	}
	return a, nil
}

// errOvertaken is the error of a decision if memory has changed since the state on which it was
// made, so that it no longer holds.
var errOvertaken = errors.New("memory has changed since the decision was made")

// decide runs try, which makes a decision and adds its claims to memory. It repeats this as long as
// the decision is overtaken by other replicas' commits, by a change of the inventory, or by the end
// of a reservation.
func (d *Service) decide(
	ctx context.Context, project string, enter func(*turns.Gate, context.Context, string) error, try func() (*attempt, error),
) (*attempt, error) {
	if err := enter(d.changes, ctx, project); err != nil {
		return nil, err
	}
	defer d.changes.Leave(project)
	for range tries {
		if err := enter(d.deciding, ctx, project); err != nil {
			return nil, err
		}
		a, err := try()
		d.deciding.Leave(project)
		if !errors.Is(err, errOvertaken) {
			return a, err
		}
	}
	return nil, inDemand(errOvertaken)
}

// madeBefore returns the reservation that was made with the key; ok is false if the key was not
// used before.
func (d *Service) madeBefore(ctx context.Context, by Caller, use *KeyUse) (r reservation.Reservation, ok bool, err error) {
	if use == nil {
		return r, false, nil
	}
	before, ok, err := d.options.Keys.Key(ctx, by.ProjectID, use.Key)
	if err != nil || !ok {
		return r, false, err
	}
	if before.BodyHash != use.BodyHash {
		return r, false, fault.New(fault.Unprocessable, "the Idempotency-Key %q was used for another request; use a new key", use.Key)
	}
	r, err = d.options.Reader.Get(ctx, before.ReservationID)
	if fault.Is(err, fault.NotFound) || err == nil && r.Status == reservation.Canceled {
		err = fault.New(fault.Conflict, "this request has made reservation %s before, which was canceled since then; use a new Idempotency-Key for another one",
			before.ReservationID)
	}
	return r, err == nil, err
}

// madeMeanwhile returns the reservation that the same request has just made through another
// replica.
func (d *Service) madeMeanwhile(ctx context.Context, by Caller, use *KeyUse) (reservation.Reservation, error) {
	made, ok, err := d.madeBefore(ctx, by, use)
	if err == nil && !ok {
		err = fault.New(fault.Conflict, "the Idempotency-Key %q expired at this moment; send the request again", use.Key)
	}
	return made, err
}

// reserve plans the request and adds its claims to the calendar. The entry is locked until it
// is stored.
func (d *Service) reserve(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (*attempt, error) {
	v := d.view(by, by.ProjectID)
	plan, err := NewPlan(v, req)
	if err != nil {
		return nil, err
	}
	r := reservation.Reservation{
		ID: d.options.NewID(), ProjectID: by.ProjectID, UserID: by.UserID,
		Terms: plan.Terms, Status: reservation.Pending, Span: plan.Span, Claims: plan.Claims,
		DelayedByBoot: plan.DelayedByBoot, Created: v.Now, Updated: v.Now, Version: 1,
	}
	r.Events = append([]reservation.Event{happened(reservation.CreatedEvent, v.Now, "")}, lifecycle.Schedule(&r)...)
	changing := turns.New(1, 0)
	if err := changing.Enter(ctx, byRequest); err != nil {
		return nil, err
	}
	a := &attempt{
		entry: &entry{r: r, changing: changing}, next: r, held: v.hosts.claims(&r, r.Claims), key: use.key(&r),
		cause: reservation.Cause{Action: reservation.ActionCreate, UserID: by.UserID, RequestID: by.RequestID},
	}
	return a, d.enter(&v, a)
}

// enter adds the claims of a new reservation to the calendar. v is the view on which it was
// decided.
func (d *Service) enter(v *View, a *attempt) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outdated(v, a.next.ProjectID) || d.calendar.Add(a.held...) != nil {
		return errOvertaken
	}
	d.addLive(a.entry)
	d.begin(a)
	return nil
}

// key returns the record of the use of a key for r.
func (u *KeyUse) key(r *reservation.Reservation) *reservation.Key {
	if u == nil {
		return nil
	}
	return &reservation.Key{ProjectID: r.ProjectID, Key: u.Key, BodyHash: u.BodyHash, ReservationID: r.ID, Created: r.Created}
}

// happened returns an event that is already done.
func happened(t reservation.EventType, at span.Instant, detail string) reservation.Event {
	return reservation.Event{Type: t, Time: at, State: reservation.EventDone, Done: at, Detail: detail}
}
