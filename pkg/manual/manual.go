// SPDX-License-Identifier: Apache-2.0

// Package manual writes the manual pages of a program from its commands.
package manual

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Command returns a hidden command that writes one page of the manual for each visible command of
// its program. section is the section of the manual, such as "8". The pages have the time of
// SOURCE_DATE_EPOCH if it is set, so that a build can be repeated.
func Command(program, version, section string) *cobra.Command {
	return &cobra.Command{
		Use:     "manual FOLDER",
		Short:   "Write the manual pages of this program into a folder",
		Example: "  " + program + " manual man" + section,
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			root, folder := c.Root(), args[0]
			root.DisableAutoGenTag = true
			prepare(root)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return fmt.Errorf("write the manual: %w", err)
			}
			header := &doc.GenManHeader{Section: section, Source: "Almanac " + version, Manual: "Almanac"}
			if err := doc.GenManTree(root, header, folder); err != nil {
				return fmt.Errorf("write the manual: %w", err)
			}
			return nil
		},
	}
}

// prepare keeps the lines of the tables in the descriptions of a command and those below it: the
// generator reads descriptions as Markdown and would fill paragraphs with them.
func prepare(c *cobra.Command) {
	c.Long = tablesKept(c.Long)
	for _, sub := range c.Commands() {
		prepare(sub)
	}
}

// tablesKept returns text with its indented lines as code blocks of Markdown.
func tablesKept(text string) string {
	var lines []string
	within := false
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != within {
			lines = append(lines, "")
		}
		if within = indented; indented {
			line = "    " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
