// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func testHostNumbers(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a host keeps its number, and each new one gets the next", func(t *testing.T) {
		s, want := offered[settings](t, open(t)), map[string]int64{}
		rapid.Check(t, func(rt *rapid.T) {
			hosts := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"node-1", "NODE-1", "node-1 ", "node-2", "é", "e"}), 0, 4, rapid.ID[string]).Draw(rt, "hosts")
			for _, host := range hosts {
				if want[host] == 0 {
					want[host] = int64(len(want) + 1)
				}
			}
			got, err := s.HostNumbers(rt.Context(), hosts)
			if err != nil {
				rt.Fatal(err)
			}
			if d := diff(want, got); d != "" {
				rt.Errorf("numbers (-want +got):\n%s", d)
			}
		})
	})
	t.Run("many hosts get numbers at once", func(t *testing.T) {
		hosts := make([]string, 2500)
		for i := range hosts {
			hosts[i] = fmt.Sprint("node-", i)
		}
		got, err := offered[settings](t, open(t)).HostNumbers(t.Context(), hosts)
		if err != nil || len(got) != len(hosts) || got["node-2499"] != 2500 {
			t.Errorf("%d numbers, the last is %d: %v", len(got), got["node-2499"], err)
		}
	})
}

// testHostNumbersTogether makes workers, spread over the stores, number the same hosts.
func testHostNumbersTogether(t *testing.T, subjects ...Subject) {
	var wg sync.WaitGroup
	for worker := range workers {
		s := offered[settings](t, subjects[worker%len(subjects)])
		wg.Go(func() {
			for round := range rounds {
				if _, err := s.HostNumbers(t.Context(), []string{fmt.Sprint("node-", (worker+round)%rounds)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := offered[settings](t, subjects[0]).HostNumbers(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	numbers := slices.Sorted(maps.Values(got))
	for i, number := range numbers {
		if number != int64(i+1) {
			t.Fatalf("the numbers are %v, want 1 to %d, each once", numbers, len(numbers))
		}
	}
}
