// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Server is a server of the cloud, in Nova's statuses and tasks.
type Server struct {
	inventory.Instance
	Image   string // id
	Fault   string // why its status is ERROR
	Updated span.Instant
	// Migration is its last one.
	Migration rebalance.Migration

	request  string        // id of the request for its host
	placed   chan struct{} // closed when a host was found for its boot, or none
	to       string        // the host to which it migrates
	snapshot span.Instant  // when its last image was ordered; 0 means never
	until    time.Time     // the end of its task
	then     func(*Server) // what happens at until; nil means nothing
}

// before reports whether the task of s ends before that of another.
func (s *Server) before(other *Server) bool {
	return s.until.Before(other.until) || s.until.Equal(other.until) && s.ID < other.ID
}

// ServerRequest is a request for a server.
type ServerRequest struct {
	Name              string
	ProjectID, UserID string
	Flavor, Image     string // by id or name
	Metadata          map[string]string
	Hints             map[string][]string
}

// the statuses and tasks of Nova that the cloud knows.
const (
	building, active, shutoff, suspended, offloaded, inError = "BUILD", "ACTIVE", "SHUTOFF", "SUSPENDED", "SHELVED_OFFLOADED", "ERROR"

	scheduling, spawning, deleting, poweringOff, shelving = "scheduling", "spawning", "deleting", "powering-off", "shelving"
	suspending, resuming, migrating, snapshotting         = "suspending", "resuming", "migrating", "image_snapshot"
)

// Create requests a server and returns it before it has a host.
func (c *Cloud) Create(_ context.Context, r ServerRequest) (Server, error) {
	defer c.enter()()
	flavor, err := c.flavorFor(r.ProjectID, r.Flavor)
	if err != nil {
		return Server{}, err
	}
	image, err := c.image(r.Image)
	if err != nil {
		return Server{}, err
	}
	switch {
	case strings.TrimSpace(r.Name) == "" || len(r.Name) > 255:
		return Server{}, fault.Field("name", "must have 1 to 255 characters")
	case len(c.servers) >= mostServers:
		return Server{}, fault.New(fault.Conflict, "the simulated cloud has %d servers and takes no more; delete some", mostServers)
	}
	now := span.At(c.o.Now())
	s := &Server{
		Instance: inventory.Instance{
			ID: c.o.NewID(), Name: r.Name, ProjectID: r.ProjectID, UserID: r.UserID, Status: building, Task: scheduling,
			Created: now, Flavor: flavor, Metadata: maps.Clone(r.Metadata), Hints: maps.Clone(r.Hints),
		},
		Image: image.ID, Updated: now, request: "req-" + c.o.NewID(), placed: make(chan struct{}),
	}
	select {
	case c.waiting <- errand{server: s.ID}:
	default:
		return Server{}, fault.New(fault.Unavailable, "%d servers wait for a host; try again later", mostErrands)
	}
	c.servers[s.ID] = s
	return s.copy(), nil
}

// Placed waits until a host was chosen for a server, or none was found, and returns the server.
func (c *Cloud) Placed(ctx context.Context, id string) (Server, error) {
	s, err := c.Server(ctx, id)
	if err != nil {
		return s, err
	}
	select {
	case <-s.placed:
	case <-ctx.Done():
		return s, ctx.Err()
	}
	return c.Server(ctx, id)
}

// Server returns a server. It fails with a NotFound fault if there is none.
func (c *Cloud) Server(_ context.Context, id string) (Server, error) {
	defer c.enter()()
	s, err := c.server(id)
	if err != nil {
		return Server{}, err
	}
	return s.copy(), nil
}

func (c *Cloud) server(id string) (*Server, error) {
	if s := c.servers[id]; s != nil {
		return s, nil
	}
	return nil, fault.New(fault.NotFound, "there is no server %s", id)
}

// copy returns a copy that shares nothing that changes.
func (s *Server) copy() Server {
	one := *s
	one.Metadata = maps.Clone(s.Metadata)
	return one
}

// Servers returns the servers for which is returns true, sorted by id.
func (c *Cloud) Servers(is func(*Server) bool) []Server {
	defer c.enter()()
	return c.list(is)
}

func (c *Cloud) list(is func(*Server) bool) (all []Server) {
	for _, s := range c.servers {
		if is(s) {
			all = append(all, s.copy())
		}
	}
	slices.SortFunc(all, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Delete deletes a server in the name of a project; empty is the service user. It does nothing if
// the server does not exist or is being deleted.
func (c *Cloud) Delete(_ context.Context, id, project string) error {
	defer c.enter()()
	s := c.servers[id]
	if s == nil || s.Task == deleting {
		return nil
	}
	c.drop(s)
	c.do(s, deleting, c.o.Times.Delete, func(s *Server) {
		c.deleted.add(s.ID, project)
		c.free(s.ID)
		delete(c.servers, s.ID)
	})
	return nil
}

// do begins a task of a server; then ends it.
func (c *Cloud) do(s *Server, task string, takes time.Duration, then func(*Server)) {
	s.Task, s.Updated = task, span.At(c.o.Now())
	job.Poke(c.changed)
	s.until, s.then = c.o.Now().Add(takes), func(s *Server) {
		s.Task = ""
		then(s)
	}
}

// become returns the end of a task after which the server has a status.
func become(status string) func(*Server) { return func(s *Server) { s.Status = status } }

// idle fails with a Conflict fault unless the server has no task and one of the statuses.
func (s *Server) idle(statuses ...string) error {
	if s.Task != "" {
		return fault.New(fault.Conflict, "the cloud is busy with server %s: %s", s.ID, s.Task)
	}
	if !slices.Contains(statuses, s.Status) {
		return fault.New(fault.Conflict, "the cloud does not allow that for a server that is %s", s.Status)
	}
	return nil
}

// free removes the allocations of a consumer.
func (c *Cloud) free(consumer string) { delete(c.placement.Consumers, consumer) }

// SetServerMetadata sets keys of a server's metadata. It fails with a NotFound fault if the server
// does not exist.
func (c *Cloud) SetServerMetadata(_ context.Context, id string, metadata map[string]string) error {
	defer c.enter()()
	s, err := c.server(id)
	if err != nil {
		return err
	}
	if s.Metadata == nil {
		s.Metadata = map[string]string{}
	}
	maps.Copy(s.Metadata, metadata)
	return nil
}

// DeleteServerMetadata deletes a key of a server's metadata; it does nothing if the server does not
// exist.
func (c *Cloud) DeleteServerMetadata(_ context.Context, id, key string) error {
	defer c.enter()()
	if s := c.servers[id]; s != nil {
		delete(s.Metadata, key)
	}
	return nil
}

// flavorFor returns the flavor that a project means by an id or a name.
func (c *Cloud) flavorFor(project, named string) (inventory.Flavor, error) {
	if f, known := c.flavors[named]; known && (f.Public || c.access[f.ID] == project) {
		return f, nil
	}
	for _, id := range slices.Sorted(maps.Keys(c.flavors)) {
		if f := c.flavors[id]; f.Name == named && (f.Public || c.access[id] == project) {
			return f, nil
		}
	}
	return inventory.Flavor{}, fault.Field("flavor", "there is no flavor %.100q that you may use", named)
}

// image returns the image with an id or a name.
func (c *Cloud) image(named string) (Image, error) {
	for _, i := range c.images {
		if i.ID == named || i.Name == named {
			return i, nil
		}
	}
	return Image{}, fault.Field("image", "there is no image %.100q; use the id or name of an image of the simulated cloud", named)
}

// requestFor returns the request for a host that Nova would make for a server.
func (c *Cloud) requestFor(s *Server) placing.Request {
	r := placing.Request{
		ID: s.request, ProjectID: s.ProjectID, UserID: s.UserID, Instances: []string{s.ID}, Hints: cloneHints(s.Hints),
		Preemptible: c.o.Preemptible.Marks(&s.Instance), Resources: amounts(s.Flavor),
		FlavorName: s.Flavor.Name, ExtraSpecs: maps.Clone(s.Flavor.ExtraSpecs), ImageID: s.Image,
	}
	r.Required, r.Forbidden = s.Flavor.Traits()
	return r
}

func cloneHints(hints map[string][]string) map[string][]string {
	own := make(map[string][]string, len(hints))
	for key, values := range hints {
		own[key] = slices.Clone(values)
	}
	return own
}

// amounts returns what a server of a flavor needs, by resource class. Extra specs override the
// fields of the flavor, and 0 removes a class.
func amounts(f inventory.Flavor) map[string]int64 {
	all := map[string]int64{"VCPU": f.Resources.VCPUs, "MEMORY_MB": f.Resources.MemoryMB, "DISK_GB": f.Resources.DiskGB}
	maps.Copy(all, f.Resources.Custom)
	for key, value := range f.ExtraSpecs {
		class, is := strings.CutPrefix(key, "resources:")
		if n, err := strconv.ParseInt(value, 10, 64); is && err == nil {
			all[class] = n
		}
	}
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n <= 0 })
	return all
}
