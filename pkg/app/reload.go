// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// Reload applies the settings that may change while the service runs, except for the log: limits,
// defaults and the policy files. After an error all remain as they were.
func (a *App) Reload(c config.Config) error {
	if err := notifyReloading(); err != nil {
		a.log.Warn("could not notify the service manager", "error", err)
	}
	defer a.tellSystemd(daemon.SdNotifyReady)
	if a.bookings == nil {
		return nil
	}
	if err := a.rules.load(c); err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	a.bookings.Configure(c.Limits, c.Reservation.Defaults)
	return nil
}
