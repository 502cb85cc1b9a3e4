// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// novaHas prints the names of all that Debian's Nova has, by chapter.
const novaHas = `
import json
import nova.conf
from nova.scheduler import filters, request_filter, weights
print(json.dumps({
    "Request filters": [f.__name__ for f in request_filter.ALL_REQUEST_FILTERS],
    "Filters": [f.__name__ for f in filters.all_filters()],
    "Weighers": [w.__name__ for w in weights.all_weighers()],
}))`

// novaReveals prints the numbers by which the installed Nova reveals its release.
const novaReveals = `
import json
from nova.api.openstack import api_version_request
from nova.objects import image_meta
print(json.dumps([api_version_request._MAX_API_VERSION, image_meta.ImageMetaProps.VERSION]))`

func TestTheReleaseHasThePartsThatItsCodeHas(t *testing.T) {
	of := labtest.Release(t)
	var reveals []string
	askNova(t, novaReveals, &reveals)
	if want := []string{fmt.Sprintf("2.%d", of.Microversion()), fmt.Sprintf("1.%d", of.ImageProperties())}; of != release.Newer && !slices.Equal(reveals, want) {
		t.Errorf("%v has microversion and ImageMetaProps %q, and the table has %q", of, reveals, want)
	}
	var has map[string][]string
	askNova(t, novaHas, &has)
	for chapter, kind := range map[string]release.Kind{"Request filters": release.RequestFilter, "Filters": release.Filter, "Weighers": release.Weigher} {
		var want []string
		for _, name := range slices.Sorted(maps.Keys(repository.Parity(t, chapter))) {
			if of.Has(release.Named(kind, name)) {
				want = append(want, name)
			}
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(has[chapter]))); diff != "" {
			t.Errorf("%s of %v (-table +Nova):\n%s", strings.ToLower(chapter), of, diff)
		}
	}
}

// askNova runs a script with the installed Nova and decodes what it prints.
func askNova(t *testing.T, script string, into any) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-W", "ignore", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
