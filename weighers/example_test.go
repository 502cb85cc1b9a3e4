// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"fmt"
	"log"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/weighers"
)

// A weigher writes the raw weight of each host; the multiplier counts when the weights are summed.
func ExampleChoose() {
	hosts, err := inventory.NewStates([]inventory.HostState{
		{Name: "a", Stocks: map[string]inventory.Stock{"VCPU": {Total: 8, Ratio: 1, Used: 6}}},
		{Name: "b", Stocks: map[string]inventory.Stock{"VCPU": {Total: 8, Ratio: 1}}},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	chosen, err := weighers.Choose([]string{"nova.scheduler.weights.cpu.CPUWeigher"}, map[string]float64{"cpu_weight_multiplier": 2}, weighers.Ports{})
	if err != nil {
		log.Fatal(err)
	}
	raw := make([]float64, 2)
	for _, w := range chosen {
		w.Weigh(hosts, &placing.Request{}, 0, []int{0, 1}, raw)
		fmt.Println(w.Name(), raw, "times", w.Multiplier)
	}
	// Output: CPUWeigher [2 8] times 2
}
