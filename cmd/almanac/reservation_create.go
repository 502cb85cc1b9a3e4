package main

import (
	"crypto/rand"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// booking has the flags of "reservation create".
type booking struct {
	request             v1.ReservationRequest // what is sent as it is given
	resources           v1.Resources
	quantity            int
	start, end          moment
	duration, beforeEnd period
	properties, key     string
	dryRun, wait        bool
	waitTime            period
}

func (p *process) reservationCreateCommand() *cobra.Command {
	b := &booking{waitTime: 600}
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Reserve hosts, or room for instances",
		Long: `Reserve hosts, or room for instances of one size.

With --duration alone the reservation starts now. --start and --duration together
fix its time. With --start, --end and --duration it lasts that long somewhere in
between, where --policy puts it; without --duration it takes the whole time.

What is refused says why, and what would do instead. A repeated request books
once: each carries an idempotency key.`,
		Example: `  almanac reservation create training --quantity 2 --duration 2h --start +1d
  almanac reservation create batch --duration 90m --end 2026-12-01T18:00+01:00 --policy pe-best-fit
  almanac reservation create gpu --duration 3d --properties '["=", "$gpu", "a100"]' --wait
  almanac reservation create web --kind instance --quantity 8 --vcpus 2 --memory-mb 4096 --duration 1w --dry-run`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			b.request.Name = args[0]
			if b.dryRun {
				return p.offer(c, b)
			}
			return p.book(c, b)
		},
	}
	b.flags(p, c.Flags())
	c.MarkFlagsMutuallyExclusive("dry-run", "wait")
	completeFlag(c, "kind", oneOf(reservation.Kinds))
	completeFlag(c, "policy", oneOf(calendar.Policies))
	completeFlag(c, "on-end", oneOf(reservation.OnEnds))
	completeFlag(c, "affinity", oneOf([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}))
	return c
}

func (b *booking) flags(p *process, flags *pflag.FlagSet) {
	b.start.clock, b.end.clock = p.now, p.now
	flags.IntVar(&b.quantity, "quantity", 1, "how many hosts or instances")
	flags.Var(&b.duration, "duration", "how long; needed without --end")
	flags.Var(&b.start, "start", "the earliest start (default now)")
	flags.Var(&b.end, "end", "the latest end")
	flags.StringVar(&b.properties, "properties", "", "which hosts will do: a filter in JSON, or @FILE with one")
	flags.StringVar(&b.request.Kind, "kind", "", "what to count: host or instance (default host)")
	flags.Int64Var(&b.resources.VCPUs, "vcpus", 0, "size of one instance")
	flags.Int64Var(&b.resources.MemoryMB, "memory-mb", 0, "size of one instance")
	flags.Int64Var(&b.resources.DiskGB, "disk-gb", 0, "size of one instance")
	flags.StringVar(&b.request.Affinity, "affinity", "", "how instances lie on hosts: none, same or different (default none)")
	flags.StringVar(&b.request.Policy, "policy", "", "how to choose among the starts that would do (default first-fit)")
	flags.StringVar(&b.request.Image, "image", "", "the image that the hosts should have at the start")
	flags.StringVar(&b.request.OnEnd, "on-end", "", "what happens to the instances at the end: delete, shelve, stop or leave, as far as the cloud offers it")
	flags.Var(&b.beforeEnd, "before-end", "how long before the end to warn; 0 is never")
	flags.BoolVar(&b.dryRun, "dry-run", false, "only show what would be reserved")
	flags.BoolVar(&b.wait, "wait", false, "wait until the reservation is active")
	flags.Var(&b.waitTime, "wait-timeout", "how long to wait at most")
	flags.StringVar(&b.key, "idempotency-key", "", "a key of your own: the same key never books twice (default random)")
}

// body gives the request that the flags ask for.
func (b *booking) body(p *process, c *cobra.Command) (v1.ReservationRequest, error) {
	req := b.request
	req.Quantity = &b.quantity
	req.StartTime = b.start.ahead()
	req.EndTime = given(c, "end", &b.end.at)
	req.Duration = given(c, "duration", (*v1.Duration)(&b.duration))
	req.BeforeEnd = given(c, "before-end", (*v1.Duration)(&b.beforeEnd))
	if b.resources.VCPUs != 0 || b.resources.MemoryMB != 0 || b.resources.DiskGB != 0 {
		req.Resources = &b.resources
	}
	filter, err := p.filter(b.properties)
	req.HostProperties = filter
	return req, err
}

func (p *process) offer(c *cobra.Command, b *booking) error {
	out, err := newPrinter(p, offerColumns, inShows)
	if err != nil {
		return err
	}
	req, err := b.body(p, c)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	offer, err := almanac.OfferReservation(c.Context(), req)
	if err != nil {
		return err
	}
	p.inform("dry run: nothing is reserved")
	return out.one(offer, v1.OfferAnswer{Offer: offer})
}

func (p *process) book(c *cobra.Command, b *booking) error {
	out, err := newPrinter(p, reservationColumns, inShows)
	if err != nil {
		return err
	}
	req, err := b.body(p, c)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	key := b.key
	if key == "" {
		key = rand.Text()
	}
	made, err := almanac.CreateReservation(c.Context(), req, client.CreateOptions{IdempotencyKey: key})
	if err != nil {
		return err
	}
	switch {
	case made.DelayedByBoot:
		p.inform("the start is delayed until %s: hosts must boot first", stamp(made.Start))
	case req.StartTime == nil && req.EndTime == nil && made.Image != "" && made.Start.After(made.CreatedAt):
		p.inform("the start is delayed until %s: the image must be on the hosts first", stamp(made.Start))
	}
	if b.wait {
		if made, err = p.await(c.Context(), almanac, made, b.waitTime.time()); err != nil {
			return err
		}
	}
	return out.one(made, made)
}
