// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
)

// promise is the last state of a client's own reservation that the service acknowledged.
type promise struct {
	v1.Reservation
	canceled, doubtful bool
}

// Seconds is a number of seconds that a user draws.
type Seconds struct{ Least, Below int }

func (s Seconds) draw(chance *rand.Rand) int { return s.Least + chance.IntN(s.Below-s.Least) }

// Habits are how a user books.
type Habits struct {
	Pause time.Duration // between two requests
	Early Seconds       // from the request to the start
	Lasts Seconds
	Part  func(chance *rand.Rand) v1.Resources // the size of an instance
}

// restless are the habits of users where starts and ends are only commits.
var restless = Habits{
	Early: Seconds{2, 62}, Lasts: Seconds{5, 45},
	Part: func(chance *rand.Rand) v1.Resources { return v1.Resources{VCPUs: int64(1 + chance.IntN(8))} },
}

// User books, changes and cancels, and remembers the answers.
type User struct {
	t        *testing.T
	replicas *Replicas
	Habits   Habits
	Token    func(context.Context) (string, error) // nil without a Keystone
	Forgets  bool                                  // keys may expire before the end
	Took     func(time.Duration)                   // hears how long each booking took that was acknowledged; may be nil
	Chance   *rand.Rand
	promises map[string]*promise
	keys     map[string]string // idempotency key to reservation
	booked   []time.Time       // when bookings were acknowledged
	refused  int
	unknown  int           // requests with an unknown outcome
	maybe    int           // bookings among them
	slowest  time.Duration // of all answers
}

// NewUser returns a user who books at the replicas, for short times and without pauses. The seed decides what
// they draw.
func NewUser(t *testing.T, r *Replicas, seed uint64) *User {
	return &User{
		t: t, replicas: r, Habits: restless, Chance: rand.New(rand.NewPCG(1, seed)),
		promises: make(map[string]*promise), keys: make(map[string]string),
	}
}

// Work sends requests until ctx ends.
func (u *User) Work(ctx context.Context) {
	for n := 0; ctx.Err() == nil && (u.Habits.Pause == 0 || Pass(ctx, u.Habits.Pause)); n++ {
		to := u.replicas.ClientWith(u.Token, u.Chance.IntN(3))
		if to == nil {
			continue
		}
		asked := time.Now()
		switch u.Chance.IntN(6) {
		case 0:
			u.change(to)
		case 1:
			u.cancel(to)
		default:
			u.book(to, fmt.Sprintf("%p-%d", u, n))
		}
		u.slowest = max(u.slowest, time.Since(asked))
	}
}

// Answered classifies an error. It returns true if the request certainly had no effect.
func (u *User) Answered(err error) (known bool) {
	answer, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		u.t.Errorf("not an answer: %v", err)
	case answer.Status == 409 && answer.Refusal != nil:
		u.refused++
		return true
	case answer.Status == 409 || answer.Status == 404 || answer.Status == 400:
		return true
	case answer.Status == 503 || answer.Status == 0:
		u.unknown++
	default:
		u.t.Errorf("answer %d: %v", answer.Status, err)
	}
	return false
}

func (u *User) book(to *client.Client, key string) {
	begin := time.Now().Add(time.Duration(u.Habits.Early.draw(u.Chance)) * time.Second).Truncate(time.Second)
	duration, quantity := v1.Duration(u.Habits.Lasts.draw(u.Chance)), 1+u.Chance.IntN(3)
	req := v1.ReservationRequest{Name: "r", StartTime: &begin, Duration: &duration, Quantity: &quantity}
	if u.Chance.IntN(3) == 0 {
		req.Kind, req.Resources = "instance", new(u.Habits.Part(u.Chance))
	}
	if u.Chance.IntN(2) == 0 {
		key = ""
	}
	u.send(to, req, key)
}

// probe books at the i-th replica ten times a second, more than a day ahead, where nothing is
// in the way, so that only the service can be the cause of a silence.
func (u *User) probe(ctx context.Context, i int) {
	begin := time.Now().Add(time.Duration(1+i) * 24 * time.Hour).Truncate(time.Second)
	for Pass(ctx, 100*time.Millisecond) {
		s := u.replicas.At(i)
		if s == nil {
			continue
		}
		duration, quantity := v1.Duration(5), 1
		u.send(s.Client(u.t), v1.ReservationRequest{Name: "r", StartTime: new(begin), Duration: &duration, Quantity: &quantity}, "")
		begin = begin.Add(5 * time.Second)
	}
}

// send sends a booking, with an idempotency key unless key is empty.
func (u *User) send(to *client.Client, req v1.ReservationRequest, key string) {
	o, asked := client.CreateOptions{IdempotencyKey: key}, time.Now()
	r, err := to.CreateReservation(u.t.Context(), req, o)
	if err != nil {
		if !u.Answered(err) {
			u.maybe++
		}
		return
	}
	u.booked = append(u.booked, time.Now())
	if u.Took != nil {
		u.Took(time.Since(asked))
	}
	u.replicas.booked.Add(1)
	u.promises[r.ID] = &promise{Reservation: r}
	if o.IdempotencyKey != "" {
		u.keys[key] = r.ID
	}
}

// own returns one of the user's promises that is not over, or nil.
func (u *User) own() *promise {
	for _, p := range u.promises { // in random order
		if !p.canceled && time.Now().Before(p.End.Add(-3*time.Second)) {
			return p
		}
	}
	return nil
}

func (u *User) change(to *client.Client) {
	p := u.own()
	if p == nil {
		return
	}
	later := p.End.Add(time.Duration(u.Chance.IntN(20)-5) * time.Second)
	r, err := to.ChangeReservation(u.t.Context(), p.ID, v1.ReservationChange{EndTime: &later})
	if err == nil {
		p.Reservation, p.doubtful = r, false
	} else if !u.Answered(err) {
		p.doubtful = true
	}
}

func (u *User) cancel(to *client.Client) {
	p := u.own()
	if p == nil {
		return
	}
	err := to.DeleteReservation(u.t.Context(), p.ID)
	if err == nil {
		p.canceled, p.doubtful = true, false
	} else if !u.Answered(err) {
		p.doubtful = true
	}
}

// Hold compares the stored reservations with the answers that the user got.
func (u *User) Hold(c *Checker) {
	for id, told := range u.promises {
		r, there := c.records[id]
		switch {
		case !there:
			u.t.Errorf("%s was acknowledged, but is lost", id)
		case told.doubtful:
		case told.canceled:
			if r.status != "canceled" {
				u.t.Errorf("%s was canceled, but is %s", id, r.status)
			}
		case r.status == "canceled" || r.status == "failed":
			u.t.Errorf("%s was promised, but is %s", id, r.status)
		case r.start != told.Start.Unix() || r.end != told.End.Unix() || r.quantity != int64(told.Quantity):
			u.t.Errorf("%s is %d from %d to %d; the client has an answer with %d from %v to %v", id, r.quantity, r.start, r.end, told.Quantity, told.Start, told.End)
		}
	}
	for key, id := range u.keys {
		its := c.Number("SELECT COUNT(*) FROM idempotency_keys WHERE idempotency_key = ? AND reservation_id = ?", key, id)
		others := c.Number("SELECT COUNT(*) FROM idempotency_keys WHERE idempotency_key = ? AND reservation_id <> ?", key, id)
		if its == 0 && !u.Forgets || its > 1 || others > 0 {
			u.t.Errorf("the key %s does not stand only for %s", key, id)
		}
	}
}

// NoneOfItself checks that every reservation that was not acknowledged comes from a request
// without a certain answer. Other parts of the test have sent besides more such bookings.
func NoneOfItself(t *testing.T, users []*User, c *Checker, besides int) {
	t.Helper()
	told, maybe := 0, besides
	for _, u := range users {
		told, maybe = told+len(u.promises), maybe+u.maybe
	}
	t.Logf("of %d bookings without a certain answer, %d exist", maybe, len(c.records)-told)
	if len(c.records)-told > maybe {
		t.Errorf("there are %d reservations; %d were acknowledged and %d others requested", len(c.records), told, maybe)
	}
}

// PromisesKept checks, once nothing is overdue, the promises of docs/reliability.md against what is stored, what
// the users were told, and the notifications. besides is the number of other bookings that were sent.
func PromisesKept(t *testing.T, c *Checker, users []*User, history *Chronicle, besides int, heard *Told) {
	t.Helper()
	Settled(t, c)
	Report(t, users, FewestBookings)
	c.Check(16)
	history.Report(t, users, c)
	for _, u := range users {
		u.Hold(c)
	}
	NoneOfItself(t, users, c, besides)
	EverythingTold(t, c, heard)
}

// FewestBookings is the number of bookings below which chaos shows nothing.
const FewestBookings = 100

// chaosTime returns how long chaos lasts: three minutes, or the value of ALMANAC_CHAOS.
func chaosTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ALMANAC_CHAOS")
	if text == "" {
		return 3 * time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("ALMANAC_CHAOS: %v", err)
	}
	return d
}

// Run lets eight users work and one probe book at each replica while disturb runs, and
// returns all of them.
func Run(t *testing.T, r *Replicas, disturb func(ctx context.Context)) []*User {
	t.Helper()
	length := chaosTime(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var users []*User
	var working sync.WaitGroup
	working.Go(func() {
		defer stop()
		r.lasts(ctx, length)
	})
	for i := range uint64(8) {
		u := NewUser(t, r, i)
		users = append(users, u)
		working.Go(func() { u.Work(ctx) })
	}
	for i := range r.Running {
		u := NewUser(t, r, uint64(8+i))
		users = append(users, u)
		working.Go(func() { u.probe(ctx, i) })
	}
	disturb(ctx)
	stop()
	working.Wait()
	return users
}

// Pass waits for d and reports whether ctx is still alive then.
func Pass(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Settled waits until no event is overdue and no notification is unsent. It may take long on a
// slow machine; it fails if there is no progress.
func Settled(t *testing.T, c *Checker) {
	t.Helper()
	overdue := func() int64 {
		return c.Number("SELECT COUNT(*) FROM events e JOIN reservations r ON r.id = e.reservation_id WHERE e.state <> 'done' AND e.due_at < ?", time.Now().Unix()-2)
	}
	unsent := func() int64 { return c.Number("SELECT COUNT(*) FROM changes WHERE sent = 0") }
	type work struct{ carriedOut, sent int64 }
	done := func() work {
		return work{c.Number("SELECT COUNT(*) FROM events WHERE state = 'done'"), c.Number("SELECT COUNT(*) FROM changes WHERE sent <> 0")}
	}
	begun := time.Now()
	defer func() {
		t.Logf("%v after the end %d events are overdue and %d changes unsent", time.Since(begun).Round(time.Second), overdue(), unsent())
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, progress := done(), time.Now()
	for left := overdue() + unsent(); left > 0; left = overdue() + unsent() {
		if now := done(); now != last {
			last, progress = now, time.Now()
		}
		if time.Since(progress) > built.Patience {
			t.Fatalf("for %v there is no progress with %d overdue events and unsent notifications", built.Patience, left)
		}
		<-tick.C
	}
}

// Report logs what the users did, which must be fewest bookings or more.
func Report(t *testing.T, users []*User, fewest int) {
	t.Helper()
	booked, refused, unknown, slowest := 0, 0, 0, time.Duration(0)
	for _, u := range users {
		booked, refused, unknown = booked+len(u.booked), refused+u.refused, unknown+u.unknown
		slowest = max(slowest, u.slowest)
	}
	t.Logf("%d bookings acknowledged, %d refused, %d requests without a certain answer; the longest call took %v",
		booked, refused, unknown, slowest.Round(10*time.Millisecond))
	if booked < fewest {
		t.Errorf("%d bookings are too few to show anything", booked)
	}
}
