// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// reverseProxies are the programs of the chapter, each with the language of its lines in the page, what
// a machine has around them, and what administrators often add for other sites: compression of
// everything.
var reverseProxies = []struct{ program, language, around, compression string }{
	{
		"nginx", "nginx",
		"pid HERE/pid;\nerror_log stderr;\nuser root;\nevents { }\nhttp {\naccess_log off;\n" +
			"client_body_temp_path HERE/body;\nproxy_temp_path HERE/proxy;\nfastcgi_temp_path HERE/f;\nuwsgi_temp_path HERE/u;\nscgi_temp_path HERE/s;\n%s\n%s\n}\n",
		"gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;",
	},
	{
		"apache2", "apache",
		"ServerName localhost\nListen 127.0.0.1:PORT\nPidFile HERE/pid\nDefaultRuntimeDir HERE\nErrorLog HERE/log\nUser www-data\nGroup www-data\n" +
			loaded("mpm_event", "authz_core", "authz_host", "filter", "deflate", "env", "socache_shmcb", "slotmem_shm", "proxy",
				"headers", "lbmethod_bybusyness", "proxy_balancer", "proxy_http", "ssl") + "%s\n%s\n",
		"SetOutputFilter DEFLATE",
	},
}

// loaded returns the lines that load modules of Apache.
func loaded(modules ...string) string {
	var lines strings.Builder
	for _, name := range modules {
		fmt.Fprintf(&lines, "LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", name, name)
	}
	return lines.String()
}

// The lines of the page, in a configuration of the program that has nothing else, or that compresses
// everything, serve one replica that runs and two that do not.
func TestTheLinesForReverseProxiesKeepWhatClientsNeed(t *testing.T) {
	for _, proxy := range reverseProxies {
		for name, extra := range map[string]string{"alone": "", "compressing": proxy.compression} {
			t.Run(proxy.program+" "+name, func(t *testing.T) {
				built.Program(t, proxy.program)
				service := built.StartOn(t, built.TenHosts, "OS_OSLO_MIDDLEWARE__ENABLE_PROXY_HEADERS_PARSING=true", "OS_API__FEED_SECRET=a secret of thirty-two characters")
				b := behind(t, service, proxy.program, fmt.Sprintf(proxy.around, extra, linesOfThePage(t, proxy.language)))
				t.Run("links", b.links)
				t.Run("metrics", b.metrics)
				t.Run("tags", b.tags)
				t.Run("changes", b.changes)
				t.Run("events", func(t *testing.T) { b.events(t, service) })
			})
		}
	}
}

// linesOfThePage returns the block of the page in the language.
func linesOfThePage(t *testing.T, language string) string {
	t.Helper()
	blocks := repository.Fenced(t, language)
	if len(blocks) != 1 {
		t.Fatalf("the page has %d blocks of %s", len(blocks), language)
	}
	return blocks[0]
}

// proxied is a client of Almanac behind a reverse proxy.
type proxied struct {
	http *http.Client
	url  string
}

// behind starts the proxy with the addresses and the certificate of the test in the place of those
// of the page.
func behind(t *testing.T, s *built.Service, program, configuration string) *proxied {
	t.Helper()
	tls := httptest.NewTLSServer(nil) // for its certificate and a client that trusts it
	t.Cleanup(tls.Close)
	certificate := tls.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	for old, replacement := range map[string]string{
		"192.0.2.11:1234": "127.0.0.1:CLOSED", "192.0.2.12:1234": strings.TrimPrefix(s.URL, "http://"), "192.0.2.13:1234": "localhost:CLOSED",
		"/etc/ssl/private": "HERE", "listen 1234": "listen 127.0.0.1:PORT", "*:1234": "127.0.0.1:PORT",
	} {
		configuration = strings.ReplaceAll(configuration, old, replacement)
	}
	if strings.Contains(configuration, "1234") {
		t.Fatalf("an address is left as on the page:\n%s", configuration)
	}
	c := tls.Client()
	c.Transport.(*http.Transport).DisableCompression = true // each test asks for it, or not
	return &proxied{http: c, url: "https://" + labtest.ReverseProxy(t, program, configuration, map[string]string{"almanac.pem": string(both)})}
}

// get returns the answer and its body; header has names and values in turn.
func (p *proxied) get(t *testing.T, path string, header ...string) (*http.Response, []byte) {
	t.Helper()
	return p.send(t, http.MethodGet, path, "", header...)
}

// send returns the answer to a request with a body, which may be empty, and the body of the answer.
func (p *proxied) send(t *testing.T, method, path, text string, header ...string) (*http.Response, []byte) {
	t.Helper()
	answer := p.open(t, t.Context(), method, path, text, header...)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, body
}

func (p *proxied) open(t *testing.T, ctx context.Context, method, path, text string, header ...string) *http.Response {
	t.Helper()
	ask, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		ask.Header.Set(header[i], header[i+1])
	}
	answer, err := p.http.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// links have the scheme and the port of the proxy, whatever a client sends.
func (p *proxied) links(t *testing.T) {
	lies := []string{"X-Forwarded-Host", "elsewhere.example", "X-Forwarded-Proto", "http", "X-Forwarded-Prefix", "/elsewhere", "X-Forwarded-Port", "1"}
	for _, header := range [][]string{nil, lies} {
		_, body := p.get(t, "/v1", header...)
		var got struct {
			Version struct{ Links []struct{ Href string } }
		}
		if err := json.Unmarshal(body, &got); err != nil || len(got.Version.Links) != 1 || got.Version.Links[0].Href != p.url+"/v1" {
			t.Errorf("with %q: %v %s; want the link %s/v1", header, err, body, p.url)
		}
		_, body = p.get(t, "/v1/feed", header...)
		var feed struct{ URL string }
		if err := json.Unmarshal(body, &feed); err != nil || !strings.HasPrefix(feed.URL, p.url+"/feeds/") {
			t.Errorf("with %q: %v %s; want a link that begins with %s/feeds/", header, err, body, p.url)
		}
	}
}

// metrics are refused in every spelling of their path, and nothing else is.
func (p *proxied) metrics(t *testing.T) {
	if answer, body := p.get(t, "/metrics"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("/metrics: %s %.200s", answer.Status, body)
	}
	for _, path := range []string{"/metrics/", "//metrics", "/%6detrics", "/v1/../metrics", "/metrics?name[]=up"} {
		if answer, body := p.get(t, path); answer.StatusCode == http.StatusOK || bytes.Contains(body, []byte("almanac_")) {
			t.Errorf("%s: %s %.200s", path, answer.Status, body)
		}
	}
	if answer, body := p.get(t, "/healthcheck"); answer.StatusCode != http.StatusOK {
		t.Errorf("/healthcheck: %s %s", answer.Status, body)
	}
}

// tags of an answer match when a client asks again, for short and long answers, compressed or not.
func (p *proxied) tags(t *testing.T) {
	short := "/v1/calendar?start=2035-01-01T00:00:00Z&end=2035-01-02T00:00:00Z"
	for _, path := range []string{short, short + "&facts=true"} {
		for _, coding := range []string{"identity", "gzip"} {
			first, body := p.get(t, path, "Accept-Encoding", coding)
			tag := first.Header.Get("ETag")
			if first.StatusCode != http.StatusOK || tag == "" {
				t.Fatalf("%s with %s: %s, tag %q, %.200s", path, coding, first.Status, tag, body)
			}
			again, body := p.get(t, path, "Accept-Encoding", coding, "If-None-Match", tag)
			if again.StatusCode != http.StatusNotModified || len(body) != 0 {
				t.Errorf("%s with %s and the tag %s: %s and %d bytes; want 304 and none", path, coding, tag, again.Status, len(body))
			}
		}
	}
}

// changes of what was read are made, and others are not, whatever the proxy has made of the tag.
func (p *proxied) changes(t *testing.T) {
	later := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339) // a start would be a change too
	for _, coding := range []string{"identity", "gzip"} {
		made, body := p.send(t, http.MethodPost, "/v1/reservations", fmt.Sprintf(`{"name": "one", "start_time": %q, "duration": 60}`, later))
		path := made.Header.Get("Location")
		if made.StatusCode != http.StatusCreated || path == "" {
			t.Fatalf("%s %s", made.Status, body)
		}
		read, _ := p.get(t, path, "Accept-Encoding", coding)
		tag := read.Header.Get("ETag")
		for _, status := range []int{http.StatusOK, http.StatusPreconditionFailed} {
			change, body := p.send(t, http.MethodPatch, path, fmt.Sprintf(`{"name": "changed %d"}`, status), "Accept-Encoding", coding, "If-Match", tag)
			if change.StatusCode != status {
				t.Errorf("with %s and the tag %s: %s %.300s; want %d", coding, tag, change.Status, body, status)
			}
		}
	}
}

// events arrive as they happen: a proxy that keeps back what is less than a buffer would show nothing in
// the time of the test.
func (p *proxied) events(t *testing.T, s *built.Service) {
	ctx, cancel := context.WithTimeout(t.Context(), built.Patience)
	defer cancel()
	answer := p.open(t, ctx, http.MethodGet, "/v1/events", "", "Accept-Encoding", "gzip")
	defer answer.Body.Close()
	if coding := answer.Header.Get("Content-Encoding"); answer.StatusCode != http.StatusOK || coding != "" {
		t.Fatalf("%s, coding %q", answer.Status, coding)
	}
	lines := bufio.NewScanner(answer.Body)
	until := func(begin string) {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), begin) {
				return
			}
		}
		t.Fatalf("no line %q within %v: %v", begin, built.Patience, lines.Err())
	}
	until("id: ")
	if out, complaint, exit := s.Almanac(t, "reservation", "create", "one", "--quantity", "1", "--start", "+1d", "--duration", "1h"); exit != 0 {
		t.Fatal(out, complaint)
	}
	until("event: calendar")
	until("data: ")
	if !strings.Contains(lines.Text(), `"name":"one"`) {
		t.Errorf("the first event is %s", lines.Text())
	}
}
