// SPDX-License-Identifier: Apache-2.0

package precondition_test

import (
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/precondition"
)

func TestATagExpectsItsVersionWhateverAProxyMadeOfIt(t *testing.T) {
	tag := precondition.Tag("7", []byte(`{"name": "r"}`))
	for what, c := range map[string]struct {
		values []string
		met    bool
	}{
		"none":                     {nil, true},
		"any":                      {[]string{" * "}, true},
		"the tag":                  {[]string{tag}, true},
		"nginx's":                  {[]string{"W/" + tag}, true},
		"Apache's":                 {[]string{strings.TrimSuffix(tag, `"`) + `-gzip"`}, true},
		"of another answer":        {[]string{precondition.Tag("7", nil)}, true},
		"the version alone":        {[]string{`"7"`}, true},
		"of another version":       {[]string{`"8-0123456789abcdef"`}, false},
		"of a longer version":      {[]string{`"77-0123456789abcdef"`}, false},
		"empty":                    {[]string{`""`}, false},
		"one of a list":            {[]string{`"6", W/` + tag + ` ,, "8"`}, true},
		"one of several lines":     {[]string{`"6"`, tag}, true},
		"none of a list":           {[]string{`"6","8"`}, false},
		"with a comma in the tag":  {[]string{`"a,b", ` + tag}, true},
		"with an asterisk as text": {[]string{`"*"`}, false},
	} {
		v, is := precondition.Parse(c.values)
		if !is || v.Met("7") != c.met {
			t.Errorf("%s, %v: a list of tags: %v, met: %v", what, c.values, is, v.Met("7"))
		}
	}
}

func TestWhatIsNoListOfTagsIsNone(t *testing.T) {
	for _, text := range []string{"", " ", ",", "7", `"7`, `7"`, `"7" "8"`, `"7";"8"`, "*, *", `*, "7"`, `w/"7"`, `W/7`, `"a"b`, "\"a\x00b\"", `"a b"`} {
		if v, is := precondition.Parse([]string{text}); is {
			t.Errorf("%q is a list of tags: %+v", text, v)
		}
	}
}

// A header has at most a megabyte: net/http bounds it.
func TestTheLongestHeaderIsReadInOnePass(t *testing.T) {
	for _, text := range []string{
		strings.Repeat(`"a",`, http.DefaultMaxHeaderBytes/4), strings.Repeat(",", http.DefaultMaxHeaderBytes) + "x", strings.Repeat(" ", http.DefaultMaxHeaderBytes) + "x",
		`"` + strings.Repeat("a", http.DefaultMaxHeaderBytes), strings.Repeat(`W/"a-b" , `, http.DefaultMaxHeaderBytes/10) + "x",
	} {
		if v, is := precondition.Parse([]string{text}); is && v.Met("7") {
			t.Errorf("%.20s… expects 7", text)
		}
	}
}

func TestAHashIsTheSameIfAndOnlyIfWhatIsStoredIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOf(rapid.StringN(0, 3, -1), rapid.IntRange(0, 2))
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		same := len(a) == len(b)
		for k, v := range a {
			w, has := b[k]
			same = same && has && v == w
		}
		if (precondition.Hash(a) == precondition.Hash(b)) != same {
			t.Errorf("%v has %s, and %v %s", a, precondition.Hash(a), b, precondition.Hash(b))
		}
		if strings.Contains(precondition.Hash(a), "-") {
			t.Errorf("the version %s would be cut", precondition.Hash(a))
		}
	})
}
