// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/remote"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/tests/oslotest"
	"github.com/almanac-cloud/almanac/tests/oslotest/memory"
)

// patience bounds every wait for a condition, and every call.
const patience = 2 * time.Minute

// wire is a transport that a test watches and disturbs.
type wire struct {
	oslo.Transport
	mu      sync.Mutex
	largest int                        // the size of a message in bytes
	before  func(m oslo.Message) error // called before each Publish
}

func (w *wire) Publish(ctx context.Context, m oslo.Message) error {
	w.mu.Lock()
	w.largest = max(w.largest, len(m.Body))
	before := w.before
	w.mu.Unlock()
	if before != nil {
		if err := before(m); err != nil {
			return err
		}
	}
	return w.Transport.Publish(ctx, m)
}

// largestIn returns the size of the largest message that is sent while do runs.
func (w *wire) largestIn(do func()) int {
	w.mu.Lock()
	w.largest = 0
	w.mu.Unlock()
	do()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.largest
}

func (w *wire) disturb(before func(m oslo.Message) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = before
}

// inProcess returns a wire inside the test process.
func inProcess(t testing.TB) *wire {
	broker := memory.New()
	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Errorf("close the broker: %v", err)
		}
	})
	return &wire{Transport: broker}
}

func client(t testing.TB, transport oslo.Transport, timeout time.Duration) *oslo.Client {
	c := oslo.NewClient(transport, oslo.ClientOptions{Timeout: timeout, NewID: oslotest.NewID, Now: time.Now})
	t.Cleanup(c.Close)
	return c
}

// serve serves an endpoint until stop is called or the test ends.
func serve(t testing.TB, transport oslo.Transport, topic string, endpoint oslo.Endpoint) (stop func()) {
	t.Helper()
	server := oslo.NewServer(transport, oslo.ServerOptions{
		Exchange: "almanac", Topic: topic, Name: oslotest.NewID(), Endpoints: []oslo.Endpoint{endpoint},
		NewID: oslotest.NewID, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(ctx); err != nil {
			t.Errorf("serve %s: %v", topic, err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	select {
	case <-server.Ready():
	case <-time.After(patience):
		t.Fatalf("the server of %s is not ready", topic)
	}
	return stop
}

// cloud is a Source whose hosts a test sets.
type cloud struct {
	mu    sync.Mutex
	hosts []inventory.Host
	err   error
	time  time.Duration
}

func (c *cloud) Hosts(context.Context) ([]inventory.Host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts, c.err
}

func (c *cloud) set(hosts []inventory.Host, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts, c.err = hosts, err
}

func (c *cloud) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *cloud) wait(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time += d
}

// shared is a running service for a cloud, and a source that reads from it.
type shared struct {
	cloud   *cloud
	service *remote.Service
	source  *remote.Source
	stop    func() // stops the service
}

func share(t testing.TB, transport oslo.Transport, hosts []inventory.Host) shared {
	t.Helper()
	c := &cloud{hosts: hosts}
	s := shared{
		cloud:   c,
		service: remote.NewService(c, client(t, transport, patience), "almanac", c.elapsed),
		source:  remote.NewSource(client(t, transport, patience), "almanac"),
	}
	s.stop = serve(t, transport, remote.Topic, s.service.Endpoint())
	if len(hosts) > 0 {
		s.refresh(t)
	}
	return s
}

func (s shared) refresh(t testing.TB) {
	t.Helper()
	if err := s.service.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s shared) hosts(t testing.TB) []inventory.Host {
	t.Helper()
	hosts, err := s.source.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

// racks returns n hosts as large clouds describe them. Each has a property with noise
// characters, which hardly compress; another seed makes other characters.
func racks(n, noise int, seed byte) []inventory.Host {
	chance := rand.NewChaCha8([32]byte{seed})
	hosts := make([]inventory.Host, n)
	for i := range hosts {
		bytes := make([]byte, noise*3/4)
		_, _ = chance.Read(bytes)
		hosts[i] = inventory.Host{
			Name:       fmt.Sprintf("node-%05d.rack-%02d.cloud.example.org", i, i/40),
			Capacity:   resource.Vector{VCPUs: 128, MemoryMB: 1 << 20, DiskGB: 4000, Custom: map[string]int64{"CUSTOM_FPGA": int64(i % 3)}},
			Used:       resource.Vector{VCPUs: int64(i % 128), MemoryMB: int64(i * 37 % (1 << 20))},
			Zone:       fmt.Sprintf("zone-%d", i%4),
			Aggregates: []string{"general", fmt.Sprintf("rack-%02d", i/40)},
			Traits:     strings.Fields("COMPUTE_NODE COMPUTE_TRUSTED_CERTS HW_CPU_X86_AVX HW_CPU_X86_AVX2 HW_CPU_X86_SSE42 HW_CPU_X86_VMX"),
			Properties: map[string]inventory.Value{
				"rack": inventory.NumberValue(float64(i / 40)), "gpu": inventory.StringValue("a100"),
				"serial": inventory.StringValue(base64.StdEncoding.EncodeToString(bytes)), "ssd": inventory.BoolValue(i%2 == 0),
				"disks": inventory.ListValue([]string{"nvme0", "nvme1"}),
			},
			Reservable: true, InstanceCount: i % 20, Power: inventory.PowerOn, BootSeconds: 240, FlopsPerWatt: 1e9 + float64(i),
		}
	}
	return hosts
}

// occupied returns the hosts with n instances on each, of many projects and few flavors.
func occupied(hosts []inventory.Host, n int) []inventory.Host {
	chance := rand.New(rand.NewPCG(1, 1))
	id := func() string {
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", chance.Uint32(), chance.IntN(1<<16), chance.IntN(1<<12), chance.IntN(1<<12), chance.Int64N(1<<48))
	}
	projects := make([]string, 100)
	for i := range projects {
		projects[i] = strings.ReplaceAll(id(), "-", "")
	}
	for i := range hosts {
		hosts[i].InstanceCount = n
		hosts[i].Provider = id()
		for j := range n {
			project, size := projects[chance.IntN(len(projects))], int64(1)<<chance.IntN(4)
			created := span.Instant(1_790_000_000 + chance.Int64N(10_000_000))
			hosts[i].Instances = append(hosts[i].Instances, inventory.Instance{
				ID: id(), Name: fmt.Sprintf("web-%d-%d", i, j), ProjectID: project, UserID: project, Host: hosts[i].Name,
				Status: "ACTIVE", Created: created, Launched: created + 7,
				Flavor: inventory.Flavor{
					Name: fmt.Sprintf("m1.%d", size), Resources: resource.Vector{VCPUs: size, MemoryMB: 2048 * size, DiskGB: 20},
					ExtraSpecs: map[string]string{"hw:cpu_policy": "shared"},
				},
				Metadata: map[string]string{"role": "web"},
			})
		}
	}
	return hosts
}
