// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// counting is a placer that counts its calls.
type counting struct {
	placer
	asked *int
}

func (c counting) Place(ctx context.Context, r *placing.Request) (dispatch.Placed, error) {
	*c.asked++
	return c.placer.Place(ctx, r)
}

// Each row is a way in which a request can be old. Its conductor is alive in all of them and
// waits a minute for a sign of life.
func TestARequestThatNovaHasGivenUpClaimsNothing(t *testing.T) {
	waiting := func(waits bool, err error) func(context.Context, string) (bool, error) {
		return func(context.Context, string) (bool, error) { return waits, err }
	}
	for name, row := range map[string]struct {
		age    time.Duration // negative: the context has no time
		waits  func(context.Context, string) (bool, error)
		placed bool
	}{
		"new, and nobody asks":       {time.Second, waiting(false, nil), true},
		"of unknown age":             {-1, waiting(false, nil), true},
		"old, and still being built": {time.Hour, waiting(true, nil), true},
		"old, and Nova away":         {time.Hour, waiting(false, fault.New(fault.Unavailable, "away")), true},
		"old, and nobody to ask":     {time.Hour, nil, true},
		"old, and in ERROR or gone":  {time.Hour, waiting(false, nil), false},
		"about to be given up":       {59 * time.Second, waiting(false, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			b := serve(t, topic.Options{Placer: counting{asked: &asked}, Waits: row.waits})
			c := oslo.Context{}
			if row.age >= 0 {
				c["timestamp"], _ = json.Marshal(now.Time().Add(-row.age).Format("2006-01-02T15:04:05.000000"))
			}
			conductor := oslo.NewClient(b.broker, oslo.ClientOptions{Timeout: time.Minute, Monitor: time.Minute, NewID: oslotest.NewID, Now: time.Now})
			defer conductor.Close()
			err := conductor.Call(oslo.WithContext(t.Context(), c), oslo.Target{Exchange: topic.Exchange, Topic: topic.Topic, Version: "4.5"},
				"select_destinations", args(t, nil, nil), nil)
			if (err == nil) != row.placed || (asked == 1) != row.placed {
				t.Errorf("%d requests were placed, with the answer %v", asked, err)
			}
			if !row.placed && (len(b.kept.list) != 1 || !strings.Contains(b.kept.list[0].Reason, "does not wait")) {
				t.Errorf("the decisions are %+v", b.kept.list)
			}
		})
	}
}
