// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestAListInEveryFormat(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{training()}})
	columns := []string{"-c", "id", "-c", "Quantity", "-c", "Start", "-c", "Hosts"}
	for format, want := range map[string]string{
		"table": `
+-----+----------+----------------------+------------------+
| ID  | Quantity | Start                | Hosts            |
+-----+----------+----------------------+------------------+
| r-1 | 2        | 2026-12-01T10:00:00Z | node-01, node-02 |
+-----+----------+----------------------+------------------+
`,
		"csv": `
ID,Quantity,Start,Hosts
r-1,2,2026-12-01T10:00:00Z,"node-01, node-02"
`,
		"value": `
r-1 2 2026-12-01T10:00:00Z node-01, node-02
`,
		"shell": `
id='r-1' quantity='2' start='2026-12-01T10:00:00Z' hosts='node-01, node-02'
`,
		"json": `
[
  {
    "Hosts": [
      "node-01",
      "node-02"
    ],
    "ID": "r-1",
    "Quantity": 2,
    "Start": "2026-12-01T10:00:00Z"
  }
]
`,
		"yaml": `
- Hosts:
  - node-01
  - node-02
  ID: r-1
  Quantity: 2
  Start: "2026-12-01T10:00:00Z"
`,
	} {
		t.Run(format, func(t *testing.T) {
			got := almanac(t, a, append([]string{"reservation", "list", "-f", format}, columns...)...)
			got.wantDone(t)
			if diff := cmp.Diff(want[1:], got.stdout); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAReservationInEveryFormat(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations/r-1", http.StatusOK, training())
	columns := []string{"-c", "Name", "-c", "Events", "-c", "Host Properties"}
	for format, want := range map[string]string{
		"table": `
+-----------------+------------------------------------+
| Field           | Value                              |
+-----------------+------------------------------------+
| Name            | training                           |
| Events          | 2026-12-01T09:00:00Z created done  |
|                 | 2026-12-01T10:00:00Z start pending |
| Host Properties | [">=","$vcpus",8]                  |
+-----------------+------------------------------------+
`,
		"csv": `
Name,Events,Host Properties
training,2026-12-01T09:00:00Z created done; 2026-12-01T10:00:00Z start pending,"["">="",""$vcpus"",8]"
`,
		"value": `
training
2026-12-01T09:00:00Z created done; 2026-12-01T10:00:00Z start pending
[">=","$vcpus",8]
`,
		"shell": `
name='training'
events='2026-12-01T09:00:00Z created done; 2026-12-01T10:00:00Z start pending'
host_properties='[">=","$vcpus",8]'
`,
		"yaml": `
Events:
- 2026-12-01T09:00:00Z created done
- 2026-12-01T10:00:00Z start pending
Host Properties:
- ">="
- $vcpus
- 8
Name: training
`,
	} {
		t.Run(format, func(t *testing.T) {
			got := almanac(t, a, append([]string{"reservation", "show", "r-1", "-f", format}, columns...)...)
			got.wantDone(t)
			if diff := cmp.Diff(want[1:], got.stdout); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheFormatAPIIsTheAnswerOfTheAPI(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{}})
	a.on("GET /v1/properties", http.StatusOK, v1.Properties{Properties: []v1.Property{{Name: "rack", Type: "number", Values: []any{1048576, 0.5}}}})
	for command, want := range map[string]string{
		"reservation list": `{"reservations":[],"next":null}`,
		"properties":       `{"properties":[{"name":"rack","type":"number","values":[1048576,0.5],"built_in":false,"hidden":false}]}`,
	} {
		got := almanac(t, a, append(strings.Fields(command), "--format", "api")...)
		got.wantDone(t)
		compact := strings.Join(strings.Fields(got.stdout), "")
		if compact != want {
			t.Errorf("%s: got %s, want %s", command, compact, want)
		}
	}
}

func TestNumbersAndTextsKeepTheirTypesInYAML(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/hosts/n1", http.StatusOK, v1.Host{Name: "n1", Properties: map[string]any{
		"serial": "00417", "rack": 1048576, "nvme": true, "note": "yes: no", "time": "2026-12-01",
	}})
	got := almanac(t, a, "host", "show", "n1", "-f", "yaml", "-c", "Properties")
	got.wantDone(t)
	want := `Properties:
  note: "yes: no"
  nvme: true
  rack: 1048576
  serial: "00417"
  time: "2026-12-01"
`
	if diff := cmp.Diff(want, got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestTextThatCouldMoveTheCursorIsQuoted(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{named("r-1", "\x1b[2Jgone\n", "active")}})
	got := almanac(t, a, "reservation", "list", "-f", "value", "-c", "Name")
	if want := `"\x1b[2Jgone\n"` + "\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
}

// The names have the wide blank of Chinese, a blank that does not break, and what joins and separates
// letters of Persian and the parts of a picture.
func TestOrdinaryCharactersOfAllLanguagesStay(t *testing.T) {
	for _, name := range []string{"日本\u3000語", "a\u00a0b", "می\u200cخواهم", "क्\u200dष", "👩\u200d🔬", "so\u00adft", "\ufeffx", "µ-ß"} {
		a := newAPI(t)
		a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{named("r-1", name, "active")}})
		for _, format := range []string{"table", "value", "csv"} {
			got := almanac(t, a, "reservation", "list", "-f", format, "-c", "Name")
			if !strings.Contains(got.stdout, name) || strings.ContainsAny(got.stdout, `\"`) {
				t.Errorf("%s of %q: %q", format, name, got.stdout)
			}
		}
	}
}

func TestTextThatTurnsTheDirectionOrEndsALineIsQuoted(t *testing.T) {
	for _, r := range "\u202e\u2066\u200f\u0085\u2028\u2029\a\t" {
		if text := "a" + string(r) + "b"; plain(text) == text {
			t.Errorf("%+q is printed as it is", text)
		}
	}
}

func TestAShellReadsWhatTheFormatShellPrints(t *testing.T) {
	const name = "it's $HOME `x` \"y\" \\"
	a := newAPI(t)
	a.on("GET /v1/reservations/r-1", http.StatusOK, named("r-1", name, "active"))
	got := almanac(t, a, "reservation", "show", "r-1", "-f", "shell")
	got.wantDone(t)
	out, err := exec.CommandContext(t.Context(), "sh", "-euc", `eval "$1"; printf %s "$name"`, "-", got.stdout).CombinedOutput()
	if err != nil || string(out) != name {
		t.Errorf("%q, %v, want %q", out, err, name)
	}
}

func TestAListHasFewColumnsUnlessAskedForMore(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{training()}})
	for args, want := range map[string]string{
		"":       "ID,Name,Kind,Quantity,Status,Start,End",
		"--long": "ID,Name,Kind,Quantity,Status,Start,End,Project,User,Policy,Hosts,Held Until,Waiting,Maintenance,Degraded,Created,Series,Occurrence",
	} {
		got := almanac(t, a, append([]string{"reservation", "list", "-f", "csv"}, strings.Fields(args)...)...)
		header, _, _ := strings.Cut(got.stdout, "\n")
		if header != want {
			t.Errorf("%q: got %s, want %s", args, header, want)
		}
	}
}

func TestAnUnknownColumnStopsBeforeAnythingIsDone(t *testing.T) {
	a := newAPI(t)
	for _, command := range []string{
		"reservation create x --duration 1h", "reservation create x --duration 1h --dry-run", "reservation delete r-1",
		"reservation extend r-1 --by 1h", "host set n1 --reservable", "properties set rack --hidden",
	} {
		almanac(t, a, append(strings.Fields(command), "-c", "Stat")...).wantFailure(t, exitUsage, `no column "Stat"`)
	}
	if asked := a.lines(); len(asked) > 0 {
		t.Errorf("the requests are %v", asked)
	}
}
