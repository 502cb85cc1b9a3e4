// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// hostEdit has the flags of "host set".
type hostEdit struct {
	values, texts, gone       []string
	reservable, notReservable bool
	power                     string
}

// source is the word for the power state that the inventory source reports.
const source = "source"

var powerWords = append(fault.Texts(inventory.Powers), source)

func (p *process) hostSetCommand() *cobra.Command {
	var edit hostEdit
	c := &cobra.Command{
		Use:        "set NAME...",
		SuggestFor: []string{"unset", "change", "update", "add", "create", "delete", "remove"},
		Short:      "Set the properties and power state of hosts, or add them to the pool or remove them",
		Long: `Set the properties and power state of hosts, and add them to the pool of reservable
hosts or remove them from it. An argument is a name, a list such as
'node-[01-16,18],gpu-01', or a pattern with * and ?. If one host fails, the command
continues with the others.

The value of --property is a number, true, false or a JSON list of strings if it
reads as one, else a string. --power switches nothing: it sets the state that
Almanac assumes, until it is set to source, the state that the inventory source
reports.`,
		Example: `  almanac host set node-01 --property rack=4 --property nvme=true --property 'networks=["ethernet"]'
  almanac host set node-01 --property-string serial=00417 --unset gpu
  almanac host set 'node-[01-08]' --reservable
  almanac host set 'old-*' --not-reservable --power sleeping`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeHosts(),
		RunE: func(c *cobra.Command, args []string) error {
			change, err := edit.change(c)
			if err != nil {
				return err
			}
			if len(args) == 1 && !isPattern(args[0]) {
				return show(p, c, hostFields, func(ctx context.Context, almanac *client.Client) (v1.Host, error) {
					return almanac.ChangeHost(ctx, args[0], change)
				})
			}
			return p.setHosts(c, args, change)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&edit.values, "property", nil, "NAME=VALUE to set (repeatable)")
	flags.StringArrayVar(&edit.texts, "property-string", nil, "NAME=TEXT to set as a string (repeatable)")
	flags.StringArrayVar(&edit.gone, "unset", nil, "name of a property to remove (repeatable)")
	flags.BoolVar(&edit.reservable, "reservable", false, "add the hosts to the pool")
	flags.BoolVar(&edit.notReservable, "not-reservable", false, "remove the hosts from the pool")
	flags.StringVar(&edit.power, "power", "", "power state to assume: on, sleeping, waking, failed, or source")
	c.MarkFlagsMutuallyExclusive("reservable", "not-reservable")
	c.MarkFlagsOneRequired("property", "property-string", "unset", "reservable", "not-reservable", "power")
	completeFlag(c, "unset", p.completeProperties())
	completeFlag(c, "power", oneOf(powerWords))
	return c
}

// setHosts changes all hosts that args select and lists those that it has changed.
func (p *process) setHosts(c *cobra.Command, args []string, change v1.HostChange) error {
	return with(p, c, hostFields, inLists, func(_ context.Context, almanac *client.Client, out printer[v1.Host]) error {
		changed, failure := eachHost(p, c, almanac, args, func(ctx context.Context, name string) (v1.Host, error) {
			return almanac.ChangeHost(ctx, name, change)
		})
		if failure != nil && len(changed) == 0 {
			return failure
		}
		return errors.Join(failure, out.list(changed, v1.HostList{Hosts: changed}))
	})
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
			return fault.New(fault.Invalid, "property %s is set twice", name)
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

// propertyValue reads numbers, true, false and JSON lists; everything else is a string.
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

// isPattern reports whether text selects any number of hosts instead of naming one.
func isPattern(text string) bool { return strings.ContainsAny(text, "*?[],") }

// hostNames returns the hosts that the arguments select, each once. The elements of an argument are
// those of a list of hosts ("node-[01-16],gpu-01"), and patterns with * and ?.
func hostNames(ctx context.Context, almanac *client.Client, args []string) ([]string, error) {
	var all, names []string
	listed := make(map[string]bool)
	for _, arg := range args {
		found := []string{arg}
		var err error
		switch {
		case strings.ContainsAny(arg, "*?"):
			if all == nil {
				hosts, err := collect(almanac.Hosts(ctx, client.HostFilter{PageSize: largestPage}), 0)
				if err != nil {
					return nil, err
				}
				all = each(hosts, func(h v1.Host) string { return h.Name })
			}
			found, err = matching(arg, all)
		case isPattern(arg):
			if found, err = inventory.ExpandNames(arg); err != nil {
				err = fault.New(fault.Invalid, "%v", err)
			}
		}
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !listed[name] {
				listed[name] = true
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// matching returns the names that match a pattern, or one of several that commas separate.
func matching(patterns string, names []string) (found []string, err error) {
	if strings.ContainsAny(patterns, `[\`) {
		return nil, fault.New(fault.Invalid, "%q has both a range and * or ?; use two arguments", patterns)
	}
	for pattern := range strings.SplitSeq(patterns, ",") {
		matched := false
		for _, name := range names {
			if matches, _ := path.Match(strings.TrimSpace(pattern), name); matches { // a pattern without [ and \ is always valid
				found, matched = append(found, name), true
			}
		}
		if !matched {
			return nil, fault.New(fault.NotFound, "no host matches %q; 'almanac host list' lists them", pattern)
		}
	}
	return found, nil
}

// eachHost calls do for every host that args select, as eachOf does.
func eachHost[T any](
	p *process, c *cobra.Command, almanac *client.Client, args []string, do func(ctx context.Context, name string) (T, error),
) (done []T, failure error) {
	names, err := hostNames(c.Context(), almanac, args)
	if err != nil {
		return nil, err
	}
	return eachOf(p, c, names, func(name string) (T, error) {
		one, err := do(c.Context(), name)
		if err != nil {
			err = fmt.Errorf("host %s: %w", name, err)
		}
		return one, err
	})
}

// eachOf calls do for each argument and returns the results. It reports failures and
// continues; then it returns an error without a text, with the exit code of the first.
func eachOf[T any](p *process, c *cobra.Command, args []string, do func(string) (T, error)) (done []T, failure error) {
	done = []T{}
	for _, arg := range args {
		one, err := do(arg)
		if err != nil {
			p.report(c, err)
			failure = cmp.Or(failure, error(&outcome{code: codeOf(err)}))
			continue
		}
		done = append(done, one)
	}
	return done, failure
}
