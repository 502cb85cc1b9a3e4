// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// booking has the flags of "reservation create".
type booking struct {
	request             v1.ReservationRequest // fields that flags set directly
	resources           v1.Resources
	together            togetherFlags
	quantity            int
	start, end, until   moment // until is that of the wait
	duration, beforeEnd period
	notice, hold        period
	properties, key     string
	dryRun, wait        bool
	waitTime            period
}

func (p *process) reservationCreateCommand() *cobra.Command {
	b := &booking{waitTime: 600}
	c := &cobra.Command{
		Use:        "create NAME",
		SuggestFor: []string{"add", "book", "new", "reserve"},
		Short:      "Reserve hosts, or capacity for instances",
		Long: `Reserve hosts, or capacity for instances of one size.

With --duration alone the reservation starts now. --start and --duration together
fix its time. With --start, --end and --duration it lasts that long, and --policy
chooses its start between the two times; without --duration it lasts from --start
to --end.

A refusal explains its reason and suggests what would fit. With --wait-until there
is none for lack of room: the reservation waits, and is booked as soon as there is
room for it between --start and --end. With --duration alone each start until then
will do: if there is room at one of them, it is booked at once, at the first. --wait
is something else: the command waits, until the reservation is active.

Each request carries an
idempotency key, so that a repeated request books once.`,
		Example: `  almanac reservation create training --quantity 2 --duration 2h --start +1d
  almanac reservation create batch --duration 90m --end "$(date -d 'tomorrow 18:00' -Iseconds)" --policy pe-best-fit
  almanac reservation create gpu --duration 3d --properties '["=", "$gpu", "a100"]' --wait
  almanac reservation create maybe --quantity 4 --duration 8h --start +1d --hold 10m
  almanac reservation create soon --quantity 4 --duration 8h --wait-until +2d
  almanac reservation create mpi --quantity 8 --duration 12h --together rack
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
	b.flags(c.Flags())
	c.MarkFlagsMutuallyExclusive("dry-run", "wait")
	c.MarkFlagsMutuallyExclusive("hold", "wait")
	completeTerms(c)
	completeFlag(c, "policy", oneOf(calendar.Policies))
	return c
}

// completeTerms completes the flags of termFlags.
func completeTerms(c *cobra.Command) {
	completeFlag(c, "kind", oneOf(reservation.HostKinds))
	completeFlag(c, "on-end", oneOf(reservation.OnEnds))
	completeFlag(c, "together-rule", oneOf(reservation.TogetherRules))
	completeFlag(c, "affinity", oneOf([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}))
}

func (b *booking) flags(flags *pflag.FlagSet) {
	b.termFlags(flags)
	flags.Var(&b.duration, "duration", "how long; required without --end")
	flags.Var(&b.start, "start", "the earliest start (default now)")
	flags.Var(&b.end, "end", "the latest end")
	flags.StringVar(&b.request.Policy, "policy", "", "how to choose among the possible starts (default first-fit)")
	flags.StringVar(&b.request.Image, "image", "", "image to transfer to the hosts before the start")
	flags.Var(&b.notice, "notice", "let others have room: until so long before its start the reservation may move between --start and --end")
	flags.Var(&b.hold, "hold", "hold it so long: it is canceled then unless 'reservation confirm' has confirmed it")
	flags.Var(&b.until, "wait-until", "if there is no room now, let the reservation wait for it until then")
	flags.BoolVar(&b.wait, "wait", false, "do not return before the reservation is active")
	flags.Var(&b.waitTime, "wait-timeout", "maximum time to wait")
}

// termFlags adds the flags that do not depend on how often the reservation occurs.
func (b *booking) termFlags(flags *pflag.FlagSet) {
	flags.IntVar(&b.quantity, "quantity", 1, "how many hosts or instances")
	flags.StringVar(&b.properties, "properties", "", "filter that hosts must pass: JSON, or @FILE that contains it")
	flags.StringVar(&b.request.Kind, "kind", "", "what to reserve: host or instance (default host)")
	flags.Int64Var(&b.resources.VCPUs, "vcpus", 0, "VCPUs of one instance")
	flags.Int64Var(&b.resources.MemoryMB, "memory-mb", 0, "memory of one instance in MB")
	flags.Int64Var(&b.resources.DiskGB, "disk-gb", 0, "disk of one instance in GB")
	flags.StringVar(&b.request.Affinity, "affinity", "", "placement of the instances on hosts: none, same or different (default none)")
	b.together.add(flags)
	flags.StringVar(&b.request.OnEnd, "on-end", "", "action on the instances at the end: delete, shelve, stop or leave, if the cloud offers it")
	flags.Var(&b.beforeEnd, "before-end", "how long before the end to send a warning; 0 is never")
	flags.BoolVar(&b.dryRun, "dry-run", false, "only show what would be booked")
	flags.StringVar(&b.key, "idempotency-key", "", "key that identifies the request: the same key never books twice (default random)")
}

// body returns the request of the flags.
func (b *booking) body(p *process, c *cobra.Command) (v1.ReservationRequest, error) {
	req, err := b.terms(p, c)
	req.StartTime = b.start.ahead()
	req.EndTime = given(c, "end", &b.end.at)
	req.Duration = given(c, "duration", (*v1.Duration)(&b.duration))
	req.Notice = given(c, "notice", (*v1.Duration)(&b.notice))
	req.Hold = given(c, "hold", (*v1.Duration)(&b.hold))
	req.WaitUntil = given(c, "wait-until", &b.until.at)
	if err == nil && req.Duration == nil && req.EndTime == nil {
		err = fault.New(fault.Invalid, "set --duration, or --end for a reservation until then")
	}
	return req, err
}

// terms returns the request of the flags of termFlags.
func (b *booking) terms(p *process, c *cobra.Command) (v1.ReservationRequest, error) {
	req := b.request
	req.Quantity = &b.quantity
	req.BeforeEnd = given(c, "before-end", (*v1.Duration)(&b.beforeEnd))
	if b.resources.VCPUs != 0 || b.resources.MemoryMB != 0 || b.resources.DiskGB != 0 {
		req.Resources = &b.resources
	}
	req.Together = b.together.asked(c.Flags())
	filter, err := p.filter(b.properties)
	req.HostProperties = filter
	return req, err
}

func (p *process) offer(c *cobra.Command, b *booking) error {
	req, err := b.body(p, c)
	if err != nil {
		return err
	}
	return show(p, c, offerFields, func(ctx context.Context, almanac *client.Client) (offer v1.OfferAnswer, err error) {
		if req.Together, err = identified(ctx, almanac, req.Together); err != nil {
			return offer, err
		}
		if offer.Offer, err = almanac.OfferReservation(ctx, req); err == nil {
			p.inform("dry run: nothing is reserved")
		}
		return offer, err
	})
}

func (p *process) book(c *cobra.Command, b *booking) error {
	req, err := b.body(p, c)
	if err != nil {
		return err
	}
	return show(p, c, reservationFields, func(ctx context.Context, almanac *client.Client) (v1.Reservation, error) {
		var err error
		if req.Together, err = identified(ctx, almanac, req.Together); err != nil {
			return v1.Reservation{}, err
		}
		made, err := almanac.CreateReservation(ctx, req, idempotent(b.key))
		if err != nil {
			return made, err
		}
		if made.PolicyReason != "" {
			p.inform("%s", made.PolicyReason)
		}
		if made.HeldUntil != nil {
			p.inform("the hold ends at %s; 'almanac reservation confirm %s' keeps the reservation", stamp(*made.HeldUntil), made.ID)
		}
		switch {
		case made.Waiting != nil:
			p.inform("there is no room yet: the reservation waits, %s; 'almanac reservation delete %s' takes it back", waitText(made.Waiting), made.ID)
		case made.DelayedByBoot:
			p.inform("the start is delayed until %s: hosts must boot first", stamp(made.Start))
		case req.StartTime == nil && req.EndTime == nil && made.Image != "" && made.Start.After(made.CreatedAt):
			p.inform("the start is delayed until %s: the hosts must receive the image first", stamp(made.Start))
		}
		if b.wait {
			return p.awaitActive(ctx, almanac, made, b.waitTime)
		}
		return made, nil
	})
}

// idempotent returns options with a key, by default a random one.
func idempotent(key string) client.CreateOptions {
	return client.CreateOptions{IdempotencyKey: cmp.Or(key, rand.Text())}
}
