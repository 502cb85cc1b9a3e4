// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
)

// objects calls visit for each versioned object in value, outermost first.
func objects(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["nova_object.name"]; ok {
			visit(value)
		}
		for _, inner := range value {
			objects(inner, visit)
		}
	case []any:
		for _, inner := range value {
			objects(inner, visit)
		}
	}
}

func TestEveryCapturedObjectIsWrittenAsItWasRead(t *testing.T) {
	seen := make(map[string]int)
	for _, name := range captured(t, "*") {
		m := capture(t, name)
		for _, raw := range []json.RawMessage{m.Args, m.Result} {
			if raw == nil {
				continue
			}
			objects(decode(t, raw), func(want map[string]any) {
				var o object.Object
				if err := json.Unmarshal(encode(t, want), &o); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				seen[o.Name]++
				if diff := cmp.Diff(any(want), decode(t, encode(t, o))); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", name, o, diff)
				}
			})
		}
	}
	for _, kind := range []string{"RequestSpec", "Destination", "CellMapping", "InstanceGroup", "Selection", "InstanceList", "Aggregate"} {
		if seen[kind] == 0 {
			t.Errorf("no capture has a %s", kind)
		}
	}
}

func TestAnObjectKeepsWhatItDoesNotKnow(t *testing.T) {
	for rule, text := range map[string]string{
		"null is not unset":            `{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":{"x":null}}`,
		"nothing is set":               `{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":{}}`,
		"another namespace":            `{"nova_object.name":"A","nova_object.namespace":"os_brick","nova_object.version":"7","nova_object.data":{}}`,
		"another part of the envelope": `{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":{},"nova_object.id":[1]}`,
		"numbers with all digits":      `{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":{"x":123456789012345678901234567890,"y":1.10,"z":1e400}}`,
		"markup":                       `{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":{"<&>":"<in> a"},"nova_object.changes":["<&>"]}`,
	} {
		var o object.Object
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if diff := cmp.Diff(decode(t, []byte(text)), decode(t, encode(t, o))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

func TestChangesAreOmittedWhenThereAreNone(t *testing.T) {
	raw := encode(t, object.Object{Name: "A", Namespace: "nova", Version: "1.0", Changes: []string{}})
	want := novaObject("A", "1.0", map[string]any{})
	if diff := cmp.Diff(any(want), decode(t, raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	for _, text := range []string{
		`null`, `[]`, `7`, `"A"`, `{}`,
		`{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0"}`,
		`{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":null}`,
		`{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":[]}`,
		`{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":1.0,"nova_object.data":{}}`,
		`{"nova_object.name":null,"nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":{}}`,
		`{"nova_object.name":"A","nova_object.namespace":"nova","nova_object.version":"1.0","nova_object.data":{},"nova_object.changes":"x"}`,
	} {
		var o object.Object
		if err := o.UnmarshalJSON([]byte(text)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestWhatIsNestedTooDeepOrTooLargeIsRefusedAtOnce(t *testing.T) {
	begin := time.Now()
	within := func(value string) []byte {
		return []byte(`{"nova_object.name":"RequestSpec","nova_object.namespace":"nova","nova_object.version":"1.14","nova_object.data":{"x":` + value + `}}`)
	}
	for name, raw := range map[string][]byte{
		"lists in lists":     within(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)),
		"more than Go reads": within(strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)),
		"objects in objects": bytes.Repeat([]byte(`{"nova_object.data":`), 200_000),
		"17 MiB":             within(`"` + strings.Repeat("x", 17<<20) + `"`),
	} {
		if _, err := object.ReadRequestSpec(raw); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if took := time.Since(begin); took > time.Minute { // below 0.2 s on a quiet machine, and endless if each level reads all levels below it
		t.Errorf("took %s", took)
	}
	// Brackets in strings do not nest.
	if _, err := object.ReadRequestSpec(within(`"` + strings.Repeat(`[\"`, 500) + `"`)); err != nil {
		t.Error(err)
	}
}

func TestNothingPrintsTheCredentialsOfACell(t *testing.T) {
	const secret = "openstack:lab"
	raw := specOf(t, "cold-migrate-")
	if !strings.Contains(string(raw), secret) {
		t.Fatal("the capture has no credentials to print")
	}
	var o object.Object
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	spec := read(t, raw)
	kept, _ := request(t, raw, object.Options{})
	broken := bytes.Replace(raw, []byte(`"rabbit://`), []byte(`7, "rabbit://`), 1)
	_, err := object.ReadRequestSpec(broken)
	if err == nil {
		t.Error("the broken one was read")
	}
	wrong := bytes.Replace(raw, []byte(`"allow_cross_cell_move": false`), []byte(`"allow_cross_cell_move": "rabbit://openstack:lab"`), 1)
	_, _, err2 := read(t, wrong).Request(object.Options{})
	if err2 == nil {
		t.Error("the wrong one was read")
	}
	type holder struct{ spec object.RequestSpec }
	var printed bytes.Buffer
	for _, value := range []any{o, &o, spec, &spec, holder{spec}, &holder{spec}, []any{spec, o}, kept, err, err2} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			_, _ = fmt.Fprintf(&printed, verb+"\n", value)
		}
		slog.New(slog.NewTextHandler(&printed, nil)).Info("text", "spec", value)
	}
	for _, value := range []any{o, &o, spec, &spec, kept, holder{spec}, err, err2} {
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("json", "spec", value)
	}
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), strings.Trim(fmt.Sprint([]byte(secret)), "[]")} {
		if i := strings.Index(printed.String(), form); i >= 0 {
			t.Errorf("the credentials are in: …%s…", printed.String()[max(0, i-100):i+len(form)])
		}
	}
	if !strings.Contains(printed.String(), "RequestSpec 1.14") {
		t.Error("name and version are not printed")
	}
}
