// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/dashboard"
)

func ask(t *testing.T, page http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

var linked = regexp.MustCompile(`(?:src|href)="([0-9a-f]{12}/[^"]+)"`) // to the files of a version

// A browser keeps the files of a version, and asks for index.html again each time.
func TestBrowsersKeepTheFilesOfAVersion(t *testing.T) {
	page := dashboard.New()
	index := ask(t, page, "/")
	if got := index.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("index.html is kept: %s", got)
	}
	links := linked.FindAllStringSubmatch(index.Body.String(), -1)
	if len(links) < 4 { // the icon, the style sheet, main.js, and what it shares with the scripts that come later
		t.Fatalf("index.html has the links %v", links)
	}
	for _, link := range links {
		file := ask(t, page, "/"+link[1])
		if file.Code != http.StatusOK || !strings.Contains(file.Header().Get("Cache-Control"), "immutable") || file.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d, %v", link[1], file.Code, file.Header())
		}
		if again := ask(t, page, "/"+link[1], "If-None-Match", file.Header().Get("ETag")); again.Code != http.StatusNotModified {
			t.Errorf("%s again: %d", link[1], again.Code)
		}
		_, name, _ := strings.Cut(link[1], "/")
		if other := ask(t, page, "/000000000000/"+name); other.Code != http.StatusOK || other.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s of another version: %d, %v", name, other.Code, other.Header())
		}
	}
	for _, path := range []string{"/nothing", "/x/nothing.js", "/x/../dashboard.go", "/x/index.html"} {
		if got := ask(t, page, path); got.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
}

// atOnce are the scripts that a script imports, and later those that it may load with import().
var atOnce, later = regexp.MustCompile(`(?:from|import)"\./([^"]+)"`), regexp.MustCompile(`import\("\./([^"]+)"\)`)

// loaded returns the size of a file of the page, compressed, and its text.
func loaded(t *testing.T, page http.Handler, path string) (size int, text string) {
	t.Helper()
	got := ask(t, page, path, "Accept-Encoding", "gzip")
	if got.Code != http.StatusOK {
		t.Fatalf("%s: %d", path, got.Code)
	}
	size = got.Body.Len()
	reader, err := gzip.NewReader(got.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return size, string(plain)
}

// What a browser loads for the calendar has less than 67 kB, compressed, and with all other parts less than 99 kB. It
// loads all scripts of the calendar side by side, because index.html names them.
func TestThePageIsSmall(t *testing.T) {
	page := dashboard.New()
	size, index := loaded(t, page, "/")
	first, all, waiting := size, size, map[string]bool{}
	for _, link := range linked.FindAllStringSubmatch(index, -1) {
		size, text := loaded(t, page, "/"+link[1])
		first, all = first+size, all+size
		for _, found := range atOnce.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(index, "/"+found[1]) {
				t.Errorf("%s imports %s, which index.html does not name", link[1], found[1])
			}
		}
		for _, found := range later.FindAllStringSubmatch(text, -1) {
			waiting[found[1]] = true
		}
	}
	folder := path.Dir(linked.FindStringSubmatch(index)[1])
	for name := range waiting {
		size, text := loaded(t, page, "/"+folder+"/"+name)
		all += size
		if strings.Contains(index, name) || len(later.FindAllString(text, -1)) > 0 {
			t.Errorf("%s is not loaded later, or loads others later", name)
		}
	}
	if len(waiting) == 0 || first > 67_000 || all > 99_000 {
		t.Errorf("the page has %d bytes at first, and %d with %d scripts that come later", first, all, len(waiting))
	}
}

// The scripts that come later are kept as long as the others. Their names change with their texts, so that a page of before
// an upgrade gets its own one or none.
func TestScriptsThatComeLaterAreServed(t *testing.T) {
	page := dashboard.New()
	_, index := loaded(t, page, "/")
	folder := path.Dir(linked.FindStringSubmatch(index)[1])
	var atFirst strings.Builder
	for _, link := range linked.FindAllStringSubmatch(index, -1) {
		_, text := loaded(t, page, "/"+link[1])
		atFirst.WriteString(text)
	}
	var parts []string
	for _, found := range later.FindAllStringSubmatch(atFirst.String(), -1) {
		name, _, hashed := strings.Cut(found[1], "-")
		if !hashed {
			t.Errorf("the name of %s does not change with its text", found[1])
		}
		parts = append(parts, name)
		got := ask(t, page, "/"+folder+"/"+found[1])
		if got.Code != http.StatusOK || got.Header().Get("Content-Type") != "text/javascript; charset=utf-8" || !strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, %v", found[1], got.Code, got.Header())
		}
	}
	if want := []string{"list", "offers", "operator", "reservation"}; !slices.Equal(slices.Sorted(slices.Values(parts)), want) {
		t.Errorf("the page loads %v later, not %v", parts, want)
	}
	if got := ask(t, page, "/000000000000/operator-00000000.js"); got.Code != http.StatusNotFound {
		t.Errorf("the script of another version: %d", got.Code)
	}
}

// preactSum is the SHA-256 of dist/preact.mjs of preact 11.2.0, as npm has it.
const preactSum = "bdcbd9abdf2c77c5c45326eab42191e949222d479d0d5f69467387a77040cb55"

// The page has one file that is not ours, and it is as its authors made it.
func TestPreactIsAsItsAuthorsMadeIt(t *testing.T) {
	text, err := os.ReadFile("page/preact.js")
	if err != nil {
		t.Fatal(err)
	}
	head, theirs, _ := bytes.Cut(text, []byte("*/\n"))
	if sum := fmt.Sprintf("%x", sha256.Sum256(theirs)); sum != preactSum || !bytes.Contains(head, []byte("Permission is hereby granted")) {
		t.Errorf("after its license preact.js has the sum %s", sum)
	}
}

var licensed = regexp.MustCompile(`For license information please see (\S+)`)

// The script with preact names the file with its license, which is served beside it.
func TestTheLicenseOfPreactIsServed(t *testing.T) {
	page := dashboard.New()
	_, index := loaded(t, page, "/")
	named := 0
	for _, link := range linked.FindAllStringSubmatch(index, -1) {
		_, text := loaded(t, page, "/"+link[1])
		for _, found := range licensed.FindAllStringSubmatch(text, -1) {
			named++
			got := ask(t, page, "/"+path.Dir(link[1])+"/"+found[1])
			if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "Permission is hereby granted") || got.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%s: %d, %v, %s", found[1], got.Code, got.Header(), got.Body)
			}
		}
	}
	if named != 1 {
		t.Errorf("%d scripts name a license", named)
	}
}

// forbidden are the ways in which text could become markup or code, or come from elsewhere.
var forbidden = regexp.MustCompile(`[iI]nnerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\('style'|<script>|<style|style="|https?://`)

func TestNoTextBecomesMarkupAndNothingComesFromElsewhere(t *testing.T) {
	err := fs.WalkDir(os.DirFS("page"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "preact.js" {
			return err
		}
		text, err := os.ReadFile("page/" + name)
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.ReplaceAll(line, "http://www.w3.org/2000/svg", "") // a name of a format
			if found := forbidden.FindString(line); found != "" {
				t.Errorf("%s:%d: %s", name, i+1, found)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	used    = regexp.MustCompile(`\bt\('([\w]+)'`)
	written = regexp.MustCompile(`(?m)(?:^|[,{] )\s*(\w+):\s+['"]`)
)

// textsOf returns the keys of a file of texts.
func textsOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	texts, err := os.ReadFile("page/" + name)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, found := range written.FindAllStringSubmatch(string(texts), -1) {
		keys[found[1]] = true
	}
	return keys
}

// Every text that the page names is in texts.js, or in the file of texts that comes with its part, such as texts-operator.js
// with the pages of operators.
func TestEveryTextIsInTheFileOfTexts(t *testing.T) {
	general, parts := textsOf(t, "texts.js"), map[string]map[string]bool{}
	for _, part := range []string{"list", "offers", "operator", "reservation"} {
		parts[part] = textsOf(t, "texts-"+part+".js")
	}
	scripts, err := fs.Glob(os.DirFS("page"), "*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range used.FindAllStringSubmatch(string(text), -1) {
			part, _, _ := strings.Cut(strings.TrimSuffix(name, ".js"), "-")
			if name == "reservation-words.js" { // the list uses it too
				part = ""
			}
			if !general[found[1]] && !parts[part][found[1]] {
				t.Errorf("%s names the text %s, which no file of texts has that it loads", name, found[1])
			}
		}
	}
}
