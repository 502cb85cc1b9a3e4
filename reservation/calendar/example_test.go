// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"fmt"
	"log"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Three hosts, of which one is taken for a minute: when are all three free for half a minute?
func ExampleCalendar_Find() {
	c := calendar.New(make([]resource.Vector, 3), 0)
	if err := c.Add(calendar.Claim{Host: 1, Span: span.New(0, 60)}); err != nil {
		log.Fatal(err)
	}
	q := calendar.Query{Deadline: 300, Duration: 30, Quantity: 3}
	start, ok := c.Find(q, calendar.PolicyFirstFit)
	fmt.Println(int64(start), ok)
	for w := range c.Windows(q) {
		fmt.Println("any start from", int64(w.Start), "to", int64(w.LatestStart))
	}
	// Output:
	// 60 true
	// any start from 60 to 270
}
