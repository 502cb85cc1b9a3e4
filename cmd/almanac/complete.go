package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

// Completion gives up after completionTime, and offers at most mostCompletions.
const (
	completionTime  = 2 * time.Second
	mostCompletions = 200
)

// completeFlag says what offers values for a flag. A flag that does not exist is a
// mistake in this program.
func completeFlag(c *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// oneOf offers the values of a vocabulary.
func oneOf[T ~string](values []T) cobra.CompletionFunc {
	return cobra.FixedCompletions(each(values, func(v T) string { return string(v) }), cobra.ShellCompDirectiveNoFileComp)
}

// completeReservations offers ids and names of reservations.
func (p *process) completeReservations(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.complete(c, func(ctx context.Context, almanac *client.Client) ([]cobra.Completion, error) {
		found, err := collect(almanac.ListReservations(ctx, client.ReservationFilter{}), mostCompletions)
		var offers []cobra.Completion
		for _, r := range found {
			if strings.HasPrefix(r.ID, begun) {
				offers = append(offers, cobra.CompletionWithDesc(r.ID, plain(r.Name)))
			}
			if r.Name != "" && strings.HasPrefix(r.Name, begun) && plain(r.Name) == r.Name {
				offers = append(offers, cobra.CompletionWithDesc(r.Name, r.ID))
			}
		}
		return offers, err
	})
}

// completeOneReservation offers reservations for a command that takes one.
func (p *process) completeOneReservation(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeReservations(c, args, begun)
}

// completeHosts offers names of hosts.
func (p *process) completeHosts(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.complete(c, func(ctx context.Context, almanac *client.Client) ([]cobra.Completion, error) {
		found, err := collect(almanac.Hosts(ctx, client.HostFilter{}), mostCompletions)
		return begin(each(found, func(h v1.Host) string { return h.Name }), begun), err
	})
}

// completeOneHost offers hosts for a command that takes one.
func (p *process) completeOneHost(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeHosts(c, args, begun)
}

// completeProperties offers names of properties.
func (p *process) completeProperties(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.complete(c, func(ctx context.Context, almanac *client.Client) ([]cobra.Completion, error) {
		found, err := almanac.Properties(ctx)
		return begin(each(found.Properties, func(p v1.Property) string { return p.Name }), begun), err
	})
}

// complete asks Almanac once and briefly; without an answer it offers nothing.
func (p *process) complete(c *cobra.Command, ask func(context.Context, *client.Client) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	p.pause = func(context.Context, time.Duration) error { return errors.New("completion does not wait") }
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	almanac, err := p.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offers, err := ask(ctx, almanac)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

func begin(names []string, with string) []string {
	var offers []string
	for _, name := range names {
		if strings.HasPrefix(name, with) {
			offers = append(offers, name)
		}
	}
	return offers
}
