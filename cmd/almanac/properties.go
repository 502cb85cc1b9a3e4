package main

import (
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

var propertyColumns = []column[v1.Property]{
	{"Name", func(p v1.Property) any { return p.Name }, inLists},
	{"Type", func(p v1.Property) any { return p.Type }, inLists},
	{"Values", func(p v1.Property) any { return sample(p.Values) }, inLists},
	{"Built In", func(p v1.Property) any { return p.BuiltIn }, inLists},
	{"Hidden", func(p v1.Property) any { return p.Hidden }, inLists},
}

func (p *process) propertiesCommand() *cobra.Command {
	list := p.propertiesListCommand()
	c := &cobra.Command{
		Use:   "properties",
		Short: "Show what hosts can be asked for, and hide it or show it to users",
		Long: `Show what hosts can be asked for: the properties that a filter may use, with their
types and the values that hosts have.`,
		Example: `  almanac properties
  almanac properties set rack --hidden`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args)
			}
			return list.RunE(c, args)
		},
	}
	c.AddCommand(list, p.propertiesSetCommand())
	return c
}

func (p *process) propertiesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the properties that a filter may use",
		Example: "  almanac properties list -f json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, propertyColumns, inLists)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.Properties(c.Context())
			if err != nil {
				return err
			}
			return out.list(found.Properties, found)
		},
	}
}

func (p *process) propertiesSetCommand() *cobra.Command {
	var hidden, shown bool
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Hide a property from users, or show it",
		Example: `  almanac properties set rack --hidden
  almanac properties set rack --shown`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: p.completeProperties,
		RunE: func(c *cobra.Command, args []string) error {
			out, err := newPrinter(p, propertyColumns, inShows)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			hidden = hidden || c.Flags().Changed("shown") && !shown
			changed, err := almanac.ChangeProperty(c.Context(), args[0], v1.PropertyChange{Hidden: &hidden})
			if err != nil {
				return err
			}
			return out.one(changed, changed)
		},
	}
	c.Flags().BoolVar(&hidden, "hidden", false, "only admins may use it")
	c.Flags().BoolVar(&shown, "shown", false, "everyone may use it")
	c.MarkFlagsMutuallyExclusive("hidden", "shown")
	c.MarkFlagsOneRequired("hidden", "shown")
	return c
}
