// SPDX-License-Identifier: Apache-2.0

package oslo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

func TestURLsAreReadAsOsloReadsThem(t *testing.T) {
	one := []oslo.Host{{Name: "h", Port: 5672, User: "u", Password: "p"}}
	for text, want := range map[string]oslo.URL{
		"rabbit://u:p@h":        {Scheme: "rabbit", Hosts: one, VirtualHost: "/"},
		"rabbit://u:p@h/":       {Scheme: "rabbit", Hosts: one, VirtualHost: "/"},
		"rabbit://u:p@h//":      {Scheme: "rabbit", Hosts: one, VirtualHost: "/"},
		"rabbit://u:p@h//v":     {Scheme: "rabbit", Hosts: one, VirtualHost: "/v"},
		"rabbit://u:p@h/v":      {Scheme: "rabbit", Hosts: one, VirtualHost: "v"},
		"kombu://u:p@h/a%2Fb":   {Scheme: "rabbit", Hosts: one, VirtualHost: "a/b"},
		"rabbit://":             {Scheme: "rabbit", VirtualHost: "/"},
		"rabbit://u@x:p@h:1/":   {Scheme: "rabbit", Hosts: []oslo.Host{{Name: "h", Port: 1, User: "u@x", Password: "p"}}, VirtualHost: "/"},
		"rabbit://h1:1,,h2/":    {Scheme: "rabbit", Hosts: []oslo.Host{{Name: "h1", Port: 1}, {Name: "h2", Port: 5672}}, VirtualHost: "/"},
		"memory://":             {Scheme: "memory", VirtualHost: "/"},
		"fake://":               {Scheme: "memory", VirtualHost: "/"},
		"rabbit://u:p:q@[::1]/": {Scheme: "rabbit", Hosts: []oslo.Host{{Name: "::1", Port: 5672, User: "u", Password: "p:q"}}, VirtualHost: "/"},
		"rabbit://u:pa%40ss+@h1:5672,u2:%25@[fe80::1]:5673/?ssl=1&ssl_ca_file=%2Fca&x=": {
			Scheme: "rabbit", VirtualHost: "/",
			Hosts: []oslo.Host{{Name: "h1", Port: 5672, User: "u", Password: "pa@ss+"}, {Name: "fe80::1", Port: 5673, User: "u2", Password: "%"}},
			Query: map[string]string{"ssl": "1", "ssl_ca_file": "/ca"},
		},
	} {
		got, err := oslo.ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if want.Query == nil {
			want.Query = map[string]string{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestABadURLIsToldWithoutItsPassword(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "no scheme",
		"u:s3cret@h":                      "no scheme",
		"redis://u:s3cret@h":              `"redis"`,
		"amqp://u:s3cret@h":               `"amqp"`,
		"rabbit://u:s3cret%zz@h":          "percent-encoded",
		"rabbit://u:s3cret@h:x/":          "port",
		"rabbit://u:s3cret/x@h:5672/":     "port",
		"rabbit://u:s3cret@h:70000/":      "port",
		"rabbit://u:s3cret@[::1/":         "bracket",
		"rabbit://u:s3cret@h/%zz":         "virtual host",
		"rabbit://u:s3cret@h/?a=%zz":      "name=value",
		"rabbit://u:s3cret@h/?a;b=3":      "name=value",
		"rabbit://u:s3cret@h,v:s3cret%@i": "percent-encoded",
	} {
		_, err := oslo.ParseURL(text)
		if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || f.Field != "transport_url" {
			t.Errorf("%s: got %v", text, err)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %q, want %q in it and no password", text, err, want)
		}
	}
}

func TestAURLShowsNoPassword(t *testing.T) {
	u, err := oslo.ParseURL("rabbit://u:s3cret@h1,w:s3cret@[::1]:1/v%2F1?ssl=true")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := u.String(), "rabbit://u:***@h1:5672,w:***@[::1]:1/v%2F1?ssl=true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{u, &u, u.Hosts, u.Hosts[0]} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, "s3cret") {
				t.Errorf("%s of %T shows %s", verb, value, text)
			}
		}
	}
}

func TestOptionsForQueuesInTheURLWin(t *testing.T) {
	u, err := oslo.ParseURL("rabbit://h/?rabbit_quorum_queue=true&rabbit_quorum_delivery_limit=7&rabbit_transient_queues_ttl=60&ssl=1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := u.Queues(oslo.QueueOptions{Durable: true, DeliveryLimit: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := oslo.QueueOptions{Durable: true, Quorum: true, DeliveryLimit: 7, TransientTTL: time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	u.Query["rabbit_quorum_queue"] = "perhaps"
	if _, err := u.Queues(oslo.QueueOptions{}); fault.Of(err).Field != "transport_url" {
		t.Errorf("got %v", err)
	}
}
