// SPDX-License-Identifier: Apache-2.0

package turns_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/turns"
)

// queueUp starts a member of project that waits for the gate, appends its project to order when
// it enters, and leaves immediately.
func queueUp(ctx context.Context, g *turns.Gate, project string, order *[]string) {
	go func() {
		if g.Enter(ctx, project) == nil {
			*order = append(*order, project)
			g.Leave(project)
		}
	}()
	synctest.Wait()
}

func TestProjectsTakeTurnsAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := turns.New(1, 0)
		if err := g.Enter(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, project := range []string{"busy", "busy", "busy", "other", "busy", "third", "other"} {
			queueUp(t.Context(), g, project, &order)
		}
		g.Leave("busy")
		synctest.Wait()
		if want := []string{"busy", "other", "third", "busy", "other", "busy", "busy"}; !slices.Equal(order, want) {
			t.Errorf("they came in as %v, want %v", order, want)
		}
	})
}

func TestAGateLetsInAsManyAsItHasSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := turns.New(2, 0)
		var inside atomic.Int64
		for range 5 {
			go func() {
				if g.Enter(t.Context(), "p") == nil {
					inside.Add(1)
				}
			}()
		}
		for want := range int64(4) {
			synctest.Wait()
			if inside.Load() != want+2 {
				t.Fatalf("%d were let in, want %d", inside.Load(), want+2)
			}
			g.Leave("p")
		}
		g.Leave("p")
	})
}

func TestWhoeverGivesUpWaitingTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := turns.New(1, 0)
		if err := g.Enter(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		ctx, giveUp := context.WithCancel(t.Context())
		var order []string
		queueUp(ctx, g, "p", &order)
		queueUp(t.Context(), g, "q", &order)
		queueUp(ctx, g, "q", &order)
		giveUp()
		synctest.Wait()
		g.Leave("p")
		synctest.Wait()
		if !slices.Equal(order, []string{"q"}) {
			t.Errorf("%v entered, want only the one that kept waiting", order)
		}
		if err := g.Enter(ctx, "p"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has gone entered: %v", err)
		}
		if err := g.Enter(t.Context(), "p"); err != nil {
			t.Errorf("the slot is lost: %v", err)
		}
		queueUp(t.Context(), g, "q", &order)
		if g.Waiting("q") != 1 {
			t.Error("there are two slots now")
		}
		g.Leave("p")
	})
}

func TestAPartyWithTooManyInsideWaitsWhileOthersComeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := turns.New(10, 2)
		var inside []string
		for _, party := range []string{"busy", "busy", "busy", "busy", "other"} {
			go func() {
				if g.Enter(t.Context(), party) == nil {
					inside = append(inside, party)
				}
			}()
			synctest.Wait()
		}
		if want := []string{"busy", "busy", "other"}; !slices.Equal(inside, want) || g.Waiting("busy") != 2 {
			t.Errorf("inside are %v and %d wait, want %v and 2", inside, g.Waiting("busy"), want)
		}
		g.Leave("other")
		g.Leave("busy")
		synctest.Wait()
		if len(inside) != 4 || g.Waiting("busy") != 1 {
			t.Errorf("inside came %v and %d wait, want one more", inside, g.Waiting("busy"))
		}
		g.Leave("busy")
		synctest.Wait()
	})
}

func TestWhoeverOthersWaitForStandsFirstInTheLineOfTheirParty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := turns.New(1, 0)
		if err := g.Enter(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		var order []string
		enter := func(name string, how func() error) {
			go func() {
				if how() == nil {
					order = append(order, name)
					g.Leave("p")
				}
			}()
			synctest.Wait()
		}
		enter("first", func() error { return g.Enter(t.Context(), "p") })
		enter("second", func() error { return g.Enter(t.Context(), "p") })
		enter("ahead", func() error { return g.EnterAhead(t.Context(), "p") })
		g.Leave("p")
		synctest.Wait()
		if want := []string{"ahead", "first", "second"}; !slices.Equal(order, want) {
			t.Errorf("they came in as %v, want %v", order, want)
		}
	})
}
