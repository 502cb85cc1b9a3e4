// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/weighers"
)

// noting is a placer that records its requests.
type noting struct {
	placer
	asked *placing.Request
}

func (n noting) Place(ctx context.Context, r *placing.Request) (dispatch.Placed, error) {
	*n.asked = *r
	return n.placer.Place(ctx, r)
}

func TestARebuildIsNobodysBusinessButItsHosts(t *testing.T) {
	rebuild := fields{"force_hosts": []string{"cmp-001"}, "scheduler_hints": map[string][]string{
		"_nova_check_type": {"rebuild"}, placing.ReservationHint: {"gone"},
	}}
	var asked placing.Request
	if _, err := serve(t, topic.Options{Placer: noting{asked: &asked}}).ask(t, args(t, rebuild, nil)); err != nil || !asked.Rebuild {
		t.Errorf("the rebuild of an instance whose reservation is over: rebuild %t, %v", asked.Rebuild, err)
	}
}

func TestARequestOfOldWithoutAUserIsTheCallers(t *testing.T) {
	var asked placing.Request
	b := serve(t, topic.Options{Placer: noting{asked: &asked}})
	ctx := oslo.WithContext(t.Context(), oslo.Context{"user_id": json.RawMessage(`"operator"`)})
	target := oslo.Target{Exchange: topic.Exchange, Topic: topic.Topic, Version: "4.5"}
	if err := b.client.Call(ctx, target, "select_destinations", args(t, fields{"user_id": nil}, nil), nil); err != nil || asked.UserID != "operator" {
		t.Errorf("the claim is for user %q, %v", asked.UserID, err)
	}
}

func TestMembersOfServerGroupsArePlacedHere(t *testing.T) {
	for _, policy := range []string{"anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"} {
		group := map[string]any{"nova_object.name": "InstanceGroup", "nova_object.namespace": "nova", "nova_object.version": "1.11", "nova_object.data": fields{
			"id": 1, "uuid": "6f0fb0d4-5a52-4c64-9f0c-2d5a9a1b7c33", "name": "g", "policies": []string{policy}, "policy": policy, "members": []string{}, "hosts": []string{},
		}}
		stock := &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`[]`), nil }}
		var asked placing.Request
		_, err := serve(t, topic.Options{Placer: noting{asked: &asked}, Behind: stock}).ask(t, args(t, fields{"instance_group": group}, nil))
		if err != nil || len(stock.specs) > 0 || asked.Group == nil || asked.Group.Policy != policy {
			t.Errorf("%s: passed on %d times, placed as one of %+v: %v", policy, len(stock.specs), asked.Group, err)
		}
	}
}

func TestARequestThatAWeigherCannotWeighIsPassedOn(t *testing.T) {
	metrics := weighers.MetricsWeigher{Ratios: []weighers.Ratio{{Name: "cpu.percent", Value: -1}}}
	for multiplier, passed := range map[float64]int{0: 0, 1: 1} {
		stock := &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`[]`), nil }}
		var asked placing.Request
		o := topic.Options{Placer: noting{asked: &asked}, Behind: stock, Weighers: []weighers.Weighted{{Weigher: metrics, Multiplier: multiplier}}}
		if _, err := serve(t, o).ask(t, args(t, nil, nil)); err != nil || len(stock.specs) != passed {
			t.Errorf("with multiplier %v: passed on %d times, want %d: %v", multiplier, len(stock.specs), passed, err)
		}
	}
}
