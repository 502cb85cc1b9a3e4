// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// manager listens at address in the place of systemd. next returns the next message; hangUp ends it,
// with all that wait until it reads.
func manager(t *testing.T, address string) (next func() string, hangUp func()) {
	t.Helper()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	hangUp = func() { socket.Close() }
	t.Cleanup(hangUp)
	t.Setenv("NOTIFY_SOCKET", address)
	return func() string {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 1024)
		n, err := socket.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		return string(message[:n])
	}, hangUp
}

func TestSystemdHearsTheStatesAtItsSocket(t *testing.T) {
	for name, address := range map[string]string{
		"a path":             filepath.Join(t.TempDir(), "notify"),
		"an abstract socket": fmt.Sprintf("@almanac-test-%d", os.Getpid()),
	} {
		t.Run(name, func(t *testing.T) {
			next, _ := manager(t, address)
			if err := notify(daemon.SdNotifyReady, "STATUS=serving"); err != nil {
				t.Fatal(err)
			}
			if got, want := next(), "READY=1\nSTATUS=serving"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if err := notifyReloading(); err != nil {
				t.Fatal(err)
			}
			if got := next(); !regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9]\d*$`).MatchString(got) {
				t.Errorf("got %q, want RELOADING=1 and the time", got)
			}
		})
	}
}

func TestWithoutSystemdNobodyIsNotified(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := notify(daemon.SdNotifyReady); err != nil {
		t.Error(err)
	}
}

func TestASocketThatIsGoneIsAnErrorThatSaysWhatWasToBeSaid(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	if err := notify(daemon.SdNotifyStopping); err == nil || !strings.Contains(err.Error(), "STOPPING=1") {
		t.Errorf("error %v, want one that names STOPPING=1", err)
	}
}

func TestTheWatchdogIsFedUntilTheEnd(t *testing.T) {
	next, hangUp := manager(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watchdog(ctx, slog.New(slog.DiscardHandler))
	}()
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	stop()
	hangUp() // it may wait for room in the socket
	<-ended
}

func TestTheWatchdogStaysOffWhereSystemdDoesNotAskForIt(t *testing.T) {
	for variable, want := range map[string]string{"": "", "soon": "WATCHDOG_USEC"} {
		t.Setenv("WATCHDOG_USEC", variable)
		var log bytes.Buffer
		watchdog(t.Context(), slog.New(slog.NewTextHandler(&log, nil))) // returns at once
		if got := log.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: the log is %q", variable, got)
		}
	}
}
