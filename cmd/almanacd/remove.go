// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// removal adds `bootstrap --remove`: it removes the objects of almanacd from the cloud, and then
// those of bootstrap from Keystone.
func (s *service) removal(group *cobra.Command) *cobra.Command {
	var remove, dry, force, providers bool
	var region string
	group.Long = "Registers Almanac in Keystone, or with --remove removes it from the cloud: its aggregates, flavors,\n" +
		"traits and resource classes in Nova and Placement, and its service, endpoints and user in Keystone.\n" +
		"It enables the compute services that Almanac has disabled. It refuses while hosts sleep, because nothing\n" +
		"would wake them. The resource providers of Almanac in Placement stay, empty, unless --providers is set:\n" +
		"after their removal, Nova's builds on their hosts fail until nova-compute is restarted or refreshes its\n" +
		"providers, which may take six minutes. Stop almanacd first. The command acts as the admin of the OS_*\n" +
		"variables, as an openrc file sets them."
	group.Example = "  almanacd bootstrap --remove --dry-run\n  almanacd bootstrap --remove"
	group.Args = cobra.NoArgs
	group.RunE = func(c *cobra.Command, _ []string) error {
		if !remove {
			return c.Help()
		}
		return s.remove(c, app.Removal{Force: force, DryRun: dry, Providers: providers}, region)
	}
	flags := group.Flags()
	flags.BoolVar(&remove, "remove", false, "remove Almanac from the cloud")
	flags.BoolVar(&dry, "dry-run", false, "only show what the command would remove")
	flags.BoolVar(&force, "force", false, "remove it in spite of reservations, whose instances stay where they are, and of sleeping hosts, which stay off")
	flags.BoolVar(&providers, "providers", false, "remove the empty providers too; builds on their hosts fail for some minutes")
	flags.StringVar(&region, "region", cmp.Or(s.environment["OS_REGION_NAME"], "RegionOne"), "region of the endpoints")
	return group
}

// remove takes what Almanac has created out of the cloud and Keystone.
func (s *service) remove(c *cobra.Command, r app.Removal, region string) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	admin, err := adminOf(s.environment)
	if err != nil {
		return err
	}
	r.Admin = admin
	said := 0
	var left app.Left
	r.Report = func(what string) {
		said++
		if r.DryRun {
			what = "would " + what
		}
		fmt.Fprintln(c.ErrOrStderr(), what)
	}
	if cfg.Inventory.Source == config.SourceOpenStack {
		if left, err = app.RemoveFromCloud(c.Context(), cfg, r); err != nil {
			return fmt.Errorf("remove Almanac from the cloud: %w", err)
		}
	}
	g := registration
	g.Region, g.DryRun, g.User = region, r.DryRun, cfg.Keystone.Username
	g.Domain = cmp.Or(cfg.Keystone.UserDomainID, g.Domain)
	g.Report = func(step keystone.Step) { printStep(c.ErrOrStderr(), step, r.DryRun); said++ }
	if err := keystone.Deregister(c.Context(), admin, g); err != nil {
		return fmt.Errorf("remove Almanac from Keystone: %w", err)
	}
	if said == 0 {
		fmt.Fprintln(c.ErrOrStderr(), "there is nothing to remove")
	}
	if left.Providers > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "kept %d empty providers, named %sHOST; --providers removes them\n", left.Providers, fence.ProviderPrefix)
	}
	if len(left.Asleep) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "still switched off by Almanac, or in an unknown state: %s\n", strings.Join(left.Asleep, ", "))
	}
	return nil
}
