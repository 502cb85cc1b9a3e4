// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/reservation"
)

func TestTheDefaultEndIsAmongTheChoices(t *testing.T) {
	for name, tc := range map[string]struct {
		onEnd   reservation.OnEnd
		choices []reservation.OnEnd
		wrong   string // a part of the error; empty means none
	}{
		"it is":              {"shelve", []reservation.OnEnd{"delete", "shelve"}, ""},
		"it is not":          {"leave", []reservation.OnEnd{"delete", "shelve"}, "[reservation] on_end: is \"leave\", which is not among on_end_choices: delete, shelve"},
		"there is no choice": {"delete", nil, "[reservation] on_end"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Defaults()
			c.Reservation.Defaults.OnEnd, c.Reservation.Defaults.OnEndChoices = tc.onEnd, tc.choices
			err := app.Check(c)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("got %v, want %q", err, tc.wrong)
			}
		})
	}
}

func TestAWarningSaysThatBlazarsClientsGetNoLease(t *testing.T) {
	for name, tc := range map[string]struct {
		choices []reservation.OnEnd
		enabled bool
		warned  bool
	}{
		"they can":            {[]reservation.OnEnd{"delete", "shelve"}, true, false},
		"they cannot":         {[]reservation.OnEnd{"shelve"}, true, true},
		"they are not served": {[]reservation.OnEnd{"shelve"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Defaults()
			c.Reservation.Defaults.OnEnd, c.Reservation.Defaults.OnEndChoices, c.Blazar.Enabled = "shelve", tc.choices, tc.enabled
			if got := app.Warnings(c); (len(got) > 0) != tc.warned {
				t.Errorf("the warnings are %q", got)
			}
		})
	}
}

// The configuration refuses unknown roles of a file; these are those of --role.
func TestAnUnknownRoleOfTheCommandLineIsRefusedWithTheNearest(t *testing.T) {
	c := config.Defaults()
	c.Default.Roles = []string{"api", "inventry"}
	err := app.Check(c)
	if err == nil || !strings.Contains(err.Error(), `"inventry"`) || !strings.Contains(err.Error(), `"inventory"`) {
		t.Errorf("got %v", err)
	}
}

func TestTheUsageServiceNeedsAnAddressOneTokenAndTimeToAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *config.Config)
		wrong  string // a part of the error; empty means none
	}{
		"it has them":       {func(*config.Config) {}, ""},
		"it is not enabled": {func(c *config.Config) { c.Enforcement.Enabled, c.Enforcement.Service.Base = nil, "" }, ""},
		"no address":        {func(c *config.Config) { c.Enforcement.Service.Base = "" }, "external_service_base_endpoint"},
		"two tokens":        {func(c *config.Config) { c.Enforcement.Service.KeystoneToken, c.Enforcement.Service.Token = true, "x" }, "external_service_token"},
		"no account":        {func(c *config.Config) { c.Enforcement.Service.KeystoneToken = true }, "external_service_keystone_token"},
		"too little time":   {func(c *config.Config) { c.Enforcement.Service.Timeout = c.API.RequestTimeout / 2 }, "external_service_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Defaults()
			c.Enforcement.Enabled, c.Enforcement.Service.Base = []string{"ExternalServiceFilter"}, "http://usage.example.org/"
			tc.change(&c)
			err := app.Check(c)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("got %v, want %q", err, tc.wrong)
			}
		})
	}
}

func TestASimulatedCloudIsInOneProcessAndAlmanacChoosesItsHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *config.Config)
		wrong  string // a part of the error; empty means none
	}{
		"as in the demo":           {func(*config.Config) {}, ""},
		"with best-effort work":    {func(c *config.Config) { c.BestEffort.Enabled = true }, ""},
		"another scheduler":        {func(c *config.Config) { c.Scheduler.Mode = config.ModeOff }, "[scheduler] mode"},
		"two processes":            {func(c *config.Config) { c.Default.Roles, c.Default.TransportURL = []string{"api"}, "rabbit://a:b@mq/" }, "[inventory] source"},
		"Nova's notifications":     {func(c *config.Config) { c.Nova.Notifications, c.Nova.TransportURL = true, "rabbit://a:b@mq/" }, "[nova] notifications"},
		"measured CPU":             {func(c *config.Config) { c.Packing.CPUNeed = rebalance.OfDiagnostics }, "[packing] cpu_need"},
		"an unknown filter":        {func(c *config.Config) { c.Filters.EnabledFilters = []string{"NoFilter"} }, "[filter_scheduler]"},
		"hosts of a file, instead": {func(c *config.Config) { c.Inventory.Source = config.SourceFile }, "[scheduler] mode"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Defaults()
			c.Inventory.Source, c.Scheduler.Mode = config.SourceSimulated, config.ModeReplace
			tc.change(&c)
			err := app.Check(c)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("got %v, want %q", err, tc.wrong)
			}
		})
	}
}
