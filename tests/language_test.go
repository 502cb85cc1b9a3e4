package tests

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unpolished lists the packages whose comments and strings do not follow the rules of
// docs/glossary.md yet.
var unpolished = []string{"pkg/app"}

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
	{regexp.MustCompile(`\b(?i:is|are) to be\b`), `"must be", or the plan that contains it`},
	{regexp.MustCompile(`\b(?i:\w*(organis|recognis|initialis|serialis|prioritis|normalis|optimis|minimis|maximis|synchronis|summaris|authoris|utilis)\w*|behaviours?|colours?|neighbours?|favours?|honours?|cancell(ed|ing)|labelled|modelled|travell\w+|centre|whilst)\b`), "American spelling"},
}

func TestCommentsAndMessagesArePlain(t *testing.T) {
	for _, p := range packages(t) {
		if !isPlain(p.name()) {
			continue
		}
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
		if !isPlain(p.name()) {
			continue
		}
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

// plainPages lists the pages of docs that follow the rules.
var plainPages = []string{
	"CONTRIBUTING.md",
	"README.md",
	"devstack/README.md",
	"docs/adr/0001-rooms-and-floors.md",
	"docs/adr/0002-calendar.md",
	"docs/adr/0003-sqlite-through-gorm.md",
	"docs/adr/0004-command-line.md",
	"docs/adr/0005-what-is-promised.md",
	"docs/adr/0006-configuration-reader.md",
	"docs/adr/0007-api-libraries.md",
	"docs/adr/0008-replicas.md",
	"docs/adr/0009-messages.md",
	"docs/adr/0010-identity.md",
	"docs/adr/0011-libraries-of-services.md",
	"docs/adr/0012-beside-nova.md",
	"docs/adr/0013-answering-nova.md",
	"docs/adr/0014-making-room.md",
	"docs/adr/0015-hosts-that-sleep.md",
	"docs/adr/0016-simulation.md",
	"docs/adr/0017-images-in-time.md",
	"docs/adr/0018-work-for-the-gaps.md",
	"docs/adr/0019-fair-shares.md",
	"docs/adr/0020-decisions-outside-locks.md",
	"docs/adr/README.md",
	"docs/api.md",
	"docs/architecture.md",
	"docs/besteffort.md",
	"docs/concepts.md",
	"docs/energy-forecast.md",
	"docs/energy.md",
	"docs/first-day.md",
	"docs/glossary.md",
	"docs/images.md",
	"docs/lab.md",
	"docs/nova.md",
	"docs/operations.md",
	"docs/packing.md",
	"docs/parity.md",
	"docs/performance.md",
	"docs/plugin.md",
	"docs/preemption.md",
	"docs/reliability.md",
	"docs/simulation.md",
	"docs/tenants.md",
	"plugin/README.md",
}

// code matches names and messages that a page quotes from programs; the rules do not apply to them.
var code = regexp.MustCompile("(?s)```.*?```|`[^`]*`")

func TestPagesArePlain(t *testing.T) {
	for _, name := range plainPages {
		text, err := os.ReadFile(filepath.Join("..", name))
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

func isPlain(name string) bool { return !slices.Contains(unpolished, name) }
