// SPDX-License-Identifier: Apache-2.0

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

// Registration describes Almanac to Keystone.
type Registration struct {
	ServiceType, ServiceName, Description string
	Region                                string
	// URLs has an address per interface: public, internal, admin.
	URLs map[string]string
	// User has Roles in Project. Both are in Domain, an ID.
	User, Password, Project, Domain string
	Roles                           []string
	// ResetPassword sets Password for a user that already exists.
	ResetPassword bool
	// UserOnly leaves the service and its endpoints out, so that clients do not find Almanac yet.
	UserOnly bool
	// DryRun reports the steps without changing anything.
	DryRun bool
	// Report is called for each step.
	Report func(Step)
}

// Outcome is the result of a step.
type Outcome string

// The outcomes. In a dry run they are those of a real run.
const (
	Created Outcome = "created"
	Changed Outcome = "changed"
	Present Outcome = "there already"
	Removed Outcome = "removed"
	Warning Outcome = "warning"
)

// Step is a step of a registration or deregistration.
type Step struct {
	Outcome Outcome
	What    string
}

// Interfaces lists the interfaces of endpoints in the order of their registration.
var Interfaces = []string{"public", "internal", "admin"}

// Check returns an Invalid fault about a field that cannot be registered.
func (r Registration) Check() error {
	for _, name := range Interfaces {
		if !r.UserOnly && !strings.HasSuffix(r.URLs[name], "/v1") {
			return fault.Field(name+"-url", "must end in /v1, such as https://almanac.example.org:1234/v1, and is %q", r.URLs[name])
		}
	}
	if r.User == "" || r.Password == "" {
		return fault.Field("[keystone_authtoken] username", "and password are required: they become those of the service user")
	}
	return nil
}

// rounds is how often Register starts again after a concurrent Register.
const rounds = 5

// Register creates or corrects the service, its endpoints, the project, the user and its roles
// in Keystone, as the admin of c. It leaves alone what is right already. Two concurrent calls
// create one of each.
func Register(ctx context.Context, c Connection, r Registration) error {
	if err := r.Check(); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 6*cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	g, err := c.open(ctx)
	if err != nil {
		return fmt.Errorf("log in to Keystone at %s as %s: %w", c.AuthURL, c.name(), err)
	}
	reg := registrar{Registration: r, client: g.client}
	for round := 1; ; round++ {
		err = reg.run(ctx)
		// 404: a concurrent call deleted our duplicate; 400: it deleted the service of our
		// endpoint; 409: it created the same name first.
		if again := []int{http.StatusConflict, http.StatusNotFound, http.StatusBadRequest}; round == rounds || !slices.Contains(again, openstack.Status(err)) {
			break
		}
	}
	if openstack.Status(err) == http.StatusForbidden {
		return fault.New(fault.Denied, "user %s may not do this in Keystone; log in as an admin: %v", c.name(), err)
	}
	return err
}

// registrar is a Register or Deregister in progress.
type registrar struct {
	Registration
	client *gophercloud.ServiceClient
}

// run registers the service, its endpoints, the project, the user and the roles, except for what exists.
func (r *registrar) run(ctx context.Context) error {
	if !r.UserOnly {
		if err := r.offer(ctx); err != nil {
			return err
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
			return fmt.Errorf("assign user %s the role %s: %w", r.User, role, err)
		}
	}
	return nil
}

// offer registers the service and its endpoints.
func (r *registrar) offer(ctx context.Context) error {
	service, err := r.service(ctx)
	if err != nil {
		return fmt.Errorf("register service %s: %w", r.ServiceName, err)
	}
	for _, name := range Interfaces {
		if err := r.endpoint(ctx, service, name); err != nil {
			return fmt.Errorf("register the %s endpoint: %w", name, err)
		}
	}
	return nil
}

func (r *registrar) report(outcome Outcome, format string, args ...any) {
	r.Report(Step{Outcome: outcome, What: fmt.Sprintf(format, args...)})
}
