// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// demoPrices are the prices of a made-up day, for each of its hours in UTC.
var demoPrices = [24]int{62, 55, 48, 44, 46, 58, 79, 94, 88, 71, 60, 52, 47, 50, 57, 68, 85, 103, 118, 112, 97, 84, 76, 68}

// demoTariff returns a tariff that has the same prices each day from the day of now on, as long as a tariff may be.
func demoTariff(now time.Time) string {
	var text strings.Builder
	text.WriteString("start,price\n")
	day, last := now.UTC().Truncate(24*time.Hour), now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 365)
	for at := day; at.Before(last); at = at.Add(time.Hour) {
		fmt.Fprintf(&text, "%s,%d\n", at.Format(time.RFC3339), demoPrices[at.Hour()])
	}
	fmt.Fprintf(&text, "%s,\n", last.Format(time.RFC3339))
	return text.String()
}
