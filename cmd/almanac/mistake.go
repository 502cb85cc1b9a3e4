// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// These match the texts of cobra about flags that need or exclude each other.
var (
	oneRequired = regexp.MustCompile(`^at least one of the flags in the group \[(.+)\] is required$`)
	exclusive   = regexp.MustCompile(`are set none of the others can be; \[(.+)\] were all set$`)
)

// mistake describes what is wrong with a command line that cobra did not accept.
func mistake(err error) string {
	flags := func(names string) []string {
		return each(strings.Fields(names), func(name string) string { return "--" + name })
	}
	if m := oneRequired.FindStringSubmatch(err.Error()); m != nil {
		return "set " + strings.Join(flags(m[1]), " or ")
	}
	if m := exclusive.FindStringSubmatch(err.Error()); m != nil {
		return strings.Join(flags(m[1]), " and ") + " exclude each other"
	}
	wrong, isValue := errors.AsType[*pflag.InvalidValueError](err)
	number, isNumber := errors.AsType[*strconv.NumError](err)
	if !isValue || !isNumber {
		return err.Error()
	}
	must := map[string]string{"bool": "true or false"}[wrong.GetFlag().Value.Type()]
	switch {
	case must != "":
	case errors.Is(number, strconv.ErrRange):
		must = "a smaller number"
	default:
		must = "a whole number"
	}
	return fmt.Sprintf("--%s: %q is not %s", wrong.GetFlag().Name, wrong.GetValue(), must)
}

// wrongVerb returns the error for an unknown command before that for its flags, which no command has
// read.
func wrongVerb(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); c.HasAvailableSubCommands() && len(words) > 0 {
		return unknownCommand(c, words)
	}
	return err
}

// unknownCommand returns an error with the commands of a group.
func unknownCommand(c *cobra.Command, args []string) error {
	var known []string
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		known = append(known, sub.Name())
		if len(args) > 0 && slices.Contains(sub.SuggestFor, args[0]) {
			return fault.New(fault.Invalid, "there is no command %q; did you mean %q?", args[0], sub.Name())
		}
	}
	if len(args) == 0 {
		return fault.New(fault.Invalid, "%[1]s needs a command: %[2]s; see '%[1]s --help'", c.CommandPath(), strings.Join(known, ", "))
	}
	return fault.New(fault.Invalid, "%s", unknown("command", args[0], known))
}

// unknown describes a name that is not known: with the nearest one, or with all.
func unknown(what, name string, known []string) string {
	text := fault.Unknown(what, name, known)
	if fault.Nearest(name, known) == "" {
		text += "; there are " + strings.Join(known, ", ")
	}
	return text
}
