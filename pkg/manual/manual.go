// SPDX-License-Identifier: Apache-2.0

// Package manual writes the manual pages of a program from its commands.
package manual

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Item is an environment variable or a file, and what it is for.
type Item struct{ Name, Purpose string }

// Program describes a program for its manual. Environment and Files are for the page of the program
// itself.
type Program struct {
	Name, Version      string
	Section            string // of the manual, such as "8"
	Environment, Files []Item
	Formats            []Format
}

// Format is a file that the program reads. Its page is in section 5 of the manual.
type Format struct {
	Name, Purpose string
	Description   string
	Sample        func(io.Writer) error // writes an annotated file
}

// Command returns a hidden command that writes one page of the manual for each visible command of
// its program. The pages have the time of SOURCE_DATE_EPOCH if it is set, so that a build can be
// repeated.
func Command(p Program) *cobra.Command {
	return &cobra.Command{
		Use:     "manual FOLDER",
		Short:   "Write the manual pages of this program into a folder",
		Example: "  " + p.Name + " manual man" + p.Section,
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			root, folder := c.Root(), args[0]
			root.DisableAutoGenTag = true
			prepare(root)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return fmt.Errorf("write the manual: %w", err)
			}
			if err := p.write(root, folder); err != nil {
				return fmt.Errorf("write the manual: %w", err)
			}
			for _, f := range p.Formats {
				if err := p.writeFormat(f, folder); err != nil {
					return fmt.Errorf("write the manual: %w", err)
				}
			}
			return nil
		},
	}
}

// write writes the page of a command and those of the commands below it.
func (p Program) write(c *cobra.Command, folder string) error {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := p.write(sub, folder); err != nil {
			return err
		}
	}
	var page bytes.Buffer
	if err := doc.GenMan(c, &doc.GenManHeader{Section: p.Section, Source: "Almanac " + p.Version, Manual: "Almanac"}, &page); err != nil {
		return err
	}
	text := flagsOf(c, page.String())
	if !c.HasParent() {
		more := list("ENVIRONMENT", p.Environment) + list("FILES", p.Files)
		if at := afterOptions.FindStringIndex(text); at != nil {
			text = text[:at[0]] + more + text[at[0]:]
		} else {
			text += more
		}
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + "." + p.Section
	return os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644)
}

// writeFormat writes the page of a file.
func (p Program) writeFormat(f Format, folder string) error {
	var sample strings.Builder
	if err := f.Sample(&sample); err != nil {
		return err
	}
	text := fmt.Sprintf(".nh\n.TH %q \"5\" \"\" %q \"Almanac\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n%s\n.SH OPTIONS\n.EX\n",
		strings.ToUpper(f.Name), "Almanac "+p.Version, escaped(f.Name), escaped(f.Purpose), escaped(f.Description))
	for line := range strings.Lines(sample.String()) {
		// A line that begins with a point or an apostrophe would be a request.
		text += `\&` + escaped(line)
	}
	text += ".EE\n.SH SEE ALSO\n\\fB" + escaped(p.Name) + "(" + p.Section + ")\\fP\n"
	return os.WriteFile(filepath.Join(folder, f.Name+".5"), []byte(text), 0o644)
}

// afterOptions matches the section that follows the options of a page.
var afterOptions = regexp.MustCompile(`(?m)^\.SH (EXAMPLE|SEE ALSO)$`)

// list returns a section of a page; "" without items.
func list(title string, items []Item) string {
	if len(items) == 0 {
		return ""
	}
	text := ".SH " + title + "\n"
	for _, item := range items {
		text += ".TP\n\\fB" + escaped(item.Name) + "\\fP\n" + escaped(item.Purpose) + "\n"
	}
	return text + "\n"
}

func escaped(text string) string { return strings.NewReplacer(`\`, `\\`, "-", `\-`).Replace(text) }

// flag matches a flag with its default, and the line of its description, as the generator writes them.
var flag = regexp.MustCompile(`(?m)^((?:\\fB-\w\\fP, )?\\fB--([\w-]+)\\fP)\[?=.*\n\t(.*)$`)

// flagsOf writes the flags of a page with the type of their values, and the default behind the description
// unless it is empty, as --help does.
func flagsOf(c *cobra.Command, page string) string {
	return flag.ReplaceAllStringFunc(page, func(text string) string {
		m := flag.FindStringSubmatch(text)
		f := c.Flags().Lookup(m[2])
		if f == nil {
			f = c.InheritedFlags().Lookup(m[2])
		}
		if f == nil {
			return text
		}
		kind, _ := pflag.UnquoteUsage(f)
		if kind != "" && f.NoOptDefVal == "" {
			m[1] += ` \fI` + strings.ToUpper(kind) + `\fP`
		}
		if !slices.Contains([]string{"", "0", "false", "[]"}, f.DefValue) && !strings.Contains(f.Usage, "default") {
			m[3] += " (default " + escaped(f.DefValue) + ")"
		}
		return m[1] + "\n\t" + m[3]
	})
}

// prepare keeps the lines of the tables in the descriptions of a command and those below it: the
// generator reads descriptions as Markdown and would fill paragraphs with them. The synopsis of a
// command that groups others gets COMMAND, or [COMMAND] if it also runs by itself.
func prepare(c *cobra.Command) {
	c.Long = tablesKept(c.Long)
	switch {
	case !c.HasAvailableSubCommands() || strings.Contains(c.Use, " "):
	case c.Runnable():
		c.Use += " [COMMAND]"
	default:
		c.Use += " COMMAND"
	}
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
