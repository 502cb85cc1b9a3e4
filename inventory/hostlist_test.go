// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// onlyInClusterShell are the lists that Slurm does not read, and Almanac reads as ClusterShell does:
// steps, and text after the last bracket, as in the names of a domain.
var onlyInClusterShell = []string{
	"n[1-10/3]", "n[1-10/2]", "n[1-3]-ib", "n[1-3].example.org", "n[01-02].rack1.example.org", "n[1-3]x", "[1-3]n",
}

// noHostNames are the lists that both tools print alike, but not as names of hosts. In the last one
// ClusterShell reads names with a space in them.
var noHostNames = []string{"n{1..3}", "n(1-3)", "n{1,2}", "n[1-2] m1"}

func TestAListIsReadAsOtherToolsReadItOrRefused(t *testing.T) {
	raw, err := os.ReadFile("testdata/hostlists.tsv")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		list, want := cells[0], set(cells[1])
		if !slices.Contains(onlyInClusterShell, list) && !maps.Equal(want, set(cells[2])) || slices.Contains(noHostNames, list) {
			want = set("!")
		}
		names, err := ExpandNames(list)
		if err != nil {
			names = []string{"!"}
		}
		if got := set(strings.Join(names, " ")); !maps.Equal(got, want) {
			t.Errorf("%s is read as %v, want %v (%v)", list, names, slices.Sorted(maps.Keys(want)), err)
		}
		read++
	}
	if read != 70 {
		t.Errorf("read %d lists", read)
	}
}

func set(words string) map[string]bool {
	names := make(map[string]bool)
	for _, name := range strings.Fields(words) {
		names[name] = true
	}
	return names
}

func TestNamesAreInTheOrderOfTheList(t *testing.T) {
	for list, want := range map[string]string{
		"b, a":                   "b a",
		"n[3,1-2,02]":            "n3 n1 n2 n02",
		"r[2,1]n[09-10]":         "r2n09 r2n10 r1n09 r1n10",
		"n[1-9/4],n[1-2],m":      "n1 n5 n9 n2 m",
		"n[0-1]-[1-2].rack.test": "n0-1.rack.test n0-2.rack.test n1-1.rack.test n1-2.rack.test",
	} {
		if names, err := ExpandNames(list); err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %v, %v", list, names, err)
		}
	}
}

func TestARefusedListNamesTheRemedy(t *testing.T) {
	for list, want := range map[string]string{
		"":                               `"" is not a host name`,
		"a,,b":                           `"a,,b" is not a host name, nor a list of them without gaps`,
		"a,":                             "without gaps",
		"n[1-2] m":                       `"n[1-2] m" is not a host name`,
		"n[1-2":                          `has no "]"`,
		"n1-2]":                          `has no "["`,
		"n[[1-2]]":                       `"[1-2" in "n[[1-2]]" is not a range of numbers; write it like`,
		"n[008-12]":                      "write both numbers with the same number of digits",
		"n[1 - 3]":                       "leave them out",
		"n[1-3]!n2":                      "list the hosts that remain",
		"n[1-3/0]":                       "has the step 0; it is 1 or more",
		"n[1-3/99999999999999999999]":    "it is 1 or more",
		"n[1-9999999999999999999]":       "it may have 18 digits",
		"a[1-100]b[1-101]":               "the brackets of a list may stand for 10000 hosts",
		"a[1-6000],b[1-6000]":            "the brackets of a list may stand for 10000 hosts",
		strings.Repeat("a", 255) + "[1]": "a host name has at most 255 characters",
	} {
		if names, err := ExpandNames(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d names, %v; want %q", list, len(names), err, want)
		}
	}
}

// A list of the largest request body costs little, whatever its brackets stand for.
func TestTheCostOfAListIsBounded(t *testing.T) {
	const long = 1 << 20
	for _, list := range []string{
		strings.Repeat("[1-10000]a", long/10), strings.Repeat("[1-10000],", long/10) + "a", strings.Repeat("a", long) + "[1-10000]",
		"a[" + strings.Repeat("1-10000,", long/8) + "1]", strings.Repeat("a[1-2],", long/7) + "a",
	} {
		allocated := testing.AllocsPerRun(1, func() {
			if _, err := ExpandNames(list); err == nil {
				t.Errorf("%.30s… is read", list)
			}
		})
		if allocated > 400_000 {
			t.Errorf("%.30s… allocates %v times", list, allocated)
		}
	}
}

// The model writes each name by counting, as a person would.
func TestBracketsStandForWhatCountingFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, step := rapid.IntRange(0, 120).Draw(t, "from"), rapid.IntRange(1, 7).Draw(t, "step")
		width := rapid.IntRange(1, 4).Draw(t, "width")
		to := from + rapid.IntRange(0, 40).Draw(t, "more")
		first, last := fmt.Sprintf("%0*d", width, from), fmt.Sprintf("%0*d", width, to)
		var want []string
		for n := from; n <= to; n++ {
			if (n-from)%step == 0 {
				want = append(want, fmt.Sprintf("n%0*d.x", width, n))
			}
		}
		list := fmt.Sprintf("n[%s-%s/%d].x", first, last, step)
		names, err := ExpandNames(list)
		if first[0] == '0' && len(first) > 1 && len(first) != len(last) {
			if err == nil {
				t.Fatalf("%s is read as %v", list, names)
			}
			return
		}
		if err != nil || !slices.Equal(names, want) {
			t.Fatalf("%s is read as %v, %v; want %v", list, names, err, want)
		}
	})
}
