package keystone

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Registration is what Keystone should know of Almanac.
type Registration struct {
	ServiceType, ServiceName, Description string
	Region                                string
	// URLs has an address for each interface: public, internal, admin.
	URLs map[string]string
	// User logs in to Project with Roles. User and project are in Domain, an id.
	User, Password, Project, Domain string
	Roles                           []string
	// ResetPassword gives a user who is there already the Password.
	ResetPassword bool
	// DryRun looks only: it says what would be done.
	DryRun bool
	// Report is told each step.
	Report func(Step)
}

// Outcome is what a step came to.
type Outcome string

// The outcomes. In a dry run they say what would come.
const (
	Created Outcome = "created"
	Changed Outcome = "changed"
	Present Outcome = "there already"
	Removed Outcome = "removed"
	Warning Outcome = "warning"
)

// Step is something that was, or would be, done.
type Step struct {
	Outcome Outcome
	What    string
}

// Interfaces are those of an endpoint, in the order in which they are registered.
var Interfaces = []string{"public", "internal", "admin"}

// Check says what cannot be registered.
func (r Registration) Check() error {
	for _, name := range Interfaces {
		if !strings.HasSuffix(r.URLs[name], "/v1") {
			return fault.Field(name+"-url", "must end in /v1, such as https://almanac.example.org:1234/v1, and is %q", r.URLs[name])
		}
	}
	if r.User == "" || r.Password == "" {
		return fault.Field("[keystone_authtoken] username", "and password are needed: they become those of the service user")
	}
	return nil
}

// rounds is how often Register begins again after another did the same meanwhile.
const rounds = 5

// Register brings Keystone to what r says, as the admin of c: the service and its
// endpoints, the project, the roles, the user and what it may do. What is right
// already stays as it is. Two at once end up with one of everything.
func Register(ctx context.Context, c Connection, r Registration) error {
	if err := r.Check(); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 6*cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	client, _, err := c.open(ctx)
	if err != nil {
		return fmt.Errorf("log in to Keystone at %s as %s: %w", c.AuthURL, c.name(), err)
	}
	reg := registrar{Registration: r, client: client}
	for round := 1; ; round++ {
		err = reg.run(ctx)
		// 404: what we made was one too many and another took it away again, which for
		// an endpoint of a service that is gone is a 400; 409: another was first.
		if again := []int{http.StatusConflict, http.StatusNotFound, http.StatusBadRequest}; round == rounds || !slices.Contains(again, openstack.Status(err)) {
			break
		}
	}
	if openstack.Status(err) == http.StatusForbidden {
		return fault.New(fault.Denied, "user %s may not do this in Keystone; log in as an admin: %v", c.name(), err)
	}
	return err
}

// registrar is a Register under way.
type registrar struct {
	Registration
	client *gophercloud.ServiceClient
}

func (r *registrar) run(ctx context.Context) error {
	service, err := r.service(ctx)
	if err != nil {
		return fmt.Errorf("register service %s: %w", r.ServiceName, err)
	}
	for _, name := range Interfaces {
		if err := r.endpoint(ctx, service, name); err != nil {
			return fmt.Errorf("register the %s endpoint: %w", name, err)
		}
	}
	project, err := r.project(ctx)
	if err != nil {
		return fmt.Errorf("register project %s: %w", r.Project, err)
	}
	user, err := r.user(ctx)
	if err != nil {
		return fmt.Errorf("register user %s: %w", r.User, err)
	}
	for _, role := range r.Roles {
		if err := r.grant(ctx, role, user, project); err != nil {
			return fmt.Errorf("give user %s the role %s: %w", r.User, role, err)
		}
	}
	return nil
}

func (r *registrar) report(outcome Outcome, format string, args ...any) {
	r.Report(Step{Outcome: outcome, What: fmt.Sprintf(format, args...)})
}
