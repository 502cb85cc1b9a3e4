// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/reservation/tariff/feed"
)

func TestTheFirstBookingHasTheTariff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tariff.csv")
	if err := os.WriteFile(file, []byte("start,price\n2026-11-20T12:00:00Z,9\n2026-11-20T13:00:00Z,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, read := range map[string]bool{file: true, file + ".old": false} {
		c := config.Config{Tariff: feed.Options{Source: source, Timeout: time.Minute}}
		opened, f := openTariff(t.Context(), process{config: c, log: slog.New(slog.DiscardHandler), clock: &clock{}})
		if (opened.known() != nil) != read || len(f.jobs) != 1 {
			t.Errorf("%s is read: %v, with %d jobs", source, opened.known() != nil, len(f.jobs))
		}
	}
}
