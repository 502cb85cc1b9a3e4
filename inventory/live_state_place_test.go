// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

type plan = func(*inventory.States) ([]inventory.Take, error)

// slow is a plan that signals each time it is made, and waits until it may end.
type slow struct {
	begun chan *inventory.States
	end   chan struct{}
}

// again waits until the plan is made once more, and fails if Place returns first.
func (p slow) again(t *testing.T, done <-chan placed) *inventory.States {
	t.Helper()
	select {
	case s := <-p.begun:
		return s
	case got := <-done:
		t.Fatalf("the plan is not made again: %v", got.err)
		return nil
	}
}

func newSlow() slow { return slow{make(chan *inventory.States), make(chan struct{})} }

func (p slow) plan(then plan) plan {
	return func(s *inventory.States) ([]inventory.Take, error) {
		p.begun <- s
		<-p.end
		return then(s)
	}
}

// placed is what Place returns.
type placed struct {
	hold *inventory.Hold
	err  error
}

func placing(ctx context.Context, b *inventory.LiveState, p plan) <-chan placed {
	done := make(chan placed, 1)
	go func() {
		h, err := b.Place(ctx, "project", p, nil)
		done <- placed{h, err}
	}()
	return done
}

// atOnce fails unless work ends while every other goroutine waits.
func atOnce(t *testing.T, what string, work func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s waits", what)
	}
}

// everythingButPlans does all that must not wait for plans: a look, the end of a claim,
// and an undo.
func everythingButPlans(t *testing.T, b *inventory.LiveState, held *inventory.Hold) {
	t.Helper()
	atOnce(t, "a look", func() { b.CorrectHost(b.BeginRead(), "b", cpus(2), nil) })
	atOnce(t, "a claim that ends", held.Confirm)
	atOnce(t, "an undo", b.AddClaims([]string{"b"}, []inventory.Take{{Instance: "back", Resources: amounts{"VCPU": 1}}}).Undo)
	atOnce(t, "who asks what is unclear", func() {
		b.InstanceLeft("b")
		b.UncertainHosts()
	})
}

func TestAPlanThatTakesLongDelaysNobody(t *testing.T) {
	hosts := []inventory.HostState{{Name: "a", Stocks: cpus(0)}, {Name: "b", Stocks: cpus(0)}}
	b := board(t, hosts...)
	held := place(t, b, taking(1, "held", 1))
	long := newSlow()
	done := placing(t.Context(), b, long.plan(taking(0, "long", 5)))
	<-long.begun
	atOnce(t, "another plan", func() { place(t, b, taking(1, "other", 1)).Undo() })
	everythingButPlans(t, b, held)
	atOnce(t, "a reading", func() { b.Replace(b.BeginRead(), states(t, hosts), nil) })
	long.end <- struct{}{}
	if got := <-done; got.err != nil || used(b)[0] != 5 {
		t.Errorf("used %v, error %v", used(b), got.err)
	}
}

func TestAPlanWhoseHostsOthersHaveTakenIsMadeAgainOnce(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)}, inventory.HostState{Name: "b", Stocks: cpus(0)})
	held := place(t, b, taking(1, "held", 1))
	long := newSlow()
	done := placing(t.Context(), b, long.plan(taking(0, "long", 5)))
	<-long.begun
	place(t, b, taking(0, "first", 1))
	long.end <- struct{}{}
	if s := long.again(t, done); s.Column("VCPU").Used[0] != 1 {
		t.Errorf("the plan is made again on states with %v used", s.Column("VCPU").Used)
	}
	others := placing(t.Context(), b, taking(0, "second", 1))
	everythingButPlans(t, b, held)
	long.end <- struct{}{}
	for name, ended := range map[string]<-chan placed{"long": done, "second": others} {
		if got := <-ended; got.err != nil {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	if got := b.Entered(); !slices.Equal(got, []string{"held", "first", "long", "second"}) {
		t.Errorf("the plans of %v have entered", got)
	}
}

func TestAPlanThatCanBeRepairedIsNotMadeAgainAndNobodyWaitsForIt(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)}, inventory.HostState{Name: "b", Stocks: cpus(0)})
	plans, repairs := 0, 0
	_, err := b.Place(t.Context(), "project", func(s *inventory.States) ([]inventory.Take, error) {
		plans++
		place(t, b, taking(0, "first", 1))
		return taking(0, "x", 5)(s)
	}, func(s *inventory.States) ([]inventory.Take, bool) {
		if repairs++; s.Column("VCPU").Used[0] != int64(repairs) {
			t.Errorf("repair %d is on states with %v used", repairs, s.Column("VCPU").Used)
		}
		if repairs == 1 {
			atOnce(t, "another plan", func() { place(t, b, taking(0, "second", 1)) })
		}
		takes, err := taking(repairs-1, "x", 5)(s)
		return takes, err == nil
	})
	if err != nil || plans != 1 || repairs != 2 || !slices.Equal(used(b), []int64{2, 5}) {
		t.Errorf("%d plans, %d repairs, used %v, error %v", plans, repairs, used(b), err)
	}
}

func TestAPlanIsNotMadeAgainWhenItsContextHasEnded(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)})
	ctx, end := context.WithCancel(t.Context())
	plans := 0
	_, err := b.Place(ctx, "project", func(s *inventory.States) ([]inventory.Take, error) {
		plans++
		end()
		return taking(0, "x", 1)(s)
	}, nil)
	if plans != 1 || !errors.Is(err, context.Canceled) || used(b)[0] != 0 {
		t.Errorf("%d plans, used %v, error %v", plans, used(b), err)
	}
}

func TestAPlanThatReadingsSpoilEachTimeIsGivenUp(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)})
	plans := 0
	_, err := b.Place(t.Context(), "project", func(s *inventory.States) ([]inventory.Take, error) {
		plans++
		b.Replace(b.BeginRead(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(int64(plans))}}), nil)
		return taking(0, "x", 1)(s)
	}, nil)
	if plans != 10 || !fault.Is(err, fault.Unavailable) || len(b.Entered()) > 0 {
		t.Errorf("%d plans, error %v", plans, err)
	}
	place(t, b, taking(0, "next", 1))
}

func TestAPlanOutlivesAReadingThatFindsTheSame(t *testing.T) {
	b := board(t, inventory.HostState{Name: "b", Stocks: cpus(3)})
	plans := 0
	place(t, b, func(s *inventory.States) ([]inventory.Take, error) {
		plans++
		b.Replace(b.BeginRead(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(1)}, {Name: "b", Stocks: cpus(2)}}), nil)
		return taking(0, "x", 4)(s)
	}).Undo()
	if plans != 1 || !slices.Equal(used(b), []int64{1, 2}) {
		t.Errorf("%d plans, used %v", plans, used(b))
	}
}

func TestWhatIsChargedCountsOnceItsHostIsThere(t *testing.T) {
	inventory.NewLiveState().AddClaims([]string{"a"}, []inventory.Take{{Instance: "x"}}).Undo() // before the first reading
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(99)})
	h := b.AddClaims([]string{"A", "b"}, []inventory.Take{{Instance: "x", Resources: amounts{"VCPU": 4}}, {Instance: "y", Resources: amounts{"VCPU": 2}}})
	if used(b)[0] != 103 {
		t.Errorf("used %v", used(b))
	}
	b.Replace(b.BeginRead(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(9)}, {Name: "b", Stocks: cpus(1)}}), nil)
	if !slices.Equal(used(b), []int64{13, 3}) {
		t.Errorf("when its host has come: used %v", used(b))
	}
	h.Undo()
	if !slices.Equal(used(b), []int64{9, 1}) {
		t.Errorf("after Undo: used %v", used(b))
	}
}

// wish describes a call of Place. All its instances have the same size. Each goes to the first host
// in order that has room for it and has no other member of its group.
type wish struct {
	instances []string
	vcpus     int64
	order     []int // of hosts
	group     string
}

var errNoPlace = errors.New("there is no place")

func (w wish) plan(s *inventory.States) (takes []inventory.Take, err error) {
	for _, instance := range w.instances {
		at := slices.IndexFunc(w.order, func(i int) bool {
			member := slices.ContainsFunc(s.InstancesOn(i), func(one inventory.Instance) bool { return w.group != "" && one.Group() == w.group })
			c := s.Column("VCPU")
			return !member && c.Used[i]+w.vcpus <= c.Limit[i]
		})
		if at < 0 {
			return nil, errNoPlace
		}
		take := inventory.Take{Host: w.order[at], Instance: instance, Group: w.group, Resources: amounts{"VCPU": w.vcpus}}
		takes, s = append(takes, take), s.WithTaken([]inventory.Take{take})
	}
	return takes, nil
}

func drawWish(t *rapid.T, n, hosts int) wish {
	w := wish{vcpus: rapid.Int64Range(1, 40).Draw(t, "VCPU"), group: rapid.SampledFrom([]string{"", "g"}).Draw(t, "group")}
	for i := range rapid.IntRange(1, 3).Draw(t, "instances") {
		w.instances = append(w.instances, fmt.Sprintf("%d-%d", n, i))
	}
	for i := range hosts {
		w.order = append(w.order, i)
	}
	w.order = rapid.Permutation(w.order).Draw(t, "order")
	return w
}

// As long as nothing becomes free, plans made side by side put their instances on the same
// hosts as plans made one after the other, in the order in which they entered; and those
// that failed would also fail after them.
func TestPlansSideBySideAreAsOneAfterTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(1, 4).Draw(t, "hosts")
		var rows []inventory.HostState
		for i := range hosts {
			rows = append(rows, inventory.HostState{Name: fmt.Sprint(i), Stocks: cpus(rapid.Int64Range(0, 80).Draw(t, "used"))})
		}
		b, serial := inventory.NewLiveState(), inventory.NewLiveState()
		for _, one := range []*inventory.LiveState{b, serial} {
			s, err := inventory.NewStates(slices.Clone(rows), nil)
			if err != nil {
				t.Fatal(err)
			}
			one.Replace(one.BeginRead(), s, nil)
		}
		wishes := make([]wish, rapid.IntRange(2, 8).Draw(t, "callers"))
		for n := range wishes {
			wishes[n] = drawWish(t, n, hosts)
		}
		errs := together(b, wishes)
		var order []string
		for _, instance := range b.Entered() {
			order = append(order, instance)
			n := slices.IndexFunc(wishes, func(w wish) bool { return w.instances[0] == instance })
			if n < 0 {
				continue // not the first instance of its wish
			}
			if _, err := serial.Place(context.Background(), "project", wishes[n].plan, nil); err != nil || errs[n] != nil {
				t.Fatalf("%s entered, but one after the other it fails: %v", instance, err)
			}
		}
		for n, w := range wishes {
			if _, err := w.plan(serial.Load()); errs[n] != nil && !errors.Is(err, errNoPlace) {
				t.Fatalf("%v failed (%v), but there is room for it in the end", w, errs[n])
			}
		}
		for i := range hosts {
			if diff := cmp.Diff(serial.Load().Host(i), b.Load().Host(i)); diff != "" {
				t.Fatalf("host %d after %v (-one after the other +side by side):\n%s", i, order, diff)
			}
			if c := b.Load().Column("VCPU"); c.Used[i] > c.Limit[i] {
				t.Fatalf("%d of %d VCPU are used", c.Used[i], c.Limit[i])
			}
		}
	})
}

// together places all wishes at the same time. Each plan is made once before any enters.
func together(b *inventory.LiveState, wishes []wish) []error {
	errs := make([]error, len(wishes))
	var planned, all sync.WaitGroup
	planned.Add(len(wishes))
	for n, w := range wishes {
		all.Go(func() {
			var once sync.Once
			_, errs[n] = b.Place(context.Background(), "project", func(s *inventory.States) ([]inventory.Take, error) {
				takes, err := w.plan(s)
				once.Do(func() {
					planned.Done()
					planned.Wait()
				})
				runtime.Gosched()
				return takes, err
			}, nil)
		})
	}
	all.Wait()
	return errs
}

func TestWhoWaitsForOthersEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)})
		long := newSlow()
		done := placing(t.Context(), b, long.plan(taking(0, "long", 1)))
		<-long.begun
		place(t, b, taking(0, "first", 1))
		long.end <- struct{}{}
		long.again(t, done) // runs alone
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		begun := time.Now()
		_, err := b.Place(ctx, "project", taking(0, "late", 1), nil)
		if !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		long.end <- struct{}{}
		<-done
	})
}

func TestThoseWhoWaitForAPlanTakeTurnsByProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)})
		long := newSlow()
		done := placing(t.Context(), b, long.plan(taking(0, "long", 1)))
		<-long.begun
		place(t, b, taking(0, "first", 1))
		long.end <- struct{}{}
		long.again(t, done)
		var all sync.WaitGroup
		for _, instance := range []string{"busy 1", "busy 2", "other"} {
			all.Go(func() {
				if _, err := b.Place(t.Context(), instance[:4], taking(0, instance, 1), nil); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		long.end <- struct{}{}
		all.Wait()
		if got := b.Entered(); !slices.Equal(got, []string{"first", "long", "busy 1", "other", "busy 2"}) {
			t.Errorf("the plans of %v have entered", got)
		}
	})
}
