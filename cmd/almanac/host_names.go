package main

import (
	"cmp"
	"context"
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

// isPattern says that text stands for any number of hosts, not for one by name.
func isPattern(text string) bool { return strings.ContainsAny(text, "*?[") }

// hostNames gives the hosts that the arguments stand for, each once: names, ranges as
// in a hosts file ("node-[01-16]"), and patterns with * and ?.
func hostNames(ctx context.Context, almanac *client.Client, args []string) ([]string, error) {
	var all, names []string
	for _, arg := range args {
		found := []string{arg}
		var err error
		switch {
		case strings.ContainsAny(arg, "*?"):
			if all == nil {
				if all, err = everyHost(ctx, almanac); err != nil {
					return nil, err
				}
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
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func everyHost(ctx context.Context, almanac *client.Client) ([]string, error) {
	size, err := pageSize(0)
	if err != nil {
		return nil, err
	}
	hosts, err := collect(almanac.Hosts(ctx, client.HostFilter{PageSize: size}), 0)
	return each(hosts, func(h v1.Host) string { return h.Name }), err
}

// matching gives those of names that match pattern.
func matching(pattern string, names []string) (found []string, err error) {
	if strings.ContainsAny(pattern, `[\`) {
		return nil, fault.New(fault.Invalid, "%q has both a range and * or ?; give one after the other", pattern)
	}
	for _, name := range names {
		if matches, _ := path.Match(pattern, name); matches { // without [ and \ no pattern is wrong
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return nil, fault.New(fault.NotFound, "no host matches %q; 'almanac host list' lists them", pattern)
	}
	return found, nil
}

// eachHost does something with every host that args stand for, and gives what came of it. It
// tells where that fails, and goes on; then it fails too, without a text.
func eachHost[T any](
	p *process, c *cobra.Command, almanac *client.Client, args []string, do func(ctx context.Context, name string) (T, error),
) (done []T, failure error) {
	names, err := hostNames(c.Context(), almanac, args)
	if err != nil {
		return nil, err
	}
	done = []T{}
	for _, name := range names {
		one, err := do(c.Context(), name)
		if err != nil {
			p.report(c, fmt.Errorf("host %s: %w", name, err))
			failure = cmp.Or(failure, error(&outcome{code: codeOf(err)}))
			continue
		}
		done = append(done, one)
	}
	return done, failure
}
