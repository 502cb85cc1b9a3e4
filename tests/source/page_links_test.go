// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// markdown returns the texts of the pages of the repository without their blocks of code, by path.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	block := regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	pages := map[string]string{}
	read := func(name string) {
		pages[name] = block.ReplaceAllString(repository.Read(t, filepath.Join(repository.Root, name)), "")
	}
	atRoot, err := filepath.Glob(repository.Root + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range atRoot {
		read(filepath.Base(name))
	}
	for _, folder := range []string{"devstack", "docs", "findings", "packaging", "plugin", "tests"} {
		err := filepath.WalkDir(filepath.Join(repository.Root, folder), func(name string, _ fs.DirEntry, err error) error {
			if filepath.Ext(name) == ".md" {
				read(strings.TrimPrefix(filepath.ToSlash(name), repository.Root+"/"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	pageLink   = regexp.MustCompile(`\]\(([^)\s]+)\)|<img [^>]*src="([^"]+)"`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// linksOf returns the links and pictures of a page that stay in the repository.
func linksOf(text string) (links []string) {
	for _, m := range pageLink.FindAllStringSubmatch(inlineCode.ReplaceAllString(text, ""), -1) {
		if link := m[1] + m[2]; !strings.Contains(link, ":") {
			links = append(links, link)
		}
	}
	return links
}

// anchorsOf returns the anchors that a forge makes of the headings of a page.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{"": true}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(linkText.ReplaceAllString(m[1], "$1")), ""), " ", "-")
		one := slug
		for n := 1; anchors[one]; n++ {
			one = fmt.Sprintf("%s-%d", slug, n)
		}
		anchors[one] = true
	}
	return anchors
}

func TestEachLinkOfAPageLeadsSomewhere(t *testing.T) {
	pages, number := markdown(t), 0
	for from, text := range pages {
		for _, link := range linksOf(text) {
			number++
			file, anchor, _ := strings.Cut(link, "#")
			target := from
			if file != "" {
				target = path.Join(path.Dir(from), file)
			}
			if _, err := os.Stat(filepath.Join(repository.Root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", from, link)
			} else if to, isPage := pages[target]; isPage && !anchorsOf(to)[anchor] {
				t.Errorf("%s links to %s, and that page has no such heading", from, link)
			}
		}
	}
	if number < 500 {
		t.Errorf("found %d links", number)
	}
}

// The navigation of the site has the pages, except those that another page links to.
func TestEachPageOfTheGuidesIsReached(t *testing.T) {
	pages, reached := markdown(t), map[string]bool{}
	next := []string{"README.md"}
	for _, name := range repository.Matches(`(?m)^  \["([^"]+)", `, repository.Read(t, repository.Root+"/site/hugo.toml")) {
		switch page := name + ".md"; {
		case name == "index":
		case pages[page] != "":
			next = append(next, page)
		case pages[name+"/README.md"] != "":
			next = append(next, name+"/README.md")
		default:
			t.Errorf("the navigation in site/hugo.toml has %s, and there is no such page", name)
		}
	}
	for ; len(next) > 0; next = next[1:] {
		from := next[0]
		if reached[from] {
			continue
		}
		reached[from] = true
		for _, link := range linksOf(pages[from]) {
			file, _, _ := strings.Cut(link, "#")
			target := path.Join(path.Dir(from), file)
			if _, isPage := pages[target]; isPage {
				next = append(next, target)
			} else if _, isFolder := pages[target+"/README.md"]; isFolder {
				next = append(next, target+"/README.md")
			}
		}
	}
	for name := range pages {
		if !reached[name] && (strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "devstack/") || !strings.Contains(name, "/")) {
			t.Errorf("no reader reaches %s; add it to the navigation in site/hugo.toml", name)
		}
	}
}
