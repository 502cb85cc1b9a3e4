// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/remote"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// noSettings is a store in which operators have set nothing.
type noSettings struct{}

func (noSettings) Overrides(context.Context) (map[string]inventory.Override, error) { return nil, nil }
func (noSettings) ChangeOverride(context.Context, string, func(map[string]inventory.Override) (inventory.Override, error)) error {
	return nil
}
func (noSettings) Hidden(context.Context) (map[string]bool, error) { return nil, nil }
func (noSettings) SaveHidden(context.Context, string, bool) error  { return nil }

// connect returns an own connection to the broker, as each process has.
func connect(t *testing.T, url string) *amqp.Transport {
	t.Helper()
	where, err := oslo.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(where, amqp.Options{
		Name: t.Name(), NewID: oslotest.NewID, Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return transport
}

func TestAnAPIProcessHasTheHostsOfTheInventoryProcessThroughRabbitMQ(t *testing.T) {
	url := labtest.RabbitMQ(t)
	want := racks(10_000, 32, 1)
	s := share(t, connect(t, url), want)
	process := connect(t, url)
	s.source = remote.NewSource(client(t, process, patience), "almanac")
	serve(t, process, remote.ChangesTopic, s.source.Endpoint())

	keeper, err := inventory.OpenSnapshotCache(t.Context(), s.source, inventory.SnapshotCacheOptions{
		Hosts: noSettings{}, Properties: noSettings{}, Now: func() span.Instant { return 1000 }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := snapshot(keeper); !reflect.DeepEqual(want, got) {
		t.Errorf("%d hosts, want the %d of the service", len(got), len(want))
	}
	for changes, told := int64(1), false; !told; changes++ {
		want = slices.Clone(want)
		want[7].BootSeconds = changes
		s.cloud.set(want, nil)
		s.refresh(t)
		select {
		case <-s.source.Changed():
			told = true
		case <-time.After(patience / 3):
			t.Logf("the notice of change %d was lost, which may happen during a reconnect", changes)
			if changes == 3 {
				t.Fatal("no notice of a change arrives")
			}
		}
	}
	if err := keeper.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := snapshot(keeper); !reflect.DeepEqual(want, got) {
		t.Error("the change did not reach the source")
	}

	s.stop()
	soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := keeper.Refresh(soon); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without the inventory process: %v", err)
	}
	if got := snapshot(keeper); !reflect.DeepEqual(want, got) {
		t.Error("without the inventory process, the last hosts are gone")
	}
}

func snapshot(k *inventory.SnapshotCache) []inventory.Host {
	var hosts []inventory.Host
	for _, h := range k.Snapshot().Hosts() {
		hosts = append(hosts, *h)
	}
	return hosts
}
