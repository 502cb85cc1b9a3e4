// SPDX-License-Identifier: Apache-2.0

// Command almanac is the command line of Almanac: it creates, lists, changes, cancels and
// imports reservations, and shows hosts, their calendar and the state of the service. It uses
// the REST API.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal kills the process
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv, time.Now)
	stop()
	os.Exit(code)
}
