// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/nova/release"
)

// Release returns the release of the Nova that is installed, whose code the oracles run: that of
// the lab.
func Release(t testing.TB) release.Release {
	t.Helper()
	folder(t) // its lab has installed Nova
	of, err := installed()
	if err != nil {
		t.Fatalf("which release of Nova is installed: %v", err)
	}
	return of
}

// installed returns the release by the version of Debian's package, such as 2:31.0.0-6.
var installed = sync.OnceValues(func() (release.Release, error) {
	version, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "python3-nova").Output()
	if err != nil {
		return release.Unknown, err
	}
	found := regexp.MustCompile(`^(?:\d+:)?(\d+)\.`).FindSubmatch(version)
	if found == nil {
		return release.Unknown, fmt.Errorf("python3-nova has the version %q", version)
	}
	major, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return release.Unknown, err
	}
	for _, r := range release.Known() {
		if r.Nova() == major {
			return r, nil
		}
	}
	return release.Newer, nil
})
