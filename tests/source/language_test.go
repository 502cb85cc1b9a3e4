// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unclear lists forms that are hard to read, each with the form to write instead.
var unclear = []struct {
	form    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b(?i:gives?|gave|given back)\b`), `"returns", "reports", "sets", "allows"`},
	{regexp.MustCompile(`\b(?i:says|say) (that|whether|of|how|what|which|so|if)\b`), `"reports whether", "is", "states"`},
	{regexp.MustCompile(`\b(?i:it is) (looked|tried|asked|waited|told|taken|said|known|seen|read|found|held|made|left)\b`), "the subject and an active verb"},
	{regexp.MustCompile(`\b(?i:anew|whom|whomsoever|thereof|therein|hitherto|likewise)\b`), `"again", "which", or a shorter sentence`},
	{regexp.MustCompile(`\b(?i:but for)\b`), `"except"`},
	{regexp.MustCompile(`\b(?i:of which|of whose|by which|such a one|by now|all the same)\b`), "two sentences"},
	{regexp.MustCompile(`\b(?i:he|him|his|himself)\b`), `"they", or the role`},
	{regexp.MustCompile(`(^|[.;:] )(Who|What) [a-z]+s? [^?]*$`), "a noun as the subject"},
	{regexp.MustCompile(`\b(CVE|OSSN|OSSA)-\d`), "the guard that Almanac has, not the weakness of another program"},
	{regexp.MustCompile(`\b(?i:is|are) to be\b`), `"must be", or the plan that contains it`},
	{regexp.MustCompile(`\b(?i:\w*(organis|recognis|initialis|serialis|prioritis|normalis|optimis|minimis|maximis|synchronis|summaris|authoris|utilis)\w*|behaviours?|colours?|neighbours?|favours?|honours?|cancell(ed|ing)|labelled|modelled|travell\w+|centre|whilst)\b`), "American spelling"},
}

func TestCommentsAndMessagesArePlain(t *testing.T) {
	for _, p := range packages(t) {
		set, files := parsed(t, p)
		for _, file := range files {
			for _, group := range file.Comments {
				complain(t, set.Position(group.Pos()).String(), strings.Join(strings.Fields(group.Text()), " "))
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, " ") {
					complain(t, set.Position(text.Pos()).String(), strings.Trim(text.Value, "\"`"))
				}
				return true
			})
		}
	}
}

func TestNoAliasStandsForTwoPackages(t *testing.T) {
	of := map[string]string{}
	for _, p := range packages(t) {
		_, files := parsed(t, p)
		for _, file := range files {
			for _, imported := range file.Imports {
				if imported.Name == nil || imported.Name.Name == "_" || imported.Name.Name == "." {
					continue
				}
				alias, path := imported.Name.Name, strings.Trim(imported.Path.Value, `"`)
				if other, known := of[alias]; known && other != path {
					t.Errorf("%s: %s stands for %s, elsewhere for %s", p.name(), alias, path, other)
				}
				of[alias] = path
			}
		}
	}
}

// code matches names and messages that a page quotes from programs; the rules do not apply to them.
var code = regexp.MustCompile("(?s)```.*?```|`[^`]*`")

func TestPagesArePlain(t *testing.T) {
	var pages []string
	for _, at := range []string{"*.md", "devstack/*.md", "tests/*.md", "docs/*.md", "docs/adr/*.md", "docs/reproduction/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", at))
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages at %s: %v", at, err)
		}
		pages = append(pages, found...)
	}
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for paragraph := range strings.SplitSeq(code.ReplaceAllString(string(text), "`"), "\n\n") {
			complain(t, name, strings.Join(strings.Fields(paragraph), " "))
		}
	}
}

func complain(t *testing.T, where, text string) {
	for _, rule := range unclear {
		if found := rule.form.FindString(text); found != "" {
			t.Errorf("%s: %q; write %s", where, found, rule.instead)
		}
	}
}
