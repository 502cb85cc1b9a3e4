// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Completion ends after completionTime without an answer, and offers at most mostCompletions.
const (
	completionTime  = 2 * time.Second
	mostCompletions = 200
)

// completeFlag sets the completion of a flag. A flag that does not exist is a bug in this
// program.
func completeFlag(c *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// oneOf offers the values of a vocabulary.
func oneOf[T ~string](values []T) cobra.CompletionFunc {
	return cobra.FixedCompletions(fault.Texts(values), cobra.ShellCompDirectiveNoFileComp)
}

// completeHosts offers names of hosts.
func (p *process) completeHosts() cobra.CompletionFunc {
	return p.complete(func(ctx context.Context, almanac *client.Client, begun string) ([]cobra.Completion, error) {
		found, err := collect(almanac.Hosts(ctx, client.HostFilter{}), mostCompletions)
		return begin(each(found, func(h v1.Host) string { return h.Name }), begun), err
	})
}

// completeProperties offers names of properties.
func (p *process) completeProperties() cobra.CompletionFunc {
	return p.complete(func(ctx context.Context, almanac *client.Client, begun string) ([]cobra.Completion, error) {
		found, err := almanac.Properties(ctx)
		return begin(each(found.Properties, func(p v1.Property) string { return p.Name }), begun), err
	})
}

// onlyOne offers values for the first argument alone.
func onlyOne(offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(c, args, begun)
	}
}

// complete offers what ask returns. It asks Almanac once and briefly; without an answer it
// offers nothing.
func (p *process) complete(ask func(ctx context.Context, almanac *client.Client, begun string) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		p.pause = func(context.Context, time.Duration) error { return errors.New("completion does not wait") }
		ctx, cancel := context.WithTimeout(c.Context(), completionTime)
		defer cancel()
		var offers []cobra.Completion
		almanac, err := p.connect(ctx)
		if err == nil {
			offers, err = ask(ctx, almanac, begun)
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

func begin(names []string, with string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, with) })
}
