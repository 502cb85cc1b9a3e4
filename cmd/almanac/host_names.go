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

// isPattern reports whether text selects any number of hosts instead of naming one.
func isPattern(text string) bool { return strings.ContainsAny(text, "*?[") }

// hostNames returns the hosts that the arguments select, each once: names, ranges as in a
// hosts file ("node-[01-16]"), and patterns with * and ?.
func hostNames(ctx context.Context, almanac *client.Client, args []string) ([]string, error) {
	var all, names []string
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
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// matching returns the names that match pattern.
func matching(pattern string, names []string) (found []string, err error) {
	if strings.ContainsAny(pattern, `[\`) {
		return nil, fault.New(fault.Invalid, "%q has both a range and * or ?; use two arguments", pattern)
	}
	for _, name := range names {
		if matches, _ := path.Match(pattern, name); matches { // a pattern without [ and \ is always valid
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return nil, fault.New(fault.NotFound, "no host matches %q; 'almanac host list' lists them", pattern)
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
