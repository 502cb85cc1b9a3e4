// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readAll returns the statements of text, and its errors by line.
func readAll(text string) (got []statement, wrong map[int]string) {
	wrong = map[int]string{}
	for s, err := range statements(text) {
		if err != nil {
			wrong[s.line] = err.Error()
			continue
		}
		got = append(got, s)
	}
	return got, wrong
}

func TestTheReaderFollowsOslo(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []statement
	}{
		"a section and both ways to assign": {
			"[a]\nx = 1\ny: 2\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "1"}, {3, "a", "y", "2"}},
		},
		"the first of = and : ends the name": {
			"[a]\nurl = sqlite:///x?a=b\nurl: x=y\n",
			[]statement{{1, "a", "", ""}, {2, "a", "url", "sqlite:///x?a=b"}, {3, "a", "url", "x=y"}},
		},
		"comments are whole lines": {
			"# [b]\n;[b]\n[a]\n#x = 1\n",
			[]statement{{3, "a", "", ""}},
		},
		"# ; and % within a value are ordinary": {
			"[a]\nx = p%40w # not a comment ; neither\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "p%40w # not a comment ; neither"}},
		},
		"indented lines continue the value": {
			"[a]\nx = 1,\n  2,\n\t# 3\ny = 4\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "1,\n2,\n# 3"}, {5, "a", "y", "4"}},
		},
		"an empty first line may be continued": {
			"[a]\nx =\n  1\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "\n1"}},
		},
		"a repeated key keeps every value": {
			"[a]\nx = 1\nx = 2\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "1"}, {3, "a", "x", "2"}},
		},
		"a section may come twice": {
			"[a]\nx = 1\n[b]\n[a]\ny = 2\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "1"}, {3, "b", "", ""}, {4, "a", "", ""}, {5, "a", "y", "2"}},
		},
		"lines may end as on Windows": {
			"[a]\r\nx = 1\r\n  2\r\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "1\n2"}},
		},
		"a byte order mark is no text": {
			"\ufeff[a]\nx = 1\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "1"}},
		},
		"a value may be empty": {
			"[a]\nx =\ny=   \n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", ""}, {3, "a", "y", ""}},
		},
		"a pair of quotes is taken off and keeps spaces": {
			"[a]\nx = \"  1 \"\ny = '2'\nz = '3\"\nq = \"\n",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "  1 "}, {3, "a", "y", "2"}, {4, "a", "z", `'3"`}, {5, "a", "q", `"`}},
		},
		"the last line needs no end": {
			"[a]\nx = 1",
			[]statement{{1, "a", "", ""}, {2, "a", "x", "1"}},
		},
		"nothing": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, wrong := readAll(tc.text)
			if len(wrong) > 0 {
				t.Errorf("errors: %v", wrong)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(statement{})); diff != "" {
				t.Errorf("statements (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheReaderNamesTheLineAndGoesOn(t *testing.T) {
	const hint = "indented"
	for name, tc := range map[string]struct {
		text string
		want map[int]string // part of the message on each wrong line
		rest []statement
	}{
		"no = or :": {
			"[a]\nsecret\nx = 1\n",
			map[int]string{2: "has no ="}, []statement{{1, "a", "", ""}, {3, "a", "x", "1"}},
		},
		"no name": {
			"[a]\n= 1\n: 2\nx = 1\n",
			map[int]string{2: "before the =", 3: "before the :"}, []statement{{1, "a", "", ""}, {4, "a", "x", "1"}},
		},
		"nothing to continue": {
			"[a]\n  1\nx = 1\n\n  2\n# c\n  3\n",
			map[int]string{2: hint, 5: hint, 7: hint}, []statement{{1, "a", "", ""}, {3, "a", "x", "1"}},
		},
		"an option before any section, said once": {
			"x = 1\n  2\ny = 3\n[a]\nz = 4\n",
			map[int]string{1: "section header"}, []statement{{4, "a", "", ""}, {5, "a", "z", "4"}},
		},
		"a header that does not end, with its options": {
			"[a\nx = 1\n[b] # c\ny = 2\n[c]\nz = 3\n",
			map[int]string{1: "brackets", 3: "brackets"}, []statement{{5, "c", "", ""}, {6, "c", "z", "3"}},
		},
		"a header without a name": {
			"[]\n[ ]\n[a]\n",
			map[int]string{1: "brackets", 2: "brackets"}, []statement{{3, "a", "", ""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rest, wrong := readAll(tc.text)
			if len(wrong) != len(tc.want) {
				t.Errorf("got errors %v, want %v", wrong, tc.want)
			}
			for line, part := range tc.want {
				if !strings.Contains(wrong[line], part) {
					t.Errorf("line %d: got %q, want %q in it", line, wrong[line], part)
				}
			}
			if diff := cmp.Diff(tc.rest, rest, cmp.AllowUnexported(statement{})); diff != "" {
				t.Errorf("statements (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALineThatCannotBeReadIsNotRepeated(t *testing.T) {
	_, wrong := readAll("[database]\nhunter2\n")
	if strings.Contains(wrong[2], "hunter2") {
		t.Errorf("the error may repeat a password: %q", wrong[2])
	}
}

func FuzzStatements(f *testing.F) {
	f.Add("[a]\nx = 1\n  2\n\n# c\ny: 'z'\n")
	f.Add("\ufeffx\r\n[\n[]\n =\n:")
	f.Fuzz(func(t *testing.T, text string) {
		lines, last := strings.Count(text, "\n")+1, 0
		for s, err := range statements(text) {
			if s.line <= last && err == nil || s.line < last || s.line > lines {
				t.Fatalf("line %d of %d after line %d", s.line, lines, last)
			}
			last = s.line
			if err == nil && (s.section == "" || strings.TrimSpace(s.key) != s.key) {
				t.Fatalf("statement %+v", s)
			}
		}
	})
}

func TestReadingMayStopAtAnyStatement(t *testing.T) {
	const text = "x = 1\n[a]\ny\nz = 1\n  2\n[b\n= 3\n"
	all := 0
	for range statements(text) {
		all++
	}
	for stop := range all {
		seen := 0
		for range statements(text) {
			if seen++; seen > stop {
				break
			}
		}
		if seen != stop+1 {
			t.Errorf("stopped after %d, want %d", seen, stop+1)
		}
	}
}
