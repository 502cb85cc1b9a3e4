// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/policy"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

func has(c config.Config, role string) bool { return slices.Contains(c.Default.Roles, role) }

// Check refuses wrong or inconsistent settings. It makes no connections.
func Check(c config.Config) error {
	for _, role := range c.Default.Roles { // the command line may name others than the file
		if !slices.Contains(config.Roles, role) {
			return fault.Field("[DEFAULT] roles", "%s", fault.Unknown("role", role, config.Roles))
		}
	}
	if len(c.Default.Roles) == 0 {
		return fault.Field("[DEFAULT] roles", "name at least one of %s", strings.Join(config.Roles, ", "))
	}
	if c.Default.TransportURL == "" && !(has(c, config.RoleAPI) && has(c, config.RoleInventory)) {
		return fault.Field("[DEFAULT] transport_url", "is required if the roles api and inventory run in different processes")
	}
	for before, url := range map[string]string{ // what an error, which begins with transport_url, lacks
		"[DEFAULT] ": c.Default.TransportURL, "[nova] ": c.Nova.TransportURL, "[oslo_messaging_notifications] ": c.Notifications.TransportURL,
		"[scheduler] forward_": c.Scheduler.ForwardTransportURL,
	} {
		if url == "" {
			continue
		}
		if _, err := oslo.ParseURL(url); err != nil {
			return fmt.Errorf("%s%w", before, err)
		}
	}
	if onOpenStack(c) {
		if err := checkAccount(c); err != nil {
			return fmt.Errorf("with [inventory] source = openstack: %w", err)
		}
	}
	if err := checkSimulated(c); err != nil {
		return err
	}
	if c.Nova.Notifications && c.Nova.TransportURL == "" && c.Default.TransportURL == "" {
		return fault.Field("[nova] transport_url", "is required to receive Nova's notifications, here or in [DEFAULT]")
	}
	if err := checkOnEnd(c.Reservation.Defaults); err != nil {
		return err
	}
	if err := checkUsage(c); err != nil {
		return err
	}
	if err := c.Tariff.Check(); err != nil {
		return fmt.Errorf("[tariff]: %w", err)
	}
	if _, err := webhook.ParseAllowed(c.Webhooks.Allowed); err != nil {
		return fmt.Errorf("[webhooks] %w", err)
	}
	if err := c.Tracing.Check(); err != nil {
		return fmt.Errorf("[tracing]: %w", err)
	}
	if err := checkScheduler(c); err != nil {
		return err
	}
	if err := checkEnergy(c); err != nil {
		return err
	}
	if err := checkPacking(c); err != nil {
		return err
	}
	if err := checkBestEffort(c); err != nil {
		return err
	}
	if !has(c, config.RoleAPI) {
		return nil
	}
	if err := store.Check(c.Database.Connection); err != nil {
		return fmt.Errorf("[database] %w", err)
	}
	if err := checkCallers(c); err != nil {
		return err
	}
	_, err := policy.Load(PolicyOptions(c))
	return err
}

// Warnings returns what an operator may not expect of valid settings, each as a sentence.
func Warnings(c config.Config) (list []string) {
	if d := c.Reservation.Defaults; has(c, config.RoleAPI) && c.Blazar.Enabled && !slices.Contains(d.OnEndChoices, reservation.OnEndDelete) {
		list = append(list, "[reservation] on_end_choices lacks delete: Blazar's clients, which cannot choose another end, get no lease with a reservation; "+
			"add delete, or set [blazar] enabled = false")
	}
	if warning := needsTariff(c); warning != "" && has(c, config.RoleAPI) {
		list = append(list, warning)
	}
	return append(list, c.Warnings...)
}

// checkOnEnd refuses a default that is not among the choices.
func checkOnEnd(d planning.Defaults) error {
	if slices.Contains(d.OnEndChoices, d.OnEnd) {
		return nil
	}
	return fault.Field("[reservation] on_end", "is %q, which is not among on_end_choices: %s", d.OnEnd, strings.Join(fault.Texts(d.OnEndChoices), ", "))
}

// checkCallers refuses to serve the network without authentication, and incomplete settings for
// Keystone.
func checkCallers(c config.Config) error {
	if c.API.AuthStrategy != "noauth" {
		return checkAccount(c)
	}
	if ip := net.ParseIP(c.API.Host); c.API.Host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fault.New(fault.Invalid,
		"[api] host is %q: with auth_strategy = noauth every caller is an admin, so it must be a loopback address such as 127.0.0.1", c.API.Host)
}

// checkAccount refuses settings with which the service user cannot log in.
func checkAccount(c config.Config) error {
	k := c.Keystone
	if (k.AuthType == "v3applicationcredential") != (k.ApplicationCredentialSecret != "") {
		return fault.Field("[keystone_authtoken] auth_type",
			"must be v3applicationcredential if application_credential_secret is set, and only then")
	}
	if k.SystemScope != "" {
		return fault.Field("[keystone_authtoken] system_scope", "must be empty for almanacd: Nova accepts only tokens of a project")
	}
	return k.Connection.Check()
}
