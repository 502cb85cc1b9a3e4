// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func propertyFields(p v1.Property) []field {
	return []field{
		{"Name", p.Name, inLists}, {"Type", p.Type, inLists}, {"Values", sample(p.Values), inLists},
		{"Built In", p.BuiltIn, inLists}, {"Hidden", p.Hidden, inLists},
	}
}

func (p *process) propertiesCommand() *cobra.Command {
	properties := func(c *cobra.Command, _ []string) error {
		return list(p, c, propertyFields, inLists, func(ctx context.Context, almanac *client.Client) ([]v1.Property, v1.Properties, error) {
			found, err := almanac.Properties(ctx)
			return found.Properties, found, err
		})
	}
	c := &cobra.Command{
		Use:   "properties",
		Short: "List the properties that a filter may use, and hide or show them",
		Long: `List the properties that a filter may use, with their types and the values that
hosts have, and hide properties from users or show them.`,
		Example: `  almanac properties
  almanac properties set rack --hidden`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args)
			}
			return properties(c, args)
		},
	}
	c.AddCommand(&cobra.Command{
		Use:     "list",
		Short:   "List the properties that a filter may use",
		Example: "  almanac properties list -f json",
		Args:    cobra.NoArgs,
		RunE:    properties,
	}, p.propertiesSetCommand())
	return c
}

func (p *process) propertiesSetCommand() *cobra.Command {
	var hidden, shown bool
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Hide a property from users, or show it",
		Example: `  almanac properties set rack --hidden
  almanac properties set rack --shown`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: onlyOne(p.completeProperties()),
		RunE: func(c *cobra.Command, args []string) error {
			hidden = hidden || c.Flags().Changed("shown") && !shown
			return show(p, c, propertyFields, func(ctx context.Context, almanac *client.Client) (v1.Property, error) {
				return almanac.ChangeProperty(ctx, args[0], v1.PropertyChange{Hidden: &hidden})
			})
		},
	}
	c.Flags().BoolVar(&hidden, "hidden", false, "only admins may use the property")
	c.Flags().BoolVar(&shown, "shown", false, "all users may use the property")
	c.MarkFlagsMutuallyExclusive("hidden", "shown")
	c.MarkFlagsOneRequired("hidden", "shown")
	return c
}
