// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// What a test waits for may be in the page that comes after a click: the wait goes on there. Firefox tells
// nobody that a promise is lost with its page, so its tests await nothing across pages.
func TestAWaitOutlivesThePageInWhichItBegan(t *testing.T) {
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<!doctype html><title>%s</title>", r.URL.Path)
	}))
	t.Cleanup(pages.Close)
	page := labtest.StartBrowser(t)
	page.Visit(pages.URL + "/first")
	page.Eventually("the second page is there", `document.title == '/second' || (window.leaving ||= location.assign('/second') || true, false)`)
	if title := labtest.Evaluate[string](page, `document.title`); title != "/second" {
		t.Errorf("after the wait the page is %s", title)
	}
}
