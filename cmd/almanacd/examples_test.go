// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/cobra"
)

// passwordInArgument matches a command line with the password of a URL.
var passwordInArgument = regexp.MustCompile(`(?m)^.*\b(?:almanacd|almanac|almanac-power) .*://\S*:\S*@.*$`)

// Every user of a machine sees the arguments of commands, so no example has a password there.
func TestNoExampleHasAPasswordAmongItsArguments(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, line := range passwordInArgument.FindAllString(c.Example, -1) {
			t.Errorf("%s --help: %s", c.CommandPath(), line)
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	look(newCommand(&service{}))
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?ms)^ *```\\w*\n.*?^ *```$").FindAllString(string(text), -1) {
			for _, line := range passwordInArgument.FindAllString(block, -1) {
				t.Errorf("%s: %s", page, line)
			}
		}
	}
}
