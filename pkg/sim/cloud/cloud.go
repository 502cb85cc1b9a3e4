// SPDX-License-Identifier: Apache-2.0

// Package cloud simulates a cloud in memory: hosts that are switched, servers that boot, run, move
// and stop in time, flavors, images, and the allocations of Placement. Its types implement the ports
// that the packages for OpenStack implement, so that Almanac decides and acts as it does there. The
// cloud ends with the process.
package cloud

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming/memory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Options describe a Cloud.
type Options struct {
	// Hosts are the machines of the cloud; each reading of the cloud reads them again. Their
	// present use and power do not count.
	Hosts   inventory.Source
	Flavors []inventory.Flavor // that every project may use, besides those that Almanac makes
	Images  []Image
	// Ratio is how many virtual CPUs the cloud allocates for each CPU of a host.
	Ratio float64
	Times Times
	// Rate is how many bytes a second a host receives of an image.
	Rate float64
	// Preemptible decides which servers are preemptible.
	Preemptible inventory.PreemptibleRule
	NewID       func() string // returns a random UUID
	Now         func() time.Time
	Log         *slog.Logger
}

// Times are how long the tasks of servers take.
type Times struct {
	Boot     time.Duration // without the transfer of its image
	Delete   time.Duration
	Stop     time.Duration
	Shelve   time.Duration
	Suspend  time.Duration
	Resume   time.Duration
	Migrate  time.Duration
	Snapshot time.Duration
}

// Image is an image that servers boot from.
type Image struct {
	ID, Name string
	Bytes    int64
}

// Cloud is a simulated cloud. It is safe for concurrent use.
type Cloud struct {
	o       Options
	waiting chan errand   // servers that need a host
	changed chan struct{} // see Changed

	mu         sync.Mutex
	machines   map[string]*machine // by name of the host
	providers  map[string]string   // names of hosts, by the id of their providers and of their child providers
	servers    map[string]*Server
	deleted    tombstones
	images     []Image
	placement  memory.Placement
	aggregates map[string]*inventory.Aggregate // by name
	made       int                             // aggregates that were ever created
	flavors    map[string]inventory.Flavor     // by id
	access     map[string]string               // by id of a flavor that is not public: the project that may use it
	traits     map[string]bool                 // Almanac's that exist
	classes    map[string]bool                 // Almanac's that exist
	transfers  []*transfer                     // under way
	words      []word                          // reports about transfers that nobody has read yet
}

// machine is a host of the cloud.
type machine struct {
	host     inventory.Host
	provider string
	down     bool             // its nova-compute does not run
	closed   bool             // its nova-compute is disabled
	reason   string           // of that
	changed  time.Time        // when down or closed last changed
	traits   map[string]bool  // Almanac's
	rooms    map[string]int64 // by resource class
	images   map[string]bool  // that it has, by id
}

// mostServers is the largest number of servers, mostErrands that of servers which wait for a host,
// and mostImages that of images.
const mostServers, mostErrands, mostImages = 2000, 256, 500

// New returns a cloud without servers.
func New(o Options) *Cloud {
	c := &Cloud{
		o: o, waiting: make(chan errand, mostErrands), changed: make(chan struct{}, 1),
		machines: map[string]*machine{}, providers: map[string]string{}, servers: map[string]*Server{}, deleted: tombstones{by: map[string]string{}},
		aggregates: map[string]*inventory.Aggregate{}, flavors: map[string]inventory.Flavor{}, access: map[string]string{},
		traits: map[string]bool{}, classes: map[string]bool{}, images: slices.Clone(o.Images),
	}
	c.placement = memory.Placement{Consumers: map[string]placing.Claim{}, Strays: map[string]bool{}, Stock: c.stock}
	for _, f := range o.Flavors {
		f.Public = true
		c.flavors[f.ID] = f
	}
	return c
}

// enter locks the cloud and brings it to the present; the result unlocks it.
func (c *Cloud) enter() (leave func()) {
	c.mu.Lock()
	c.advance()
	return c.mu.Unlock
}

// Changed receives a value soon after servers or hosts have changed.
func (c *Cloud) Changed() <-chan struct{} { return c.changed }

// advance ends the tasks and the transfers whose time has come, in the order of their ends.
func (c *Cloud) advance() {
	now := c.o.Now()
	for {
		var next *Server
		for _, s := range c.servers {
			if s.then != nil && !s.until.After(now) && (next == nil || s.before(next)) {
				next = s
			}
		}
		if next == nil {
			break
		}
		then := next.then
		next.then = nil
		next.Updated = span.At(next.until)
		then(next)
		job.Poke(c.changed)
	}
	c.advanceTransfers(now)
}

// Read reads the machines from Options.Hosts.
func (c *Cloud) Read(ctx context.Context) error {
	hosts, err := c.o.Hosts.Hosts(ctx)
	if err != nil {
		return err
	}
	defer c.enter()()
	there := make(map[string]bool, len(hosts))
	for _, h := range hosts {
		there[h.Name] = true
		if m := c.machines[h.Name]; m != nil {
			m.host = h
			continue
		}
		m := &machine{
			host: h, provider: idOf("provider " + h.Name), changed: c.o.Now(),
			traits: map[string]bool{}, rooms: map[string]int64{}, images: map[string]bool{},
		}
		c.machines[h.Name] = m
		c.providers[m.provider], c.providers[m.child()] = h.Name, h.Name
	}
	maps.DeleteFunc(c.machines, func(name string, m *machine) bool {
		if !there[name] {
			delete(c.providers, m.provider)
			delete(c.providers, m.child())
		}
		return !there[name]
	})
	return nil
}

// child returns the id of the provider that has Almanac's resource classes of the host.
func (m *machine) child() string { return idOf("child of " + m.provider) }

// idOf returns the UUID that always belongs to a name.
func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	x := hex.EncodeToString(sum[:16])
	return fmt.Sprintf("%s-%s-4%s-8%s-%s", x[:8], x[8:12], x[13:16], x[17:20], x[20:])
}

// stock returns the inventory that a provider has of a resource class, without its use.
func (c *Cloud) stock(provider, class string) (inventory.Stock, bool) {
	m := c.machines[c.providers[provider]]
	if m == nil {
		return inventory.Stock{}, false
	}
	s, has := c.stocks(m)[class]
	return s, has && s.Provider == provider
}

// stocks returns the inventories of a host, without their use.
func (c *Cloud) stocks(m *machine) map[string]inventory.Stock {
	all := map[string]inventory.Stock{}
	add := func(class string, total int64, ratio float64) {
		if total > 0 {
			all[class] = inventory.Stock{Provider: m.provider, Total: total, Ratio: ratio}
		}
	}
	capacity := m.host.Capacity
	add("VCPU", capacity.VCPUs, c.o.Ratio)
	add("MEMORY_MB", capacity.MemoryMB, 1)
	add("DISK_GB", capacity.DiskGB, 1)
	for class, n := range capacity.Custom {
		add(class, n, 1)
	}
	for class, n := range m.rooms {
		all[class] = inventory.Stock{Provider: m.child(), Total: n, Ratio: 1}
	}
	return all
}

// machineNamed returns a host. It fails with a NotFound fault if there is none.
func (c *Cloud) machineNamed(name string) (*machine, error) {
	if m := c.machines[name]; m != nil {
		return m, nil
	}
	return nil, fault.New(fault.NotFound, "there is no host %s", name)
}

// names returns the names of all hosts, sorted.
func (c *Cloud) names() []string { return slices.Sorted(maps.Keys(c.machines)) }

// Flavors returns all flavors, sorted by name.
func (c *Cloud) Flavors(context.Context) ([]inventory.Flavor, error) {
	defer c.enter()()
	return slices.SortedFunc(maps.Values(c.flavors), func(a, b inventory.Flavor) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// Images returns the images: those of Options, then those that were made of servers.
func (c *Cloud) Images() []Image {
	defer c.enter()()
	return slices.Clone(c.images)
}

// tombstones are the projects in whose names the last servers were deleted, by the id of the server.
type tombstones struct {
	by    map[string]string
	order []string
}

func (t *tombstones) add(id, project string) {
	if t.by[id] = project; len(t.order) == mostServers {
		delete(t.by, t.order[0])
		t.order = t.order[1:]
	}
	t.order = append(t.order, id)
}
