// SPDX-License-Identifier: Apache-2.0

// Package dashboard contains the files of the calendar page: HTML, CSS and ES modules, which it minifies at the start.
// The page talks to the REST API only.
package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

//go:embed page
var files embed.FS

// contentSecurityPolicy allows the page what it needs of its own origin, and nothing else.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// contentTypes are the types of the files by their extension.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// versionMark stands in index.html for the folder of the version.
const versionMark = "{version}"

// file is one file of the page, as it is sent.
type file struct {
	kind         string
	plain, small []byte // small is compressed with gzip
	tag          string
}

// Page serves the files. The names of all files except index.html begin with the version of the page, so that
// browsers keep them.
type Page struct {
	files   map[string]file
	version string
}

// New returns the page.
func New() (*Page, error) {
	p := &Page{files: make(map[string]file)}
	sum, contents := sha256.New(), make(map[string][]byte)
	err := fs.WalkDir(files, "page", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		contents[strings.TrimPrefix(name, "page/")] = text
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the files of the page: %w", err)
	}
	p.version = hex.EncodeToString(sum.Sum(nil))[:12]
	for name, text := range contents {
		if p.files[name], err = prepare(name, bytes.ReplaceAll(text, []byte(versionMark), []byte(p.version))); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// shorter returns the minifier of scripts and style sheets: what browsers load has no comments and short names.
func shorter() *minify.M {
	m := minify.New()
	m.AddFunc("text/javascript", js.Minify)
	m.AddFunc("text/css", css.Minify)
	return m
}

// prepare minifies and compresses a file, once for all requests.
func prepare(name string, text []byte) (file, error) {
	kind := contentTypes[path.Ext(name)]
	text, err := shorter().Bytes(kind, text)
	if err != nil && !errors.Is(err, minify.ErrNotExist) {
		return file{}, fmt.Errorf("minify %s of the page: %w", name, err)
	}
	var small bytes.Buffer
	writer, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return file{}, err
	}
	if _, err := writer.Write(text); err != nil {
		return file{}, err
	}
	if err := writer.Close(); err != nil {
		return file{}, err
	}
	sum := sha256.Sum256(text)
	return file{kind: kind, plain: text, small: small.Bytes(), tag: `"` + hex.EncodeToString(sum[:8]) + `"`}, nil
}

// ServeHTTP implements http.Handler. The paths are "/", which is index.html, and "/VERSION/NAME".
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	version, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if version == "" {
		name = "index.html"
	}
	found, ok := p.files[name]
	if !ok || version != "" && name == "index.html" {
		http.Error(w, "there is no such file; the page is at /dashboard/", http.StatusNotFound)
		return
	}
	// During an upgrade a browser may ask this version for files of another; it must not keep those.
	h.Set("Cache-Control", "no-cache")
	if version == p.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Type", found.kind)
	h.Set("ETag", found.tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == found.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := found.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = found.small
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body) // the client may have gone
}
