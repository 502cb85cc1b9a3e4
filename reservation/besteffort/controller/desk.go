package controller

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Submission is what a user asks for.
type Submission struct {
	Name     string
	VMs      int
	Flavor   string // id or name
	Image    string // id or name
	Duration int64
	Parallel bool
	Networks []string // of Request; none is "auto"
	KeyName  string
	UserData string // base64
	Metadata map[string]string
	// Key and BodyHash are those of Request.
	Key, BodyHash string
}

// Caller is who asks. Token is his own; it is neither stored nor logged.
type Caller struct {
	ProjectID, UserID string
	Roles             []string
	Token             string
}

// Catalogue knows what a caller can ask for.
type Catalogue interface {
	// Flavor gives the flavor that the caller may use, with what an instance of it takes. It
	// fails with an Invalid fault on field flavor where there is none.
	Flavor(ctx context.Context, by Caller, named string) (Named, resource.Vector, error)
	// Image gives the image that the caller may use; the fault is on field image.
	Image(ctx context.Context, by Caller, named string) (Named, error)
}

// Truster makes the trusts by which servers are made in the caller's name.
type Truster interface {
	Trusts
	Make(ctx context.Context, by Caller) (trust string, err error)
}

// Query selects requests for a list, by their place in the queue.
type Query struct {
	ProjectID string // empty is every project
	// All gives those that are over too.
	All bool
	// Marker is the id of the last request of the page before.
	Marker string
	Limit  int
}

// Shelf is where requests are stored.
type Shelf interface {
	OpenBestEffort(ctx context.Context) ([]Request, error)
	// AddBestEffort stores a new request, with its place and the user_data (base64) of its
	// servers, which lists do not have, unless its project would have more
	// than most VMs that are not over; 0 is any number. Where the project has used its Key
	// before, it gives the request of that instead.
	AddBestEffort(ctx context.Context, r Request, userData string, most int) (Request, error)
	// BestEffort gives a request, and a NotFound fault where there is none.
	BestEffort(ctx context.Context, id string) (Request, error)
	ListBestEffort(ctx context.Context, q Query) ([]Request, error)
	// BestEffortOfKey gives the request that a project made with an Idempotency-Key.
	BestEffortOfKey(ctx context.Context, project, key string) (Request, bool, error)
	// CancelBestEffort stores that a request was given up. One that is over or was given up
	// stays as it is.
	CancelBestEffort(ctx context.Context, id string, at span.Instant) error
}

// Desk is where users ask for best-effort work.
type Desk struct {
	Shelf     Shelf
	Catalogue Catalogue
	Trusts    Truster
	Ground    Ground
	Planner   Planner
	// Off says why nothing can be submitted; empty where it can.
	Off string
	// MostVMs is how many VMs a project may have that are not over; 0 is any number.
	MostVMs int
	// Changed is told when something was stored.
	Changed func()
	Now     func() span.Instant
	NewID   func() string
	Log     *slog.Logger
	// Planned gives what the controller of this process expects, where it has the lease; nil
	// is none.
	Planned func() (expected map[string]besteffort.Expectation, known bool)

	mu      sync.Mutex
	guess   map[string]besteffort.Expectation // of the plan made here last
	guessed span.Instant
}

const (
	// MostVMsOfOne is how many VMs a request may have.
	MostVMsOfOne = 100
	// LongestDuration is the most that a VM may run, in seconds: 100 years.
	LongestDuration = 100 * 365 * 86400

	longestName     = 255
	longestUserData = 65535 // nova/api/openstack/compute/schemas/servers.py
	mostMetadata    = 100
)

// Submit puts a request into the queue. Its caller's token makes a trust, so that its
// servers can be made in his name when he has gone.
func (d *Desk) Submit(ctx context.Context, by Caller, s Submission) (Request, error) {
	if d.Off != "" {
		return Request{}, fault.New(fault.Conflict, "%s", d.Off)
	}
	if err := s.check(); err != nil {
		return Request{}, err
	}
	if s.Key != "" {
		known, used, err := d.Shelf.BestEffortOfKey(ctx, by.ProjectID, s.Key)
		if err != nil || used {
			return sameBody(known, s, err)
		}
	}
	r := Request{
		ID: d.NewID(), ProjectID: by.ProjectID, UserID: by.UserID, Name: s.Name, Created: d.Now(), Duration: s.Duration,
		Parallel: s.Parallel, Networks: s.Networks, KeyName: s.KeyName, Metadata: s.Metadata,
		Key: s.Key, BodyHash: s.BodyHash,
	}
	if len(r.Networks) == 0 {
		r.Networks = []string{"auto"}
	}
	var err error
	if r.Flavor, r.Shape, err = d.Catalogue.Flavor(ctx, by, s.Flavor); err != nil {
		return Request{}, err
	}
	if r.Image, err = d.Catalogue.Image(ctx, by, s.Image); err != nil {
		return Request{}, err
	}
	for n := range s.VMs {
		r.VMs = append(r.VMs, VM{ID: d.NewID(), Number: n, Phase: besteffort.Waiting, Since: r.Created})
	}
	if r.Trust, err = d.Trusts.Make(ctx, by); err != nil {
		return Request{}, err
	}
	return d.store(ctx, r, s)
}

// store stores the request, and ends its trust where it is not needed after all.
func (d *Desk) store(ctx context.Context, r Request, s Submission) (Request, error) {
	stored, err := d.Shelf.AddBestEffort(ctx, r, s.UserData, d.MostVMs)
	if stored.ID != r.ID && !fault.Is(err, fault.Unavailable) {
		if ended := d.Trusts.End(context.WithoutCancel(ctx), r.Trust); ended != nil {
			d.Log.WarnContext(ctx, "a trust that is not needed was not ended", "trust", r.Trust, "error", ended)
		}
	}
	if err != nil {
		return Request{}, err
	}
	if stored.ID != r.ID {
		return sameBody(stored, s, nil)
	}
	d.Changed()
	return stored, nil
}

// sameBody refuses an Idempotency-Key that came with another body before.
func sameBody(known Request, s Submission, err error) (Request, error) {
	if err == nil && known.BodyHash != s.BodyHash {
		err = fault.New(fault.Unprocessable, "the Idempotency-Key was used for another request; use a new one")
	}
	if err != nil {
		return Request{}, err
	}
	return known, nil
}

var id = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

func (s *Submission) check() error {
	switch {
	case strings.TrimSpace(s.Name) == "":
		return fault.Field("name", "must not be empty")
	case utf8.RuneCountInString(s.Name) > longestName:
		return fault.Field("name", "has more than %d characters", longestName)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fault.Field("name", "has characters that cannot be shown")
	case s.VMs < 1 || s.VMs > MostVMsOfOne:
		return fault.Field("vms", "must be from 1 to %d, not %d", MostVMsOfOne, s.VMs)
	case s.Duration < 1:
		return fault.Field("duration", "must be at least one second: the most that each VM runs")
	case s.Duration > LongestDuration:
		return fault.Field("duration", "must be at most 100 years")
	case s.Flavor == "":
		return fault.Field("flavor", "is needed: the id or the name of a flavor")
	case s.Image == "":
		return fault.Field("image", "is needed: the id or the name of an image")
	case len(s.UserData) > longestUserData:
		return fault.Field("user_data", "has more than %d characters", longestUserData)
	}
	if _, err := base64.StdEncoding.DecodeString(s.UserData); err != nil {
		return fault.Field("user_data", "must be base64")
	}
	if err := s.checkNetworks(); err != nil {
		return err
	}
	return s.checkMetadata()
}

func (s *Submission) checkNetworks() error {
	for _, n := range s.Networks {
		if (n == "none" || n == "auto") && len(s.Networks) == 1 {
			return nil
		}
		if !id.MatchString(n) {
			return fault.Field("networks", `must be "none", "auto" or a list of ids of networks, and has %.60q`, n)
		}
	}
	return nil
}

// MarkPrefix begins the keys of metadata that are Almanac's.
const MarkPrefix = "almanac:"

func (s *Submission) checkMetadata() error {
	if len(s.Metadata) > mostMetadata {
		return fault.Field("metadata", "has more than %d items", mostMetadata)
	}
	for key, value := range s.Metadata {
		switch {
		case strings.HasPrefix(key, MarkPrefix):
			return fault.Field("metadata", "%.60q is a key of Almanac's", key)
		case key == "" || len(key) > 255 || len(value) > 255:
			return fault.Field("metadata", "keys have 1 to 255 characters, and values at most 255")
		}
	}
	return nil
}

// Cancel gives a request up. Its servers are deleted soon. That it was given up before, or
// is over, is no error.
func (d *Desk) Cancel(ctx context.Context, id string) error {
	err := d.Shelf.CancelBestEffort(ctx, id, d.Now())
	if err == nil {
		d.Changed()
	}
	return err
}

// Get gives a request, and a NotFound fault where there is none.
func (d *Desk) Get(ctx context.Context, id string) (Request, error) {
	return d.Shelf.BestEffort(ctx, id)
}

// List gives the requests that the query selects.
func (d *Desk) List(ctx context.Context, q Query) ([]Request, error) {
	return d.Shelf.ListBestEffort(ctx, q)
}

// Expected gives what is expected of the VMs that do not run: by the last plan of the
// controller where it is this process's. Else it is the plan that the controller would
// carry out, made by one caller for all and for some seconds.
func (d *Desk) Expected(ctx context.Context) (map[string]besteffort.Expectation, error) {
	if d.Planned != nil {
		if expected, known := d.Planned(); known {
			return expected, nil
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.Now(); d.guess != nil && now < d.guessed.Add(planAge) {
		return d.guess, nil
	}
	open, err := d.Shelf.OpenBestEffort(ctx)
	if err != nil || len(open) == 0 || d.Ground.Promises == nil {
		return nil, err
	}
	now := d.Now()
	d.guess = expectations(d.Planner.Plan(d.Ground.Situation(open, now)), now)
	d.guessed = d.Now()
	return d.guess, nil
}

// expectations are those of a plan, with those of what it begins now.
func expectations(plan besteffort.Plan, now span.Instant) map[string]besteffort.Expectation {
	expected := map[string]besteffort.Expectation{}
	maps.Copy(expected, plan.Expected)
	for _, act := range plan.Acts { // what begins at the controller's next look is next in the queue
		if act.Action == besteffort.Start || act.Action == besteffort.Resume {
			expected[act.VM] = besteffort.Expectation{Start: now, Node: act.Node, Position: 1}
		}
	}
	return expected
}

// Pinned is where a VM's server may be placed.
type Pinned struct {
	ProjectID, Server, Node string
	Phase                   besteffort.Phase
}

// Pins know where servers may be placed.
type Pins interface {
	// BestEffortPin gives that of a VM; false where there is none.
	BestEffortPin(ctx context.Context, vm string) (Pinned, bool, error)
}

// Pin gives the node on which a server may be placed that is to be of the VM; empty is
// any, for one that has been placed before and moves. refusal says, in a sentence for the
// tenant, why it may not be placed at all.
func Pin(ctx context.Context, pins Pins, vm, project string, instances []string) (node, refusal string, err error) {
	p, known, err := pins.BestEffortPin(ctx, vm)
	switch {
	case err != nil:
		return "", "", err
	case !known || p.ProjectID != project || len(instances) != 1:
		return "", fmt.Sprintf("the project has no best-effort work %.64q", vm), nil
	case p.Phase == besteffort.Starting && (p.Server == "" || p.Server == instances[0]):
		return p.Node, "", nil
	case p.Server != instances[0]:
		return "", fmt.Sprintf("best-effort work %.64q takes no server now", vm), nil
	}
	return "", "", nil
}
