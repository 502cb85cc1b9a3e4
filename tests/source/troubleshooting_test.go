// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// quoted matches what a page shows as code.
var quoted = regexp.MustCompile("`([^`]+)`")

// rowsUnder returns the first cells of all tables of the page on troubleshooting whose first column has this head.
func rowsUnder(t *testing.T, head string) (cells []string) {
	t.Helper()
	within := false
	for line := range strings.Lines(repository.Read(t, "../../docs/troubleshooting.md")) {
		if !strings.HasPrefix(line, "|") {
			within = false
			continue
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		switch {
		case cell == head:
			within = true
		case within && !strings.HasPrefix(line, "|---"):
			cells = append(cells, cell)
		}
	}
	if len(cells) == 0 {
		t.Fatalf("the page on troubleshooting has no table of a %s", head)
	}
	return cells
}

// inCode returns what the page on troubleshooting shows as code in the first cells under a head.
func inCode(t *testing.T, head string) (texts []string) {
	t.Helper()
	for _, cell := range rowsUnder(t, head) {
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			texts = append(texts, m[1])
		}
	}
	return texts
}

var (
	formatVerb  = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)
	manyVarying = regexp.MustCompile(`(?:…\s*)*…`)
)

// sentence returns the text of an expression, with … for all that varies; "" if the expression has no literal.
func sentence(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return formatVerb.ReplaceAllString(text, "…")
		}
	case *ast.ParenExpr:
		return sentence(e.X)
	case *ast.BinaryExpr:
		left, right := sentence(e.X), sentence(e.Y)
		if e.Op != token.ADD || left == "" && right == "" {
			return ""
		}
		return manyVarying.ReplaceAllString(orVarying(left)+orVarying(right), "…")
	}
	return ""
}

func orVarying(text string) string {
	if text == "" {
		return "…"
	}
	return text
}

// utterance is a text of the code, with the call to which it is an argument.
type utterance struct {
	text, call, at string
	pkg            string
}

// utterances returns the texts of the packages that operators and tenants run: all but the simulations and the tests.
func utterances(t *testing.T) (all []utterance) {
	t.Helper()
	for _, p := range packages(t) {
		if name := p.name(); strings.HasPrefix(name, "tests") || strings.HasPrefix(name, "pkg/sim") {
			continue
		}
		set, files := parsed(t, p)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				e, is := n.(ast.Expr)
				if call, isCall := n.(*ast.CallExpr); isCall {
					name := ""
					if method, isMethod := call.Fun.(*ast.SelectorExpr); isMethod && fmt.Sprint(method.X) != "http" {
						name = method.Sel.Name
					}
					for _, argument := range call.Args {
						if text := sentence(argument); text != "" {
							all = append(all, utterance{text, name, set.Position(argument.Pos()).String(), p.name()})
						}
					}
				} else if text := ""; is {
					if text = sentence(e); text != "" {
						all = append(all, utterance{text, "", set.Position(n.Pos()).String(), p.name()})
					}
				}
				return true
			})
		}
	}
	return all
}

func TestEachMessageOfThePageOnTroubleshootingIsInTheCode(t *testing.T) {
	all := utterances(t)
	for _, message := range inCode(t, "message") {
		if !slices.ContainsFunc(all, func(s utterance) bool { return strings.Contains(s.text, message) }) {
			t.Errorf("nothing writes %q", message)
		}
	}
}

func TestThePageOnTroubleshootingHasEachWarningAndErrorOfTheLog(t *testing.T) {
	messages := inCode(t, "message")
	for _, s := range utterances(t) {
		if slices.Contains([]string{"Warn", "WarnContext", "Error", "ErrorContext"}, s.call) && strings.Contains(s.text, " ") && !slices.Contains(messages, s.text) {
			t.Errorf("%s: the page on troubleshooting lacks %q", s.at, s.text)
		}
	}
}

func TestThePageOnTroubleshootingHasWhatAStartOrAnEndWaitsFor(t *testing.T) {
	messages := inCode(t, "message")
	waits := regexp.MustCompile(`the (start|end) waits`)
	for _, s := range utterances(t) {
		if s.pkg == "reservation/upkeep" && waits.MatchString(s.text) && !slices.Contains(messages, s.text) {
			t.Errorf("%s: the page on troubleshooting lacks %q", s.at, s.text)
		}
	}
}

func TestThePageOnTroubleshootingHasEachFindingAndEachConstraint(t *testing.T) {
	for head, want := range map[string][]string{
		"finding":    texts(upkeep.FindingKinds),
		"constraint": texts(reservation.Constraints),
	} {
		if got := inCode(t, head); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("the page on troubleshooting has as %s\n%q\nthere are\n%q", head, got, want)
		}
	}
}

func texts[T ~string](list []T) (texts []string) {
	for _, one := range list {
		texts = append(texts, string(one))
	}
	return texts
}
