// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// registration is the registration of Almanac in Keystone.
var registration = keystone.Registration{
	ServiceType: "reservation", ServiceName: "almanac", Description: "Reservations of servers in advance",
	Domain: "default", Roles: []string{"admin", "service"},
}

// newBootstrapCommand returns `bootstrap`. load reads the configuration, which names the
// service user; environment has the admin's OS_* variables.
func newBootstrapCommand(load func() (config.Config, error), environment map[string]string) *cobra.Command {
	group := &cobra.Command{Use: "bootstrap", Short: "Register Almanac in Keystone, or remove it from the cloud"}
	r := registration
	var public, internal, admin string
	register := &cobra.Command{
		Use: "keystone", Args: cobra.NoArgs,
		Short: "Register the service, its endpoints and its user in Keystone; safe to repeat",
		Long: "Registers the service almanac of type reservation, its endpoints, and the service user of\n" +
			"[keystone_authtoken] with its project and roles. Existing correct entries stay as they are.\n\n" +
			"The command acts as the admin of the OS_* variables, as an openrc file sets them.",
		Example: "  almanacd bootstrap keystone --public-url https://almanac.example.org:1234/v1",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := load()
			if err != nil {
				return err
			}
			if public == "" {
				if public, err = ownURL(cfg.API); err != nil {
					return err
				}
			}
			r.URLs = map[string]string{"public": public, "internal": cmp.Or(internal, public), "admin": cmp.Or(admin, internal, public)}
			return register(c, cfg.Keystone.Connection, environment, r)
		},
	}
	flags := register.Flags()
	flags.StringVar(&public, "public-url", "", "address for users, ending in /v1 (default: [api] host and port)")
	flags.StringVar(&internal, "internal-url", "", "address inside the cloud (default: the public address)")
	flags.StringVar(&admin, "admin-url", "", "address for admins (default: the internal address)")
	flags.StringVar(&r.Region, "region", cmp.Or(environment["OS_REGION_NAME"], "RegionOne"), "region of the endpoints")
	flags.BoolVar(&r.UserOnly, "user-only", false, "register the service user alone: clients do not find Almanac yet")
	flags.BoolVar(&r.ResetPassword, "reset-password", false, "set the configured password of a service user that exists already")
	flags.BoolVar(&r.DryRun, "dry-run", false, "only show what the command would do")
	group.AddCommand(register)
	return group
}

// ownURL returns the address at which this machine reaches the API of a configuration.
func ownURL(a config.API) (string, error) {
	if a.Port == 0 {
		return "", fault.Field("public-url", "is required: [api] port is 0, which chooses a new port at each start")
	}
	host := a.Host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(a.Port)) + "/v1", nil
}

func register(c *cobra.Command, service keystone.Connection, environment map[string]string, r keystone.Registration) error {
	admin, err := adminOf(environment)
	if err != nil {
		return err
	}
	r.User, r.Password = service.Username, service.Password
	r.Project, r.Domain = cmp.Or(service.ProjectName, "service"), cmp.Or(service.UserDomainID, r.Domain)
	r.Report = func(s keystone.Step) { printStep(c.ErrOrStderr(), s, r.DryRun) }
	return keystone.Register(c.Context(), admin, r)
}

// printStep prints a step of the registration in Keystone; dry means that it was not made.
func printStep(w io.Writer, s keystone.Step, dry bool) {
	outcome := string(s.Outcome)
	if dry && (s.Outcome == keystone.Created || s.Outcome == keystone.Changed || s.Outcome == keystone.Removed) {
		outcome = "would be " + outcome
	}
	fmt.Fprintf(w, "%s: %s\n", outcome, s.What)
}

// adminOf reads the variables that the openstack client reads.
func adminOf(environment map[string]string) (keystone.Connection, error) {
	c := keystone.Connection{
		AuthURL: environment["OS_AUTH_URL"], Username: environment["OS_USERNAME"], UserID: environment["OS_USER_ID"],
		Password: environment["OS_PASSWORD"], UserDomainID: environment["OS_USER_DOMAIN_ID"],
		UserDomainName: environment["OS_USER_DOMAIN_NAME"],
		ProjectID:      environment["OS_PROJECT_ID"], ProjectName: environment["OS_PROJECT_NAME"],
		ProjectDomainID: environment["OS_PROJECT_DOMAIN_ID"], ProjectDomainName: environment["OS_PROJECT_DOMAIN_NAME"],
		ApplicationCredentialID:     environment["OS_APPLICATION_CREDENTIAL_ID"],
		ApplicationCredentialSecret: environment["OS_APPLICATION_CREDENTIAL_SECRET"],
		CAFile:                      environment["OS_CACERT"],
	}
	if err := c.Check(); err != nil {
		return c, fault.New(fault.Invalid, "log in as an admin first: set OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME, as an openrc file does")
	}
	return c, nil
}
