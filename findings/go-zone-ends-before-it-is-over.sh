#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Go 1.26.8: on 31 December of a leap year after 2037, time.Time.ZoneBounds returns an end of the zone's offset that has passed already.
# Until 2037 the changes of a zone are a list; later they follow its rule.
# Seen in Europe/Paris: the offset on 31 December 2044 at noon UTC lasts until midnight UTC of the same day by the answer, and until
# 26 March 2045 by the rule. On 31 December 2028 the end is 25 March 2029, which is right.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.26.8 GOFLAGS='' GOWORK=off

cat > go.mod <<'MODULE'
module bounds

go 1.26
MODULE
cat > main.go <<'PROGRAM'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"
)

func main() {
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		panic(err)
	}
	for _, year := range []int{2028, 2044} {
		noon := time.Date(year, 12, 31, 12, 0, 0, 0, time.UTC).In(zone)
		_, end := noon.ZoneBounds()
		fmt.Println(noon.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339), end.After(noon))
	}
}
PROGRAM
go run . | tee seen

diff - seen <<'EXPECTED'
2028-12-31T12:00:00Z 2029-03-25T01:00:00Z true
2044-12-31T12:00:00Z 2044-12-31T00:00:00Z false
EXPECTED
