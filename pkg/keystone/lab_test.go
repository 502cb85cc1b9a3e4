// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// lab returns the address of Keystone and its admin.
func lab(t testing.TB) (address, user, password string) {
	t.Helper()
	return labtest.Keystone(t).AuthURL, labtest.Admin.Name, labtest.Admin.Password
}
