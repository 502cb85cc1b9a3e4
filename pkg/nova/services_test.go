// SPDX-License-Identifier: Apache-2.0

package nova_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestAHostIsClosedForAReasonAndOpenedAgain(t *testing.T) {
	c, ctx := newChanger(t), t.Context()
	before, err := c.client.ServiceOf(ctx, c.host)
	c.must(err)
	if before.Host != c.host || before.Disabled || !before.Up {
		t.Fatalf("the service is %+v", before)
	}
	t.Cleanup(func() { c.must(c.client.EnableService(context.Background(), before.ID)) })
	for _, reason := range []string{"one", "another"} {
		c.must(c.client.DisableService(ctx, before.ID, reason))
		if is, err := c.client.ServiceOf(ctx, c.host); err != nil || !is.Disabled || is.Reason != reason {
			t.Errorf("disabled for %q: got %+v, %v", reason, is, err)
		}
	}
	c.must(c.client.EnableService(ctx, before.ID))
	is, err := c.client.ServiceOf(ctx, c.host)
	before.Reported = is.Reported
	if err != nil || is != before {
		t.Errorf("enabled: got %+v, %v; want %+v", is, err, before)
	}
}

func TestAServiceThatIsNotThereIsNotFound(t *testing.T) {
	c, ctx := newChanger(t), t.Context()
	for _, host := range []string{"", "no-such-host"} {
		if is, err := c.client.ServiceOf(ctx, host); !fault.Is(err, fault.NotFound) {
			t.Errorf("of host %q: %+v, %v", host, is, err)
		}
	}
	id := uuid.NewString()
	if err := c.client.DisableService(ctx, id, "why"); !fault.Is(err, fault.NotFound) {
		t.Errorf("disabled: %v", err)
	}
	if err := c.client.EnableService(ctx, id); !fault.Is(err, fault.NotFound) {
		t.Errorf("enabled: %v", err)
	}
}
