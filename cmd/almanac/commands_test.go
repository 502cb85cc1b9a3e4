// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// eachCommand calls do with each command that does something.
func eachCommand(do func(c *cobra.Command)) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() {
			do(c)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&process{now: time.Now}).rootCommand())
}

// A command without Args takes any words, and ignores them.
func TestEachCommandKnowsItsArguments(t *testing.T) {
	eachCommand(func(c *cobra.Command) {
		if c.Args == nil {
			t.Errorf("%s takes any arguments", c.CommandPath())
		}
	})
}

// withoutCompletion names the commands whose arguments almanac does not complete, and why.
var withoutCompletion = map[string]string{
	"almanac manual":             "a folder: the shell completes it",
	"almanac reservation import": "a file: the shell completes it",
}

func TestEachCommandCompletesItsArgumentsOrHasAReason(t *testing.T) {
	reasons := maps.Clone(withoutCompletion)
	eachCommand(func(c *cobra.Command) {
		_, arguments, _ := strings.Cut(c.Use, " ")
		completes := c.ValidArgsFunction != nil
		if takes := arguments != "" && !strings.HasPrefix(arguments, "-"); takes && completes == (reasons[c.CommandPath()] != "") {
			t.Errorf("%s completes its arguments: %v; either it does, or withoutCompletion states why not", c.CommandPath(), completes)
		}
		delete(reasons, c.CommandPath())
	})
	for name := range reasons {
		t.Errorf("withoutCompletion names %s, which does not exist", name)
	}
}

// reads matches the commands that change nothing in the service.
var reads = regexp.MustCompile(` (list|show|status|plan|audit|explain|backtest|follow|cost|feed|usage|limits|readiness|version|availability|offers|calendar|properties|manual)$| (whatif|simulate) `)

// withoutDryRun names the commands that change something and have no --dry-run, and why.
var withoutDryRun = map[string]string{
	"almanac besteffort cancel":    "it takes away what its arguments name, as its owner wants",
	"almanac besteffort submit":    "it takes nothing away, and can be canceled",
	"almanac demo server create":   "the cloud is simulated",
	"almanac demo server delete":   "the cloud is simulated",
	"almanac energy approve":       "it carries out a plan that was shown",
	"almanac energy host on":       "it takes nothing away",
	"almanac energy host release":  "energy plan shows what follows",
	"almanac energy reset-breaker": "it sets a setting; energy plan shows what follows",
	"almanac energy resume":        "it sets a setting; energy plan shows what follows",
	"almanac energy stop":          "it keeps hosts as they are",
	"almanac host set":             "it can be set back",
	"almanac pack stop":            "it keeps instances where they are",
	"almanac properties set":       "it can be set back",
	"almanac webhook create":       "it takes nothing away, and can be deleted",
	"almanac webhook delete":       "it takes away what its argument names, as its owner wants",
}

func TestEachCommandThatChangesSomethingHasADryRunOrAReason(t *testing.T) {
	reasons := maps.Clone(withoutDryRun)
	eachCommand(func(c *cobra.Command) {
		name := c.CommandPath()
		if dry := c.Flags().Lookup("dry-run") != nil; !reads.MatchString(name) && dry == (reasons[name] != "") {
			t.Errorf("%s has --dry-run: %v; either it has, or withoutDryRun states why not", name, dry)
		}
		delete(reasons, name)
	})
	for name := range reasons {
		t.Errorf("withoutDryRun names %s, which does not exist", name)
	}
}

func TestEachFlagHasATextAndDoesNotEndWithAPeriod(t *testing.T) {
	eachCommand(func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: %q", c.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

func TestEachCommandIsOnAPage(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	var text strings.Builder
	for _, page := range append(pages, "../../README.md") {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(raw)
	}
	eachCommand(func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "almanac ")
		named := regexp.MustCompile("(almanac |`)" + regexp.QuoteMeta(name) + `\b`).MatchString(text.String())
		if packaging := name == "manual"; named == packaging { // packages have what it writes
			t.Errorf("a page names %q: %v", name, named)
		}
	})
}
