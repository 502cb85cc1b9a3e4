package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notify tells the service manager the states, such as daemon.SdNotifyReady or
// "STATUS=draining", in one message (sd_notify(3)). It does nothing where the
// service was not started by systemd with Type=notify.
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

// watchdog tells systemd, twice in each WatchdogSec, that the service lives, until
// ctx ends. It returns at once where the unit has no WatchdogSec.
func watchdog(ctx context.Context, log *slog.Logger) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the watchdog of systemd stays off", "error", err)
	}
	if limit == 0 {
		return
	}
	tick := time.NewTicker(limit / 2)
	defer tick.Stop()
	for {
		if err := notify(daemon.SdNotifyWatchdog); err != nil {
			log.Warn("systemd does not hear that the service lives", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
