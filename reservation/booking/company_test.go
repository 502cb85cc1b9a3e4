// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// sizes notes how many reservations each commit stores.
func (g *gates) sizes() *[]int {
	var list []int
	g.set(func(g *gates) {
		hold := g.beforeCommit
		g.beforeCommit = func(c booking.Commit) error {
			g.mu.Lock()
			list = append(list, len(c.Revisions))
			g.mu.Unlock()
			if hold == nil {
				return nil
			}
			return hold(c)
		}
	})
	return &list
}

// bookEach lets callers book an hour of host a each, one after the other, and returns their errors
// once they all have an answer.
func (s *scene) bookEach(t *testing.T, by ...booking.Caller) (answers func() []error) {
	t.Helper()
	errs := make([]error, len(by))
	var all sync.WaitGroup
	for i, caller := range by {
		all.Go(func() {
			_, errs[i] = s.bookings.Book(t.Context(), caller, during(1, int64(100*(i+1)), int64(100*(i+2))), nil)
		})
		synctest.Wait()
	}
	return func() []error {
		all.Wait()
		return errs
	}
}

func TestBookingsOfAProjectThatWaitAreStoredTogether(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		goOn := g.holdCommit(anyCommit)
		sizes := g.sizes()
		answers := b.bookEach(t, slices.Repeat([]booking.Caller{owner}, 20)...)
		close(goOn)
		if err := errors.Join(answers()...); err != nil {
			t.Error(err)
		}
		if want := []int{1, 16, 3}; !slices.Equal(*sizes, want) {
			t.Errorf("the commits store %v reservations, want %v", *sizes, want)
		}
		agree(t, []*scene{a, b})
	})
}

func TestBookingsOfTwoProjectsOrWithAKeyAreNotStoredTogether(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		first, second := projects[0], projects[1]
		goOn := g.holdCommit(anyCommit)
		sizes := g.sizes()
		answers := b.bookEach(t, first, first, second, first, second, second)
		var keyed sync.WaitGroup
		keyed.Go(func() {
			if _, err := b.bookings.Book(t.Context(), first, during(1, 1000, 1100), &booking.KeyUse{Key: "k", BodyHash: "h"}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(goOn)
		keyed.Wait()
		if err := errors.Join(answers()...); err != nil {
			t.Error(err)
		}
		slices.Sort(*sizes)
		if want := []int{1, 1, 1, 2, 2}; !slices.Equal(*sizes, want) {
			t.Errorf("the commits store %v reservations, want %v: of each project one and two, and the one with the key", *sizes, want)
		}
		agree(t, []*scene{a, b})
	})
}

// Another replica books on the host while the bookings wait, so that their commit is stale.
func TestBookingsThatAreStaleTogetherAreEachDecidedAgain(t *testing.T) {
	gated(t, []string{"a", "b"}, func(t *testing.T, a, b *scene, g *gates) {
		goOn := g.holdCommit(anyCommit)
		answers := b.bookEach(t, slices.Repeat([]booking.Caller{owner}, 5)...)
		a.book(t, only("a", during(1, 250, 350)))
		close(goOn)
		if err := errors.Join(answers()...); err != nil {
			t.Error(err)
		}
		agree(t, []*scene{a, b})
	})
}

func TestALostAnswerLeavesAllBookingsThatWereStoredTogetherInDoubt(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		goOn := g.holdCommit(anyCommit)
		g.set(func(g *gates) {
			g.afterCommit = func(c booking.Commit) error {
				if len(c.Revisions) > 1 {
					return fault.New(fault.Unavailable, "the database does not answer")
				}
				return nil
			}
		})
		answers := b.bookEach(t, slices.Repeat([]booking.Caller{owner}, 4)...)
		close(goOn)
		for i, err := range answers() {
			if doubt := i > 0; fault.Is(err, fault.Unavailable) != doubt || !doubt && err != nil {
				t.Errorf("booking %d: %v, want an answer that was lost: %v", i, err, doubt)
			}
		}
		b.follow(t)
		agree(t, []*scene{a, b})
	})
}

func TestABookingWhoseCallerLeavesWhileItWaitsIsNotStored(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		goOn := g.holdCommit(anyCommit)
		answers := b.bookEach(t, owner, owner)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := b.bookings.Book(ctx, owner, during(1, 900, 1000), nil)
			left <- err
		}()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the booking of a caller that left: %v, want %v", err, context.Canceled)
		}
		close(goOn)
		if err := errors.Join(answers()...); err != nil {
			t.Error(err)
		}
		b.book(t, during(1, 900, 1000))
		agree(t, []*scene{a, b})
	})
}

// The caller leaves while the transaction is under way that stores its booking and another's.
func TestACallerThatLeavesDoesNotEndTheTransactionOfOthers(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		first, second := g.holdCommit(anyCommit), make(chan struct{})
		g.set(func(g *gates) {
			hold := g.beforeCommit
			g.beforeCommit = func(c booking.Commit) error {
				err := hold(c)
				if len(c.Revisions) > 1 {
					<-second
				}
				return err
			}
		})
		answers := b.bookEach(t, owner)
		ctx, leave := context.WithCancel(t.Context())
		var stored [2]reservation.Reservation
		var errs [2]error
		var both sync.WaitGroup
		for i, c := range []context.Context{ctx, t.Context()} {
			both.Go(func() {
				stored[i], errs[i] = b.bookings.Book(c, owner, during(1, int64(900+100*i), int64(1000+100*i)), nil)
			})
			synctest.Wait()
		}
		close(first)
		synctest.Wait()
		leave()
		synctest.Wait()
		close(second)
		both.Wait()
		if err := errors.Join(append(answers(), errs[:]...)...); err != nil {
			t.Error(err)
		}
		agree(t, []*scene{a, b})
	})
}

// A transaction with many claims keeps others from its hosts for long.
func TestBookingsOfManyHostsAreNotStoredTogether(t *testing.T) {
	hosts := make([]string, 200)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("host-%03d", i)
	}
	gated(t, hosts, func(t *testing.T, a, b *scene, g *gates) {
		goOn := g.holdCommit(anyCommit)
		sizes := g.sizes()
		var all sync.WaitGroup
		for i := range int64(4) {
			all.Go(func() { b.book(t, during(150, 100*(i+1), 100*(i+2))) })
			synctest.Wait()
		}
		close(goOn)
		all.Wait()
		if want := []int{1, 1, 1, 1}; !slices.Equal(*sizes, want) {
			t.Errorf("the commits store %v reservations, want %v", *sizes, want)
		}
		agree(t, []*scene{a, b})
	})
}
