// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// trials are the wake tests of one host.
type trials struct {
	asked  string
	record energy.Record
}

func (t *trials) Test(_ context.Context, host, by string) error {
	t.asked = host + " for " + by
	if host != t.record.Host {
		return fault.New(fault.NotFound, "there is no host %s", host)
	}
	return nil
}

func (t *trials) HostRecord(_ context.Context, host string) (energy.Record, error) {
	return t.record, nil
}

func TestAWakeTestIsAskedForOverMessages(t *testing.T) {
	bubble(t, func(t *testing.T, broker oslo.Transport) {
		served := &trials{record: energy.Record{
			Host: "h1", Phase: energy.Waking, Since: 100, Reason: "it is tested", Attempt: 1, Quarantine: "did not wake",
			Hold:         &energy.Hold{Action: energy.Test, Reason: "new", By: "root", At: 90, Until: 900},
			LastWakeTest: &energy.WakeTest{At: 80, Woke: true, Seconds: 70, Reason: "woke"},
		}}
		serve(t, broker, power.TrialsTopic, "almanacd", power.TrialsEndpoint(served))
		remote := power.NewTrials(client(t, broker), "almanac")
		if err := remote.Test(t.Context(), "h1", "root"); err != nil || served.asked != "h1 for root" {
			t.Errorf("the test was requested as %q, %v", served.asked, err)
		}
		if err := remote.Test(t.Context(), "h2", "root"); !fault.Is(err, fault.NotFound) {
			t.Errorf("got %v", err)
		}
		got, err := remote.HostRecord(t.Context(), "h1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(served.record, got); diff != "" {
			t.Error(diff)
		}
		served.record = energy.Record{Host: "h1"}
		if got, err = remote.HostRecord(t.Context(), "h1"); err != nil || got.Hold != nil || got.LastWakeTest != nil {
			t.Errorf("got %+v, %v", got, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := power.NewTrials(client(t, broker), "elsewhere").HostRecord(ctx, "h1"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("without a controller: %v", err)
		}
	})
}
