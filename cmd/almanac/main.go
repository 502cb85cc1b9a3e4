// Command almanac is the command line of Almanac: it reserves, lists, changes and
// cancels reservations, looks at hosts and their calendar, and brings in the
// reservations of another system. It speaks to the service over REST.
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
	context.AfterFunc(ctx, stop) // so that a second signal ends what does not end
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv, time.Now)
	stop()
	os.Exit(code)
}
