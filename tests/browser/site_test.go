// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// atForge is how the site names a file of the repository that it does not contain itself.
const atForge = "https://github.com/almanac-cloud/almanac/blob/main/"

// sitePage is a page of the site: its anchors, and the addresses that it links to or shows.
type sitePage struct {
	anchors map[string]bool
	links   []string
}

// builtSite returns the folder of the site and its pages by their path in it. `make site` builds it.
func builtSite(t *testing.T) (string, map[string]sitePage) {
	t.Helper()
	folder := os.Getenv("ALMANAC_TEST_SITE")
	if folder == "" {
		t.Skip("make site and make test-site run it")
	}
	pages := map[string]sitePage{}
	err := filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".html" {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		root, err := html.Parse(file)
		if err != nil {
			return err
		}
		found := sitePage{anchors: map[string]bool{"": true}}
		for node := range root.Descendants() {
			for _, attribute := range node.Attr {
				switch attribute.Key {
				case "id":
					found.anchors[attribute.Val] = true
				case "href", "src":
					found.links = append(found.links, attribute.Val)
				}
			}
		}
		relative, err := filepath.Rel(folder, name)
		pages[filepath.ToSlash(relative)] = found
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder, pages
}

// pageOf returns the page of a document, by its path in the repository.
func pageOf(document string) string {
	return strings.TrimSuffix(strings.Replace(document, "README.md", "index.md", 1), ".md") + ".html"
}

// broken returns what is wrong with a link of a page, "" for nothing. Other sites are not asked.
func broken(folder string, pages map[string]sitePage, from, link string) string {
	if file, ours := strings.CutPrefix(link, atForge); ours {
		file, _, _ = strings.Cut(file, "#")
		if strings.HasPrefix(file, "/") {
			return "the address has an empty part"
		}
		if _, here := pages[pageOf(file)]; here && path.Ext(file) == ".md" && pageOf(file) != from {
			return "the site has this page"
		}
		if _, err := os.Stat(filepath.Join("../..", filepath.FromSlash(file))); err != nil {
			return "the repository has no such file"
		}
		return ""
	}
	to, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if to.IsAbs() {
		return ""
	}
	if strings.HasPrefix(to.Path, "/") {
		return "it only works at the root of a server"
	}
	target := from
	if to.Path != "" {
		target = path.Join(path.Dir(from), to.Path)
	}
	if info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(target))); err != nil || info.IsDir() {
		return "there is no such file"
	}
	if page, ok := pages[target]; ok && !page.anchors[to.Fragment] {
		return "the page has no such anchor"
	}
	return ""
}

//make:test-site
func TestEachLinkOfTheSiteLeadsSomewhere(t *testing.T) {
	folder, pages := builtSite(t)
	for from, page := range pages {
		for _, link := range page.links {
			if wrong := broken(folder, pages, from, link); wrong != "" {
				t.Errorf("%s links to %s: %s", from, link, wrong)
			}
		}
	}
}

//make:test-site
func TestEachPageOfTheRepositoryIsReachedFromTheFrontOfTheSite(t *testing.T) {
	_, pages := builtSite(t)
	reached := map[string]bool{}
	for next := []string{"index.html"}; len(next) > 0; next = next[1:] {
		from := next[0]
		if reached[from] {
			continue
		}
		reached[from] = true
		for _, link := range pages[from].links {
			to, err := url.Parse(link)
			if err != nil || to.IsAbs() || to.Path == "" {
				continue
			}
			if target := path.Join(path.Dir(from), to.Path); path.Ext(target) == ".html" {
				next = append(next, target)
			}
		}
	}
	var documents []string
	for _, folder := range []string{"docs", "devstack"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(name string, _ fs.DirEntry, err error) error {
			if filepath.Ext(name) == ".md" {
				documents = append(documents, strings.TrimPrefix(filepath.ToSlash(name), "../../"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(documents, "README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md") {
		if !reached[pageOf(name)] {
			t.Errorf("no reader reaches %s; add it to the navigation in site/hugo.toml", name)
		}
	}
}

// The site works from a disk. At 360 pixels, only tables and code are wider than the screen, and they
// scroll by themselves.
//
//make:test-site
func TestTheSiteIsReadOnAPhoneAndOnADesk(t *testing.T) {
	folder, pages := builtSite(t)
	b := labtest.StartBrowser(t)
	axe := labtest.Axe(t)
	address := func(page string) string { return "file://" + filepath.ToSlash(filepath.Join(folder, page)) }
	for page := range pages {
		b.Look(360, 800, false)
		b.Visit(address(page))
		if wide := labtest.Evaluate[int](b, `document.documentElement.scrollWidth`); wide > 360 {
			t.Errorf("%s is %d pixels wide on a screen of 360", page, wide)
		}
	}
	for _, page := range []string{"index.html", "docs/index.html", "docs/api.html", "docs/tenants.html", "docs/reproduction/packing/report.html"} {
		for _, width := range []int{360, 1440} {
			for _, dark := range []bool{false, true} {
				b.Look(width, 1000, dark)
				b.Visit(address(page))
				b.Await("article h1")
				b.Picture(strings.ReplaceAll(strings.TrimSuffix(page, ".html"), "/", "-"))
				for _, found := range b.Examine(axe) {
					t.Errorf("%s, %d pixels wide, dark %v: %s", page, width, dark, found)
				}
			}
		}
	}
	if troubles := b.Troubles(); len(troubles) > 0 {
		t.Errorf("the browser complains: %q", troubles)
	}
}

//make:test-site
func TestTheSiteIsSearched(t *testing.T) {
	folder, _ := builtSite(t)
	b := labtest.StartBrowser(t)
	b.Look(1440, 1000, false)
	b.Visit("file://" + filepath.ToSlash(filepath.Join(folder, "docs", "install.html")))
	b.Click(".find")
	b.Await(".finder input")
	b.Press("victim eviction")
	b.Await("#found li")
	var titles []string
	for title := range strings.Lines(b.Text("#found")) {
		titles = append(titles, strings.TrimSpace(title))
	}
	if !slices.ContainsFunc(titles, func(title string) bool { return strings.Contains(title, "Preemptible instances") }) {
		t.Errorf("victim eviction finds %q, and not the page of preemptible instances", titles)
	}
	b.Picture("search")
	b.Press("zzzz")
	b.Eventually("no section is found", `document.querySelectorAll("#found li").length === 0`)
	if state := b.Text(".finder .state"); state != "No section has all of these words." {
		t.Errorf("what nobody has written about is answered by %q", state)
	}
}
