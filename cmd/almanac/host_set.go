package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// hostEdit has the flags of "host set".
type hostEdit struct {
	values, texts, gone       []string
	reservable, notReservable bool
}

func (p *process) hostSetCommand() *cobra.Command {
	var edit hostEdit
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Set properties of a host, or take it into the pool or out of it",
		Long: `Set properties of a host, or take it into the pool of hosts that can be reserved,
or out of it. The value of --property is a number, true, false or a JSON list of
texts where it reads as one, else a text.`,
		Example: `  almanac host set node-01 --property rack=4 --property nvme=true --property 'networks=["ethernet"]'
  almanac host set node-01 --property-string serial=00417 --unset gpu
  almanac host set node-01 --not-reservable`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: p.completeOneHost,
		RunE: func(c *cobra.Command, args []string) error {
			out, err := newPrinter(p, hostColumns, inShows)
			if err != nil {
				return err
			}
			change, err := edit.change(c)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			changed, err := almanac.ChangeHost(c.Context(), args[0], change)
			if err != nil {
				return err
			}
			return out.one(changed, changed)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&edit.values, "property", nil, "NAME=VALUE to set (repeatable)")
	flags.StringArrayVar(&edit.texts, "property-string", nil, "NAME=TEXT to set, whatever it reads as (repeatable)")
	flags.StringArrayVar(&edit.gone, "unset", nil, "name of a property to remove (repeatable)")
	flags.BoolVar(&edit.reservable, "reservable", false, "take the host into the pool")
	flags.BoolVar(&edit.notReservable, "not-reservable", false, "take the host out of the pool")
	c.MarkFlagsMutuallyExclusive("reservable", "not-reservable")
	c.MarkFlagsOneRequired("property", "property-string", "unset", "reservable", "not-reservable")
	completeFlag(c, "unset", p.completeProperties)
	return c
}

func (e *hostEdit) change(c *cobra.Command) (v1.HostChange, error) {
	change := v1.HostChange{Properties: make(map[string]any), Reservable: given(c, "reservable", &e.reservable)}
	if c.Flags().Changed("not-reservable") {
		change.Reservable = new(!e.notReservable)
	}
	set := func(name string, value any) error {
		if _, twice := change.Properties[name]; twice {
			return fault.New(fault.Invalid, "property %s is given twice", name)
		}
		change.Properties[name] = value
		return nil
	}
	for _, assignments := range []struct {
		flag  string
		list  []string
		value func(string) any
	}{
		{"property", e.values, propertyValue},
		{"property-string", e.texts, func(text string) any { return text }},
	} {
		for _, text := range assignments.list {
			name, value, found := strings.Cut(text, "=")
			if !found || name == "" {
				return change, fault.Field("--"+assignments.flag, "%q is not NAME=VALUE", text)
			}
			if err := set(name, assignments.value(value)); err != nil {
				return change, err
			}
		}
	}
	for _, name := range e.gone {
		if err := set(name, nil); err != nil {
			return change, err
		}
	}
	return change, nil
}

// propertyValue reads numbers, true, false and JSON lists; all else is text.
func propertyValue(text string) any {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	switch value.(type) {
	case bool, float64, []any:
		return value
	default:
		return text
	}
}
