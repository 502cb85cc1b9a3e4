// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"fmt"
	"log"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// A filter is prepared for a request, keeps hosts, and states why it removed the others.
func ExampleFilter() {
	hosts, err := inventory.NewStates([]inventory.HostState{
		{Name: "a", Up: true, Enabled: true}, {Name: "b", Up: true, DisabledReason: "new memory"},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	left := hosts.All().Clone()
	var f filters.Filter = filters.Compute{}
	if test := f.For(hosts, &placing.Request{}, 0); test != nil { // nil means that every host passes
		test.Keep(left)
		for host := range hosts.All().All() {
			if !left.Has(host) {
				fmt.Printf("%s removes %s: %s\n", f.Name(), hosts.Host(host).Name, test.Why(host))
			}
		}
	}
	fmt.Println("left:", left.Count())
	// Output:
	// ComputeFilter removes b: its nova-compute is disabled: new memory
	// left: 1
}
