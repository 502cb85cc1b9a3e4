// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// Nova uses the same topic to ask where to move the instances that make room.
func TestOneWorkerDoesNotDoWhereInstancesMoveToMakeRoom(t *testing.T) {
	for _, c := range []struct {
		action, workers string
		refused         bool
	}{{"migrate", "1", true}, {"migrate", "2", false}, {"delete", "1", false}} {
		settings, err := config.Load(nil, nil, map[string]string{
			"OS_INVENTORY__SOURCE": "openstack", "OS_NOVA__TRANSPORT_URL": "rabbit://n:p@mq/", "OS_NOVA__CELL": "0a1b2c3d-0000-4000-8000-000000000000",
			"OS_SCHEDULER__MODE": config.ModeReplace, "OS_SCHEDULER__WORKERS": c.workers, "OS_PREEMPTIBLE__PREEMPT_ACTION": c.action,
		})
		if err != nil {
			t.Fatal(err)
		}
		err = checkScheduler(settings)
		if refused := err != nil && strings.Contains(err.Error(), "[scheduler] workers"); refused != c.refused || err != nil && !refused {
			t.Errorf("preempt_action = %s, workers = %s: got error %v", c.action, c.workers, err)
		}
	}
}
