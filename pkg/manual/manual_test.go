// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestEachVisibleCommandHasAPage(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	nothing := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Do things", Run: nothing}
	group := &cobra.Command{Use: "thing", Short: "Things"}
	show := &cobra.Command{Use: "show THING", Short: "Show a thing", Run: nothing}
	show.Flags().Bool("long", false, "print more")
	show.Flags().String("kind", "", "only this kind")
	show.Flags().Int("limit", 7, "at most so many")
	group.AddCommand(show)
	root.AddCommand(group, &cobra.Command{Use: "secret", Hidden: true, Run: nothing}, Command(Program{
		Name: "tool", Version: "1.2.3", Section: "8",
		Environment: []Item{{"TOOL_URL", "the address"}}, Files: []Item{{"/etc/tool.conf", "the configuration"}},
		Formats: []Format{{Name: "tool.conf", Purpose: "configuration of tool", Description: "All options.", Sample: func(w io.Writer) error {
			_, err := io.WriteString(w, ".x = 'a\\b'\n")
			return err
		}}},
	}))
	root.CompletionOptions.DisableDefaultCmd = true

	folder := filepath.Join(t.TempDir(), "pages")
	root.SetArgs([]string{"manual", folder})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if d := cmp.Diff([]string{"tool-thing-show.8", "tool-thing.8", "tool.8", "tool.conf.5"}, names); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	for name, parts := range map[string][]string{
		"tool-thing-show.8": {
			`"Almanac 1.2.3"`, `"Sep 2026"`, "tool-thing-show", "Show a thing", "tool-thing(8)",
			"\\fB--long\\fP\n\tprint more", "\\fB--kind\\fP \\fISTRING\\fP\n\tonly this kind\n", "\\fB--limit\\fP \\fIINT\\fP\n\tat most so many (default 7)",
		},
		"tool-thing.8": {"tool thing COMMAND"},
		"tool.8":       {"tool [COMMAND]", ".SH ENVIRONMENT\n.TP\n\\fBTOOL_URL\\fP\nthe address\n", ".SH FILES\n.TP\n\\fB/etc/tool.conf\\fP"},
		"tool.conf.5":  {"tool.conf - configuration of tool", `\&.x = 'a\\b'`, "tool(8)"},
	} {
		page, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(strings.ReplaceAll(string(page), `\-`, "-"), part) {
				t.Errorf("%s lacks %q:\n%s", name, part, page)
			}
		}
	}
}

func TestATableKeepsItsLines(t *testing.T) {
	got := tablesKept("Exit codes:\n  0 done\n  1 failed\nand no others.")
	want := "Exit codes:\n\n      0 done\n      1 failed\n\nand no others."
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
