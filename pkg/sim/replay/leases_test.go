// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"
)

// leasesOf returns a file with leases of Haizea to inject into 30 days of Blue Horizon.
func leasesOf(t *testing.T, folder string) string {
	t.Helper()
	from, err := os.Open(folder + "/haizea/haizea-lwf-traces.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	text, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	for members := tar.NewReader(text); ; {
		member, err := members.Next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(member.Name, "30days/work_20-dur_2h-size_2medium.lwf") {
			leases, err := io.ReadAll(members)
			if err != nil {
				t.Fatal(err)
			}
			return file(t, "leases.lwf", string(leases))
		}
	}
}
