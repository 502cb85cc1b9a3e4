// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// cloudThatChanges counts its readings.
type cloudThatChanges struct {
	readings int
	fails    bool
}

func (c *cloudThatChanges) read(context.Context) error {
	c.readings++
	if c.fails {
		return errors.New("Nova does not answer")
	}
	return nil
}

func TestRequestsSeeWhatCastsHaveToldOfAggregates(t *testing.T) {
	for name, c := range map[string]struct {
		cast     string
		fails    bool
		readings int // after two requests
	}{
		"no cast":                       {readings: 0},
		"an aggregate":                  {cast: "update_aggregates", readings: 1},
		"an aggregate that is gone":     {cast: "delete_aggregate", readings: 1},
		"an aggregate that is not read": {cast: "update_aggregates", fails: true, readings: 1},
		"an instance that has begun":    {cast: "update_instance_info", readings: 0},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := &cloudThatChanges{fails: c.fails}
			b := serve(t, topic.Options{Placer: placer{}, Reread: cloud.read})
			if c.cast != "" {
				b.cast(t, c.cast, map[string]any{})
			}
			for range 2 {
				if _, err := b.ask(t, args(t, nil, nil)); err != nil {
					t.Error(err)
				}
			}
			if cloud.readings != c.readings {
				t.Errorf("the hosts were read %d times, want %d", cloud.readings, c.readings)
			}
		})
	}
}

func TestAHostThatAnInstanceHasLeftIsNoted(t *testing.T) {
	var freed []string
	b := serve(t, topic.Options{Placer: placer{}, Freed: func(host string) { freed = append(freed, host) }})
	b.cast(t, "delete_instance_info", map[string]any{"host_name": "cmp-003", "instance_uuid": "i"})
	for host, task := range map[string]any{"cmp-004": "migrating", "cmp-005": nil} {
		instance := fields{"nova_object.data": fields{"task_state": task}}
		b.cast(t, "update_instance_info", map[string]any{"host_name": host, "instance_info": fields{"nova_object.data": fields{"objects": []any{instance}}}})
	}
	if !slices.Equal(freed, []string{"cmp-003", "cmp-004"}) {
		t.Errorf("noted are %v", freed)
	}
}

// cast casts to every scheduler and returns when the service has handled it.
func (b *bench) cast(t *testing.T, method string, args any) {
	t.Helper()
	target := oslo.Target{Exchange: topic.Exchange, Topic: topic.Topic, Version: "4.0"}
	if err := b.client.Fanout(t.Context(), target, method, args); err != nil {
		t.Fatal(err)
	}
	<-b.changes
}
