// SPDX-License-Identifier: Apache-2.0

package claiming_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

// slowPlacement takes a second for each transaction, and notes their sizes.
type slowPlacement struct {
	*cloudtest.Model
	mu    sync.Mutex
	sizes []int
}

func (s *slowPlacement) Claim(ctx context.Context, claims []placing.Claim) error {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(claims))
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Model.Claim(ctx, claims)
}

// claimOn claims one VCPU of host i.
func claimOn(i int, consumer string) placing.Claim {
	return placing.Claim{Consumer: consumer, ProjectID: "p", UserID: "u", Allocations: placing.Allocations{cloudtest.Provider(i): {"VCPU": 1}}}
}

// crowd claims each claim in a goroutine of its own, one after the other within a second, and returns
// the errors.
func crowd(t *testing.T, g *claiming.Gatherer, claims ...placing.Claim) []error {
	t.Helper()
	errs := make([]error, len(claims))
	var all sync.WaitGroup
	for i, claim := range claims {
		all.Go(func() { errs[i] = g.Claim(t.Context(), []placing.Claim{claim}) })
		time.Sleep(time.Millisecond)
	}
	all.Wait()
	return errs
}

// crowdOn returns a claim of host 0 for each of n instances.
func crowdOn(n int) (claims []placing.Claim) {
	for i := range n {
		claims = append(claims, claimOn(0, fmt.Sprint("instance-", i)))
	}
	return claims
}

func gatherer(limits ...int64) (*claiming.Gatherer, *slowPlacement) {
	s := &slowPlacement{Model: cloudtest.NewCloud(limits...)}
	return claiming.NewGatherer(s), s
}

func TestClaimsThatWaitGoToPlacementTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, placement := gatherer(100)
		begun := time.Now()
		for i, err := range crowd(t, g, crowdOn(30)...) {
			if err != nil {
				t.Errorf("instance-%d: %v", i, err)
			}
		}
		if want := []int{1, 1, 1, 1, 16, 10}; !slices.Equal(placement.sizes, want) {
			t.Errorf("the transactions have %v consumers, want %v", placement.sizes, want)
		}
		if took := time.Since(begun); took > 2100*time.Millisecond {
			t.Errorf("all claims took %v, want the time of two transactions", took)
		}
		if len(placement.Consumers) != 30 {
			t.Errorf("%d consumers have allocations, want 30", len(placement.Consumers))
		}
	})
}

func TestAClaimWithoutRoomDoesNotAffectThoseThatWaitWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := gatherer(100, 0)
		claims := append(crowdOn(8), claimOn(1, "too much"))
		errs := crowd(t, g, append(claims, claimOn(0, "last"))...)
		for i, err := range errs {
			_, full := errors.AsType[*placing.ErrNoCapacity](err)
			if wantFull := i == 8; full != wantFull || !full && err != nil {
				t.Errorf("claim %d: %v, want a lack of capacity: %v", i, err, wantFull)
			}
		}
	})
}

func TestTwoClaimsOfOneInstanceAreNotInOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := gatherer(100)
		claims := append(crowdOn(4), claimOn(0, "twice"), claimOn(0, "twice"), claimOn(0, "once"))
		for i, err := range crowd(t, g, claims...) {
			if second := i == 5; errors.Is(err, placing.ErrConsumerChanged) != second || !second && err != nil {
				t.Errorf("claim %d: %v, want that the consumer has changed: %v", i, err, second)
			}
		}
	})
}

func TestALostAnswerIsLostToAllClaimsOfItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, placement := gatherer(100)
		calls := 0
		placement.Fate = func(string) cloudtest.Fate {
			if calls++; calls > 4 {
				return cloudtest.After
			}
			return cloudtest.Fine
		}
		for i, err := range crowd(t, g, crowdOn(9)...) {
			if lost := i >= 4; errors.Is(err, cloudtest.Away) != lost || lost && claiming.Refused(err) {
				t.Errorf("claim %d: %v, want a lost answer: %v", i, err, lost)
			}
		}
	})
}

func TestAClaimWhoseCallerLeavesWhileItWaitsIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, placement := gatherer(100)
		go crowd(t, g, crowdOn(4)...)
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := g.Claim(ctx, []placing.Claim{claimOn(0, "leaves")}); !errors.Is(err, placing.ErrUnsent) || claiming.Refused(err) {
			t.Errorf("the claim of a caller that leaves: %v, want that it was not sent", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, claimed := placement.Consumers["leaves"]; claimed || len(placement.sizes) != 4 {
			t.Errorf("Placement has %d transactions, and the claim: %v; want 4 without it", len(placement.sizes), claimed)
		}
	})
}

func TestAClaimWhoseCallerLeavesOnTheWayMayBeGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, placement := gatherer(100)
		go crowd(t, g, crowdOn(6)...)
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		err := g.Claim(ctx, []placing.Claim{claimOn(0, "leaves")})
		if errors.Is(err, placing.ErrUnsent) || !errors.Is(err, context.DeadlineExceeded) || claiming.Refused(err) {
			t.Errorf("the claim of a caller that leaves: %v, want that it may be granted", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(placement.Consumers) != 7 {
			t.Errorf("%d consumers have allocations, want all 7", len(placement.Consumers))
		}
	})
}

func TestClaimsOfInstancesWithAllocationsGoAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, placement := gatherer(100)
		crowd(t, g, crowdOn(4)...)
		placement.sizes = nil
		claims := append(crowdOn(10)[4:], placement.Of("instance-0"))
		for i, err := range crowd(t, g, claims...) {
			if err != nil {
				t.Errorf("claim %d: %v", i, err)
			}
		}
		if want := []int{1, 1, 1, 1, 1, 2}; !slices.Equal(placement.sizes, want) {
			t.Errorf("the transactions have %v consumers, want %v", placement.sizes, want)
		}
	})
}
