// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestManyKeysArePurgedAThousandAtATime(t *testing.T) {
	for name, connection := range map[string]func(t *testing.T) string{
		"SQLite":  func(t *testing.T) string { return "sqlite://" },
		"MariaDB": func(t *testing.T) string { return labtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			log := &statements{Handler: slog.DiscardHandler}
			s := openFor(t, connection(t), slog.New(log))
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			var rows []keyRow
			for n := range 2500 {
				rows = append(rows, keyRow{"demo", fmt.Sprint(n), "hash", fmt.Sprint("r", n), 90})
			}
			rows = append(rows, keyRow{"demo", "new", "hash", "another", 100})
			if err := s.writer.CreateInBatches(rows, batch).Error; err != nil {
				t.Fatal(err)
			}
			log.seen = nil
			if n, err := s.PurgeKeys(t.Context(), job.Lease{}, 100); n != 2500 || err != nil {
				t.Errorf("purged %d keys (%v), want 2,500", n, err)
			}
			one := []string{"SELECT idempotency_keys", "DELETE idempotency_keys"}
			if d := cmp.Diff(append(append(one, one...), one...), log.seen); d != "" {
				t.Errorf("statements (-want +got):\n%s", d)
			}
			if _, kept, err := s.Key(t.Context(), "demo", "new"); !kept || err != nil {
				t.Errorf("the new key is kept: %v (%v)", kept, err)
			}
		})
	}
}
