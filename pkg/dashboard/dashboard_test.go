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

var linked = regexp.MustCompile(`(?:src|href)="([^"]+)"`)

// A browser keeps the files of a version, and asks for index.html again each time.
func TestBrowsersKeepTheFilesOfAVersion(t *testing.T) {
	page := dashboard.New()
	index := ask(t, page, "/")
	if got := index.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("index.html is kept: %s", got)
	}
	links := linked.FindAllStringSubmatch(index.Body.String(), -1)
	if len(links) != 3 {
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

// All files together have less than 72 kB, compressed.
func TestThePageIsSmall(t *testing.T) {
	page := dashboard.New()
	total := 0
	for _, link := range append(linked.FindAllStringSubmatch(ask(t, page, "/").Body.String(), -1), []string{"", ""}) {
		got := ask(t, page, "/"+link[1], "Accept-Encoding", "gzip")
		total += got.Body.Len()
		reader, err := gzip.NewReader(got.Body)
		if err != nil {
			t.Fatalf("%s: %v", link[1], err)
		}
		if _, err := io.ReadAll(reader); err != nil {
			t.Errorf("%s: %v", link[1], err)
		}
	}
	if total == 0 || total > 72_000 {
		t.Errorf("the page has %d bytes", total)
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

// Every text that the page names is in texts.js.
func TestEveryTextIsInTheFileOfTexts(t *testing.T) {
	texts, err := os.ReadFile("page/texts.js")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, found := range written.FindAllStringSubmatch(string(texts), -1) {
		known[found[1]] = true
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
			if !known[found[1]] {
				t.Errorf("%s names the text %s, which texts.js does not have", name, found[1])
			}
		}
	}
}
