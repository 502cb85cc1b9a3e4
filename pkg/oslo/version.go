// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"strconv"
	"strings"
)

// compatible reports whether an endpoint of version offered may serve a request for version
// wanted: the major version is the same, and the minor version and revision are not older
// (oslo_messaging/_utils.py, version_is_compatible).
func compatible(offered, wanted string) bool {
	have, ok := parseVersion(offered)
	want, ok2 := parseVersion(wanted)
	switch {
	case !ok || !ok2 || have[0] != want[0]:
		return false
	case have[1] != want[1]:
		return have[1] > want[1]
	}
	return have[2] >= want[2]
}

// parseVersion parses "4.5" or "4.5.1".
func parseVersion(text string) (version [3]int, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > len(version) {
		return version, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return version, false
		}
		version[i] = n
	}
	return version, true
}
