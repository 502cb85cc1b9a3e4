package topic_test

import (
	"context"
	"errors"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// cloudThatChanges has room from one reading on; those before are counted.
type cloudThatChanges struct {
	placer
	readings, places int
	room             int // the number of that reading
	fails            bool
}

func (c *cloudThatChanges) read(context.Context) error {
	c.readings++
	if c.fails {
		return errors.New("Nova does not answer")
	}
	return nil
}

func (c *cloudThatChanges) Place(ctx context.Context, r *placing.Request) (dispatch.Placed, error) {
	c.places++
	if c.readings < c.room {
		return dispatch.Placed{}, fault.New(fault.Conflict, "all hosts are full")
	}
	return c.placer.Place(ctx, r)
}

func TestRequestsSeeWhatCastsHaveTold(t *testing.T) {
	for name, c := range map[string]struct {
		cast             string
		room             int
		fails            bool
		readings, places int // after two requests
		placed           bool
	}{
		"no cast":                         {readings: 0, places: 2, placed: true},
		"no cast, no room":                {room: 1, readings: 0, places: 2},
		"an aggregate":                    {cast: "update_aggregates", readings: 1, places: 2, placed: true},
		"an aggregate that is gone":       {cast: "delete_aggregate", readings: 1, places: 2, placed: true},
		"an aggregate that is not read":   {cast: "update_aggregates", fails: true, readings: 1, places: 2, placed: true},
		"an instance that is gone":        {cast: "delete_instance_info", readings: 0, places: 2, placed: true},
		"the room of one that is gone":    {cast: "delete_instance_info", room: 1, readings: 1, places: 3, placed: true},
		"no room, though one is gone":     {cast: "delete_instance_info", room: 2, readings: 1, places: 3},
		"no room, and one that has begun": {cast: "update_instance_info", room: 1, readings: 0, places: 2},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := &cloudThatChanges{room: c.room, fails: c.fails}
			b := serve(t, topic.Options{Placer: cloud, Reread: cloud.read})
			if c.cast != "" {
				target := oslo.Target{Exchange: topic.Exchange, Topic: topic.Topic, Version: "4.0"}
				if err := b.client.Fanout(t.Context(), target, c.cast, map[string]any{}); err != nil {
					t.Fatal(err)
				}
				<-b.changes
			}
			var err error
			for range 2 {
				_, err = b.ask(t, args(t, nil, nil))
			}
			if placed := err == nil; placed != c.placed || cloud.readings != c.readings || cloud.places != c.places {
				t.Errorf("placed %v after %d readings and %d plans, want %v, %d, %d: %v",
					placed, cloud.readings, cloud.places, c.placed, c.readings, c.places, err)
			}
		})
	}
}
