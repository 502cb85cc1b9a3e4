// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestWithoutPasswordsOnlyThisMachineIsAnswered(t *testing.T) {
	everybody := api.Fixed{ProjectID: "demo", Roles: []string{"admin"}}
	for host, want := range map[string]bool{
		"localhost": true, "localhost:1234": true, "127.0.0.1:1234": true, "127.8.8.8": true, "[::1]:1234": true, "[::1]": true,
		"evil.example": false, "evil.example:1234": false, "10.0.0.1:1234": false, "localhost.evil.example": false, "": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/reservations", nil)
		r.Host = host
		caller, err := everybody.Authenticate(r)
		if want && (err != nil || caller.ProjectID != "demo") || !want && !fault.Is(err, fault.Denied) {
			t.Errorf("a request to %q: caller %+v, error %v", host, caller, err)
		}
	}
}
