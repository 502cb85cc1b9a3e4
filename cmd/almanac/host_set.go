package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// hostEdit has the flags of "host set".
type hostEdit struct {
	values, texts, gone       []string
	reservable, notReservable bool
	power                     string
}

// source is the word for the power that a host has of its source.
const source = "source"

var powerWords = append(each(inventory.Powers, func(p inventory.Power) string { return string(p) }), source)

func (p *process) hostSetCommand() *cobra.Command {
	var edit hostEdit
	c := &cobra.Command{
		Use:   "set NAME...",
		Short: "Set properties and power of hosts, or take them into the pool or out of it",
		Long: `Set properties and power of hosts, take them into the pool of hosts that can be
reserved, or out of it. Hosts are named one by one, in ranges such as
'node-[01-16]', or by patterns with * and ?; what fails for one does not keep the
others from being changed.

The value of --property is a number, true, false or a JSON list of texts where it
reads as one, else a text. --power switches nothing: it says what a host is taken
for, until it is set to source, which is what the source of the hosts says.`,
		Example: `  almanac host set node-01 --property rack=4 --property nvme=true --property 'networks=["ethernet"]'
  almanac host set node-01 --property-string serial=00417 --unset gpu
  almanac host set 'node-[01-08]' --reservable
  almanac host set 'old-*' --not-reservable --power sleeping`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeHosts,
		RunE: func(c *cobra.Command, args []string) error {
			change, err := edit.change(c)
			if err != nil {
				return err
			}
			if len(args) == 1 && !isPattern(args[0]) {
				return p.setHost(c, args[0], change)
			}
			return p.setHosts(c, args, change)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&edit.values, "property", nil, "NAME=VALUE to set (repeatable)")
	flags.StringArrayVar(&edit.texts, "property-string", nil, "NAME=TEXT to set, whatever it reads as (repeatable)")
	flags.StringArrayVar(&edit.gone, "unset", nil, "name of a property to remove (repeatable)")
	flags.BoolVar(&edit.reservable, "reservable", false, "take the hosts into the pool")
	flags.BoolVar(&edit.notReservable, "not-reservable", false, "take the hosts out of the pool")
	flags.StringVar(&edit.power, "power", "", "what the hosts are taken for: on, sleeping, waking, failed, or source")
	c.MarkFlagsMutuallyExclusive("reservable", "not-reservable")
	c.MarkFlagsOneRequired("property", "property-string", "unset", "reservable", "not-reservable", "power")
	completeFlag(c, "unset", p.completeProperties)
	completeFlag(c, "power", oneOf(powerWords))
	return c
}

// setHost changes one host and shows it.
func (p *process) setHost(c *cobra.Command, name string, change v1.HostChange) error {
	out, err := newPrinter(p, hostColumns, inShows)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	changed, err := almanac.ChangeHost(c.Context(), name, change)
	if err != nil {
		return err
	}
	return out.one(changed, changed)
}

// setHosts changes all that args stand for and lists those that it has changed.
func (p *process) setHosts(c *cobra.Command, args []string, change v1.HostChange) error {
	out, err := newPrinter(p, hostColumns, inLists)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	changed, failure := eachHost(p, c, almanac, args, func(ctx context.Context, name string) (v1.Host, error) {
		return almanac.ChangeHost(ctx, name, change)
	})
	if failure != nil && len(changed) == 0 {
		return failure
	}
	return errors.Join(failure, out.list(changed, v1.HostList{Hosts: changed}))
}

func (e *hostEdit) change(c *cobra.Command) (v1.HostChange, error) {
	change := v1.HostChange{Properties: make(map[string]any), Reservable: given(c, "reservable", &e.reservable)}
	if c.Flags().Changed("not-reservable") {
		change.Reservable = new(!e.notReservable)
	}
	if c.Flags().Changed("power") {
		if !slices.Contains(powerWords, e.power) {
			return change, fault.Field("--power", "%s", unknown("power state", e.power, powerWords))
		}
		change.Power = new(v1.Power(e.power))
		if e.power == source {
			*change.Power = ""
		}
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
