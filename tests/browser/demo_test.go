// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestThePageOfAFastDemoShowsItsTimeAndSaysSo(t *testing.T) {
	b := labtest.StartBrowser(t)
	url := built.StartDemo(t, []string{"--speed", "60"})
	b.Visit(url + "/dashboard/#/calendar")
	b.Await(".picture")
	if text := b.Text("#simulated"); text != "Simulated cloud, 60 times as fast" {
		t.Errorf("the header says %q", text)
	}
	// The service writes its time between the request and the answer.
	const apart = `(async () => {
		const asked = almanac.now(), at = Date.parse((await fetch('../v1')).headers.get('Date')) / 1000;
		return Math.max(0, asked - at, at - almanac.now())
	})()`
	first := labtest.Evaluate[float64](b, "Date.now() / 1000")
	built.Eventually(t, "the page is not in step with the service after five of its minutes", func() bool {
		off := labtest.Evaluate[float64](b, apart)
		return labtest.Evaluate[float64](b, "Date.now() / 1000")-first > 5 && off < 60
	})
	if troubles := b.Troubles(); len(troubles) > 0 {
		t.Errorf("the page has troubles: %v", troubles)
	}
}
