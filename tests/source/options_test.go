// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// pageOf is the page about the feature that a section configures. There, the options of the section have
// no section before their names.
var pageOf = map[string]string{
	"besteffort": "besteffort.md", "blazar": "blazar.md", "energy": "energy.md", "enforcement": "enforcement.md", "limits": "concepts.md",
	"packing": "packing.md", "staging": "images.md",
}

// Operators learn of an option from a page, which has it where they look for its feature.
func TestEachOptionIsOnAPage(t *testing.T) {
	paths, err := filepath.Glob(repository.Root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named, bare := map[string]bool{}, map[string]map[string]bool{}
	for _, path := range paths {
		text := repository.Read(t, path)
		bare[filepath.Base(path)] = map[string]bool{}
		for _, name := range quotedNames(text) {
			bare[filepath.Base(path)][name] = true
		}
		nameOptions(named, text)
	}
	options := optionsOf(t)
	if len(options) < 300 {
		t.Fatalf("the samples have %d options", len(options))
	}
	for _, o := range options {
		if page := bare[pageOf[o.section]]; !named[o.String()] && !page[o.name] {
			t.Errorf("%v is on no page of docs: describe it where an operator looks for it, with its default and when to change it", o)
		}
	}
}

// sampled is an option of a sample.
type sampled struct{ section, name string }

func (o sampled) String() string { return "[" + o.section + "] " + o.name }

// optionsOf returns the options of almanacd and of almanac-power, each once.
func optionsOf(t *testing.T) (list []sampled) {
	t.Helper()
	var sample bytes.Buffer
	if err := config.Sample(&sample); err != nil {
		t.Fatal(err)
	}
	if err := config.SamplePowerAgent(&sample); err != nil {
		t.Fatal(err)
	}
	var section string
	for _, m := range regexp.MustCompile(`(?m)^(?:\[(\w+)\]|#(\w+) =.*)$`).FindAllStringSubmatch(sample.String(), -1) {
		if m[1] != "" {
			section = m[1]
		} else if o := (sampled{section, m[2]}); !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	return list
}

var (
	aSection   = regexp.MustCompile(`\[(\w+)\]`)
	withOption = regexp.MustCompile(`\[(\w+)\]\s+(\w+)`)
	quotedWord = regexp.MustCompile("`(?:\\[\\w+\\]\\s+)?(\\w+)(?: =[^`]*)?`")
	assigned   = regexp.MustCompile(`(?m)^ *#?(?:\[(\w+)\]|(\w+) *=.*)`)
)

// quotedNames returns the words in backquotes, which may have a section before them or a value after them.
func quotedNames(text string) (names []string) {
	for _, m := range quotedWord.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// nameOptions adds the options that a page names: as "[section] option"; as a word in backquotes in a
// paragraph or row that names the section; as an assignment below "[section]" in a block of code.
func nameOptions(named map[string]bool, page string) {
	for _, m := range withOption.FindAllStringSubmatch(page, -1) {
		named[sampled{m[1], m[2]}.String()] = true
	}
	for i, part := range strings.Split(page, "\n```") {
		if i%2 == 1 {
			section := ""
			for _, m := range assigned.FindAllStringSubmatch(part, -1) {
				if m[1] != "" {
					section = m[1]
				} else {
					named[sampled{section, m[2]}.String()] = true
				}
			}
			continue
		}
		// A row or an item is one for itself.
		for _, unit := range regexp.MustCompile(`\n(?:\n|\||- )`).Split(part, -1) {
			for _, section := range aSection.FindAllStringSubmatch(unit, -1) {
				for _, name := range quotedNames(unit) {
					named[sampled{section[1], name}.String()] = true
				}
			}
		}
	}
}

// An option that nobody reads changes nothing. Outside pkg/config, somebody names the field that each row of
// the table fills.
func TestEachOptionIsRead(t *testing.T) {
	var filled []*ast.SelectorExpr
	read := map[string]bool{}
	for _, p := range packages(t) {
		_, files := parsed(t, p)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if field, is := n.(*ast.SelectorExpr); is && p.name() != "pkg/config" {
					read[field.Sel.Name] = true
				}
				if at, is := n.(*ast.UnaryExpr); is && p.name() == "pkg/config" && at.Op == token.AND {
					if field, is := at.X.(*ast.SelectorExpr); is && field.Sel.IsExported() {
						filled = append(filled, field)
					}
				}
				return true
			})
		}
	}
	if len(filled) < 250 {
		t.Fatalf("the rows fill %d fields", len(filled))
	}
	for _, field := range filled {
		if !read[field.Sel.Name] {
			t.Errorf("an option fills %s, which nothing reads", types.ExprString(field))
		}
	}
}
