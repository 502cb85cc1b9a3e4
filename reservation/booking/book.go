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

// KeyUse is an idempotency key that came with a request, and a hash of its body.
type KeyUse struct {
	Key, BodyHash string
}

// Book makes a reservation and stores it. With a key that the project has used
// for the same body it gives the reservation made then; for another body it fails
// with an Unprocessable fault.
func (d *Desk) Book(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (reservation.Reservation, error) {
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
			// What is in the way may be what the same request has made through another replica.
			if made, ok, keyErr := d.madeBefore(ctx, by, use); ok && keyErr == nil {
				return made, nil
			}
			return reservation.Reservation{}, err
		}
	}
}

func (d *Desk) bookOnce(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (*attempt, error) {
	a, err := d.decide(ctx, by.ProjectID, (*turns.Gate).Enter, func() (*attempt, error) { return d.hold(ctx, by, req, use) })
	if err != nil {
		return nil, err
	}
	defer a.entry.changing.Leave(byRequest)
	if err := d.commit(ctx, a); err != nil {
		return a, fmt.Errorf("store the reservation: %w", err)
	}
	return a, nil
}

// errOvertaken says that memory has changed since the state on which a decision was made,
// so that the decision does not hold any more.
var errOvertaken = errors.New("memory has changed since the decision was made")

// decide lets hold make a decision and enter it, again where it was overtaken: by what
// other replicas have stored, by the inventory, or by the end of a reservation.
func (d *Desk) decide(
	ctx context.Context, project string, enter func(*turns.Gate, context.Context, string) error, hold func() (*attempt, error),
) (*attempt, error) {
	if err := enter(d.changes, ctx, project); err != nil {
		return nil, err
	}
	defer d.changes.Leave(project)
	for range tries {
		if err := enter(d.deciding, ctx, project); err != nil {
			return nil, err
		}
		a, err := hold()
		d.deciding.Leave(project)
		if !errors.Is(err, errOvertaken) {
			return a, err
		}
	}
	return nil, inDemand(errOvertaken)
}

// madeBefore gives the reservation that the key made; ok is false where it is new.
func (d *Desk) madeBefore(ctx context.Context, by Caller, use *KeyUse) (r reservation.Reservation, ok bool, err error) {
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
	if fault.Is(err, fault.NotFound) || err == nil && r.Status == reservation.Cancelled {
		err = fault.New(fault.Conflict, "this request has made reservation %s before, which was cancelled since; use a new Idempotency-Key for another one",
			before.ReservationID)
	}
	return r, err == nil, err
}

// madeMeanwhile gives the reservation that the same request has made through
// another replica.
func (d *Desk) madeMeanwhile(ctx context.Context, by Caller, use *KeyUse) (reservation.Reservation, error) {
	made, ok, err := d.madeBefore(ctx, by, use)
	if err == nil && !ok {
		err = fault.New(fault.Conflict, "the Idempotency-Key %q was forgotten this moment; send the request again", use.Key)
	}
	return made, err
}

// hold plans the request and enters its claims. The entry comes locked: until it is
// stored, nobody may change it.
func (d *Desk) hold(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (*attempt, error) {
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
		entry: &entry{r: r, changing: changing}, next: r, held: v.roster.claims(&r, r.Claims), key: use.key(&r),
		cause: reservation.Cause{Action: reservation.Create, UserID: by.UserID, RequestID: by.RequestID},
	}
	return a, d.enter(&v, a)
}

// enter enters the claims of a new reservation that was decided on v.
func (d *Desk) enter(v *View, a *attempt) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outdated(v, a.next.ProjectID) || d.calendar.Add(a.held...) != nil {
		return errOvertaken
	}
	d.keep(a.entry)
	d.begin(a)
	return nil
}

// key is what the records shall remember of the use of a key for r.
func (u *KeyUse) key(r *reservation.Reservation) *reservation.Key {
	if u == nil {
		return nil
	}
	return &reservation.Key{ProjectID: r.ProjectID, Key: u.Key, BodyHash: u.BodyHash, ReservationID: r.ID, Created: r.Created}
}

// happened is an event that is done as it is entered.
func happened(t reservation.EventType, at span.Instant, detail string) reservation.Event {
	return reservation.Event{Type: t, Time: at, State: reservation.Done, Done: at, Detail: detail}
}
