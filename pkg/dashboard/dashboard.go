// SPDX-License-Identifier: Apache-2.0

// Package dashboard contains the files of the calendar page: HTML, CSS and ES modules. Browsers load the modules as a few
// scripts: those of the calendar at once, those of other parts when somebody opens them. The page talks to the REST API
// only.
package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
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
	".txt":  "text/plain; charset=utf-8",
}

// versionMark stands in index.html for the folder of the version, preloadMark for the links to the scripts that main.js
// imports, so that browsers load them beside it.
const (
	versionMark = "{version}"
	preloadMark = "{preload}"
)

// file is one file of the page, as it is sent.
type file struct {
	kind         string
	plain, small []byte // small is compressed with gzip
	tag          string
}

// Page serves the files. The names of all files except index.html begin with the version of the page, so that
// browsers keep them.
type Page struct {
	// made returns the files by their names and the version; it makes them when a browser asks for the first time, in about
	// a tenth of a second.
	made func() (map[string]file, string, error)
}

// New returns the page.
func New() *Page {
	var once sync.Once
	var files map[string]file
	var version string
	var err error
	return &Page{made: func() (map[string]file, string, error) {
		once.Do(func() { files, version, err = bundled() })
		return files, version, err
	}}
}

// bundled returns the files that browsers load: the scripts of all modules and the style sheet, minified, the icon, and
// index.html. A module that another one loads with import() becomes a script of its own, with a hash of its text in its name.
// The license of what is not ours lies beside the script that has it, which names it: browsers do not need it.
func bundled() (map[string]file, string, error) {
	contents := make(map[string][]byte)
	for _, name := range []string{"index.html", "icon.svg"} {
		text, err := files.ReadFile("page/" + name)
		if err != nil {
			return nil, "", fmt.Errorf("read the files of the page: %w", err)
		}
		contents[name] = text
	}
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{"main.js", "style.css"}, Outdir: "/", Plugins: []api.Plugin{embedded()}, Bundle: true, Format: api.FormatESModule,
		Splitting: true, ChunkNames: "[name]-[hash]", Metafile: true,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsLinked, LogLevel: api.LogLevelSilent,
	})
	if len(built.Errors) > 0 {
		return nil, "", fmt.Errorf("bundle the modules of the page: %s", built.Errors[0].Text)
	}
	for _, output := range built.OutputFiles {
		contents[path.Base(output.Path)] = output.Contents
	}
	links, err := preloads(built.Metafile)
	if err != nil {
		return nil, "", fmt.Errorf("read which scripts the page imports: %w", err)
	}
	contents["index.html"] = bytes.ReplaceAll(contents["index.html"], []byte(preloadMark), []byte(links))
	return compressed(contents)
}

// preloads returns the links to the scripts that main.js imports at once.
func preloads(metafile string) (string, error) {
	var meta struct {
		Outputs map[string]struct {
			Imports []struct{ Path, Kind string }
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return "", err
	}
	var links strings.Builder
	for name, output := range meta.Outputs {
		if path.Base(name) != "main.js" {
			continue
		}
		for _, one := range output.Imports {
			if one.Kind == "import-statement" {
				fmt.Fprintf(&links, "<link rel=\"modulepreload\" href=\"%s/%s\">", versionMark, path.Base(one.Path))
			}
		}
	}
	return links.String(), nil
}

// embedded lets the bundler read the files of the page from this program. A module that comes later imports main.js, which
// is there by then.
func embedded() api.Plugin {
	return api.Plugin{Name: "embedded", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: "."}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: path.Base(args.Path), Namespace: "page", PluginData: args.Kind == api.ResolveJSDynamicImport}, nil
		})
		build.OnLoad(api.OnLoadOptions{Filter: ".", Namespace: "page"}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			text, err := files.ReadFile("page/" + args.Path)
			if err != nil {
				return api.OnLoadResult{}, fmt.Errorf("read a module of the page: %w", err)
			}
			contents, loader := string(text), api.LoaderJS
			if later, _ := args.PluginData.(bool); later {
				contents += "import './main.js';\n" // what all scripts share is one script then, which compresses better than several
			}
			if path.Ext(args.Path) == ".css" {
				loader = api.LoaderCSS
			}
			return api.OnLoadResult{Contents: &contents, Loader: loader}, nil
		})
	}}
}

// compressed returns the files as they are sent, and their version.
func compressed(contents map[string][]byte) (map[string]file, string, error) {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		fmt.Fprintf(sum, "%s %d\n%s", name, len(contents[name]), contents[name])
	}
	version := hex.EncodeToString(sum.Sum(nil))[:12]
	made := make(map[string]file)
	for name, text := range contents {
		var err error
		if made[name], err = prepare(name, bytes.ReplaceAll(text, []byte(versionMark), []byte(version))); err != nil {
			return nil, "", fmt.Errorf("compress %s of the page: %w", name, err)
		}
	}
	return made, version, nil
}

// prepare compresses a file, once for all requests.
func prepare(name string, text []byte) (file, error) {
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
	return file{kind: contentTypes[path.Ext(name)], plain: text, small: small.Bytes(), tag: `"` + hex.EncodeToString(sum[:8]) + `"`}, nil
}

// ServeHTTP implements http.Handler. The paths are "/", which is index.html, and "/VERSION/NAME".
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	files, current, err := p.made()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	version, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if version == "" {
		name = "index.html"
	}
	found, ok := files[name]
	if !ok || version != "" && name == "index.html" {
		http.Error(w, "there is no such file; the page is at /dashboard/", http.StatusNotFound)
		return
	}
	// During an upgrade a browser may ask this version for files of another; it must not keep those.
	h.Set("Cache-Control", "no-cache")
	if version == current {
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
