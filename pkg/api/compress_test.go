// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"testing"
)

func TestNobodyGetsACompressedAnswerWhoRefusesIt(t *testing.T) {
	c := start(t, setup{})
	for accepted, want := range map[string]string{"gzip": "gzip", "br, GZIP;q=0.5": "gzip", "gzip;q=0": "", "gzip; q=0.000, identity": "", "x-gzipped": "", "": ""} {
		_, a := c.nobody.exchange(http.MethodGet, "/metrics", "", "Accept-Encoding", accepted)
		if got := a.header.Get("Content-Encoding"); got != want {
			t.Errorf("%q: the answer is encoded as %q, want %q", accepted, got, want)
		}
	}
}
