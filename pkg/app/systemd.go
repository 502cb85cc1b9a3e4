// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notify sends states, such as daemon.SdNotifyReady or "STATUS=draining", to the service manager
// in one message (sd_notify(3)). It does nothing if systemd did not start the service with
// Type=notify.
func notify(states ...string) error {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		return fmt.Errorf("notify systemd of %s: %w", strings.Join(states, ", "), err)
	}
	return nil
}

// notifyReloading announces that a reload begins; daemon.SdNotifyReady ends it.
func notifyReloading() error {
	return notify(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

// watchdog sends a sign of life to systemd, twice per WatchdogSec, until ctx ends. It returns at
// once if the unit has no WatchdogSec.
func watchdog(ctx context.Context, log *slog.Logger) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("not using systemd's watchdog", "error", err)
	}
	if limit == 0 {
		return
	}
	tick := time.NewTicker(limit / 2)
	defer tick.Stop()
	for {
		if err := notify(daemon.SdNotifyWatchdog); err != nil {
			log.Warn("could not notify systemd's watchdog", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
