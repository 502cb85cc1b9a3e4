// SPDX-License-Identifier: Apache-2.0

package manual

import (
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
	group.AddCommand(show)
	root.AddCommand(group, &cobra.Command{Use: "secret", Hidden: true, Run: nothing}, Command("tool", "1.2.3", "8"))
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
	if d := cmp.Diff([]string{"tool-thing-show.8", "tool-thing.8", "tool.8"}, names); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	page, err := os.ReadFile(filepath.Join(folder, "tool-thing-show.8"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"Almanac 1.2.3"`, `"Sep 2026"`, "tool-thing-show", "Show a thing", "print more", "tool-thing(8)"} {
		if !strings.Contains(strings.ReplaceAll(string(page), `\-`, "-"), part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
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
