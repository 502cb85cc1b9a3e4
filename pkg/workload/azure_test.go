// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

var (
	azureFlavors = workload.AzureFlavors{"a": {VCPUs: 1, MemoryMB: 768}, "b": {VCPUs: 16, MemoryMB: 112 << 10}}
	azureBins    = workload.AzureBins{{From: 0, To: 300}, {From: 300, To: 600}, {From: 600, To: 7200}, {From: 7200, To: 86400}}
)

func azureChance() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

// azure reads a file of flavors and one of lifetimes.
func azure(t *testing.T, flavors, lifetimes string, keep, preemptible float64) *workload.Azure {
	t.Helper()
	a, err := workload.NewAzure(strings.NewReader(flavors), strings.NewReader(lifetimes), azureChance(),
		workload.AzureOptions{Flavors: azureFlavors, Bins: azureBins, Keep: keep, Preemptible: preemptible})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// machines returns all jobs of a stream, and the error at its end.
func machines(s workload.Stream) (all []workload.Job, end error) {
	for {
		j, err := s.Next()
		if err != nil {
			return all, err
		}
		all = append(all, j)
	}
}

func TestMachinesOfAzureHaveTheFlavorAndLiveInTheBinOfTheirPlace(t *testing.T) {
	a := azure(t, "300 a,|,b,a,|,\n900 |,b\n", "300 U0,|,U1,U3,|,\n900 |,U2,\n", 1, 0)
	all, err := machines(a)
	if !errors.Is(err, io.EOF) || len(all) != 4 {
		t.Fatalf("%d machines, then %v", len(all), err)
	}
	byID := map[string]workload.Job{}
	for _, j := range all {
		byID[j.ID] = j
	}
	for id, want := range map[string]struct {
		shape       resource.Vector
		user        string
		from, to    int64 // Submit
		least, most int64 // Runtime
	}{
		"1-1": {azureFlavors["a"], "1/1", 0, 300, 1, 300},
		"1-2": {azureFlavors["b"], "1/2", 0, 300, 300, 600},
		"1-3": {azureFlavors["a"], "1/2", 0, 300, 7200, 86400},
		"2-1": {azureFlavors["b"], "2/2", 600, 900, 600, 7200},
	} {
		j := byID[id]
		if !j.Shape.Equal(want.shape) || j.User != want.user || j.Size != 1 || j.Preemptible || j.Waited != -1 {
			t.Errorf("%s: %+v", id, j)
		}
		if j.Submit < want.from || j.Submit >= want.to || j.Runtime < want.least || j.Runtime >= want.most {
			t.Errorf("%s comes at %d for %d seconds, want [%d, %d) and [%d, %d)", id, j.Submit, j.Runtime, want.from, want.to, want.least, want.most)
		}
	}
	if byID["1-2"].Submit != byID["1-3"].Submit {
		t.Error("the machines of a batch come at different times")
	}
	if diff := cmp.Diff(workload.Account{Lines: 2, Jobs: 4}, a.Account()); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
}

func TestBrokenLinesOfAzureAreCountedAndNamed(t *testing.T) {
	const fine = "300 a,\n"
	for name, tc := range map[string]struct {
		flavors, lifetimes string
		want               []workload.Skipped
	}{
		"a line that the lifetimes do not have": {
			fine + "600 a,\n900 a,\n", "300 U0,\n900 U0,\n", []workload.Skipped{{"has no partner of the same time in the other file", 1, []int64{2}}},
		},
		"a line that only the lifetimes have": {
			fine + "900 a,\n", "300 U0,\n600 U0,\n900 U0,\n", []workload.Skipped{{"has no partner of the same time in the other file", 1, []int64{2}}},
		},
		"fewer lifetimes":         {fine + "600 a,a,\n", "300 U0,\n600 U0,\n", []workload.Skipped{{"has not as many batches and machines as its partner", 1, []int64{2}}}},
		"batches in other places": {fine + "600 a,|,a\n", "300 U0,\n600 U0,U0,|\n", []workload.Skipped{{"has not as many batches and machines as its partner", 1, []int64{2}}}},
		"an unknown flavor":       {fine + "600 a,x,\n", "300 U0,\n600 U0,U0,\n", []workload.Skipped{{"has a flavor that is not in the map", 1, []int64{2}}}},
		"an unknown bin":          {fine + "600 a,\n", "300 U0,\n600 U4,\n", []workload.Skipped{{"has a lifetime that is none, or in a bin that is not in the map", 1, []int64{2}}}},
		"no lifetime":             {fine + "600 a,\n", "300 U0,\n600 17,\n", []workload.Skipped{{"has a lifetime that is none, or in a bin that is not in the map", 1, []int64{2}}}},
		"a negative bin":          {fine + "600 a,\n", "300 U0,\n600 U-1,\n", []workload.Skipped{{"has a lifetime that is none, or in a bin that is not in the map", 1, []int64{2}}}},
		"disorder":                {fine + "300 a,\n200 a,\n", "300 U0,\n", []workload.Skipped{{"is not later than the line before", 2, []int64{2, 3}}}},
		"words and blanks":        {fine + "\nwhen what\n", "300 U0,\n", []workload.Skipped{{"is blank", 1, []int64{2}}, {"has something else where a number should be", 1, []int64{3}}}},
		"columns":                 {fine + "600 a, a,\n", "300 U0,\n600 U0,\n", []workload.Skipped{{"has too few or too many columns", 1, []int64{2}}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := azure(t, tc.flavors, tc.lifetimes, 1, 0)
			all, err := machines(a)
			if !errors.Is(err, io.EOF) || len(all) == 0 {
				t.Fatalf("%d machines, then %v", len(all), err)
			}
			got := a.Account()
			if diff := cmp.Diff(tc.want, got.Skipped); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			used := int64(0)
			for _, s := range got.Skipped {
				used -= s.Lines
			}
			if used += got.Lines; used < 1 || int64(len(all)) != got.Jobs {
				t.Errorf("%d lines used, %d machines of %d", used, len(all), got.Jobs)
			}
		})
	}
}

func TestFilesOfWhichNoLineCanBeUsedAreRefused(t *testing.T) {
	for _, text := range []string{"", "; header of something else\n", "300 x,\n"} {
		_, err := machines(azure(t, text, "300 U0,\n", 1, 0))
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Field != "trace" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// manyLines returns lines with three batches of two.
func manyLines(n int) (flavors, lifetimes string) {
	var f, l strings.Builder
	for i := range n {
		fmt.Fprintf(&f, "%d a,a,|,b,a,|,a,b,|,\n", 300*(i+1))
		fmt.Fprintf(&l, "%d U0,C0,|,U1,C1,|,U3,U2,|,\n", 300*(i+1))
	}
	return f.String(), l.String()
}

func TestASmallerShareKeepsBatchesOfALargerOne(t *testing.T) {
	flavors, lifetimes := manyLines(400)
	all, _ := machines(azure(t, flavors, lifetimes, 1, 0.5))
	whole := map[string]workload.Job{}
	before := int64(0)
	for _, j := range all {
		if j.Submit < before {
			t.Fatalf("%s comes before the one before", j.ID)
		}
		before = j.Submit
		whole[j.ID] = j
	}
	thinned := azure(t, flavors, lifetimes, 0.3, 0.2)
	few, _ := machines(thinned)
	batches, spots := map[string]int{}, 0
	for _, j := range few {
		same := whole[j.ID]
		if j.Preemptible && !same.Preemptible {
			t.Errorf("%s is preemptible with a smaller share only", j.ID)
		}
		if j.Preemptible {
			spots++
		}
		same.Preemptible = j.Preemptible
		if diff := cmp.Diff(same, j); diff != "" {
			t.Errorf("%s is another (-whole +thinned):\n%s", j.ID, diff)
		}
		batches[j.User]++
	}
	for batch, n := range batches {
		if n != 2 {
			t.Errorf("of batch %s there are %d machines of two", batch, n)
		}
	}
	if n := len(batches); n < 1200*0.26 || n > 1200*0.34 {
		t.Errorf("%d of 1200 batches were kept, want three in ten", n)
	}
	if share := float64(spots) / float64(len(few)); share < 0.14 || share > 0.26 {
		t.Errorf("%.2f of the machines are preemptible, want one in five", share)
	}
	if len(few)+int(thinned.Thinned()) != len(all) {
		t.Errorf("%d machines and %d left out are not %d", len(few), thinned.Thinned(), len(all))
	}
}

// Of the lifetimes that are cut off in bin 0, the same share ends in each later bin as of the
// others that reached it.
func TestALifetimeThatWasCutOffGoesOnAsThoseThatWereNot(t *testing.T) {
	var f, l strings.Builder
	f.WriteString("300 " + strings.Repeat("a,", 3000) + "\n600 " + strings.Repeat("a,", 10_000) + "\n")
	l.WriteString("300 " + strings.Repeat("U1,", 1000) + strings.Repeat("U2,", 1500) + strings.Repeat("U3,", 500) + "\n600 " + strings.Repeat("C0,", 10_000) + "\n")
	all, _ := machines(azure(t, f.String(), l.String(), 1, 0))
	counts := make([]int, len(azureBins))
	for _, j := range all[3000:] {
		for b, bin := range azureBins {
			if j.Runtime >= bin.From && j.Runtime < bin.To {
				counts[b]++
			}
		}
	}
	for b, want := range []int{0, 3333, 5000, 1667} {
		if got := counts[b]; got < want-200 || got > want+200 {
			t.Errorf("%d of 10000 end in bin %d, want about %d", got, b, want)
		}
	}
}

func TestTheMapsOfAzureAreRead(t *testing.T) {
	flavors, err := workload.ReadAzureFlavors(strings.NewReader("1,0.75 a\n\n16,112 b\n"))
	if diff := cmp.Diff(azureFlavors, flavors); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	bins, err := workload.ReadAzureBins(strings.NewReader("0 0\n300 1\n600 2\n900 2\n1200 3\n"))
	if diff := cmp.Diff(workload.AzureBins{{0, 300}, {300, 600}, {600, 1200}, {1200, 1500}}, bins); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "a b\n", "1 a\n", "0,1 a\n", "1,0 a\n", "1,2\n", "1,NaN a\n"} {
		if _, err := workload.ReadAzureFlavors(strings.NewReader(text)); !fault.Is(err, fault.Invalid) {
			t.Errorf("flavors %q: %v", text, err)
		}
	}
	for _, text := range []string{"", "300 1\n", "0 0\n600 1\n", "0 0\n300 2\n", "0 0\n300 1\n300 1\n", "0 0\nx 1\n", "0 -1\n"} {
		if _, err := workload.ReadAzureBins(strings.NewReader(text)); !fault.Is(err, fault.Invalid) {
			t.Errorf("bins %q: %v", text, err)
		}
	}
}

// azureFolder writes a folder in the form of the traces. files replaces files, or omits them with
// "".
func azureFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	all := map[string]string{
		"flav_map.txt": "1,0.75 a\n16,112 b\n", "v1.interval_map.txt": "0 0\n300 1\n",
		"v1.dev.txt": "300 a,\n", "v1.dev.c600.txt": "300 U0,\n", "v1.test.txt": "600 b,\n", "v1.test.c900.txt": "600 C1,\n",
	}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range all {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheTracesOfAFolderFollowEachOther(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"both parts": nil, "gzip'ed": {"v1.dev.txt": "", "v1.dev.txt.gz": zipped(t, "300 a,\n")},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := workload.OpenAzure(azureFolder(t, files), azureChance(), 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			all, err := machines(f)
			if !errors.Is(err, io.EOF) || len(all) != 2 || all[0].Shape.VCPUs != 1 || all[1].Shape.VCPUs != 16 || all[0].ID == all[1].ID {
				t.Errorf("%v, then %v", all, err)
			}
			if diff := cmp.Diff(workload.Account{Lines: 2, Jobs: 2}, f.Account()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFolderWithoutTracesIsRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no flavors":       {"flav_map.txt": ""},
		"broken flavors":   {"flav_map.txt": "what"},
		"no bins":          {"v1.interval_map.txt": ""},
		"no part":          {"v1.dev.txt": "", "v1.test.txt": ""},
		"no lifetimes":     {"v1.test.c900.txt": ""},
		"broken gzip":      {"v1.dev.txt": "\x1f\x8b broken"},
		"two of lifetimes": {"v1.dev.c700.txt": "300 U0,\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := workload.OpenAzure(azureFolder(t, files), azureChance(), 1, 0); !fault.Is(err, fault.Invalid) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := workload.OpenAzure(azureFolder(t, nil), azureChance(), 1.5, 0); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != "keep" {
		t.Errorf("%v", err)
	}
}

func TestTheAzureTracesAreReadWhole(t *testing.T) {
	data := os.Getenv("ALMANAC_DATA")
	if data == "" {
		t.Skip("ALMANAC_DATA does not name the folder of the traces")
	}
	f, err := workload.OpenAzure(filepath.Join(data, "azure"), azureChance(), 1, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before, largest := int64(0), int64(0)
	for {
		j, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if j.Submit < before || j.Runtime < 1 || j.Runtime >= 20*86400+300 {
			t.Fatalf("after %d comes %+v", before, j)
		}
		before, largest = j.Submit, max(largest, j.Shape.VCPUs)
	}
	if diff := cmp.Diff(workload.Account{Lines: 2638, Jobs: 259_159 + 410_276}, f.Account()); diff != "" || largest != 16 {
		t.Errorf("largest %d (-want +got):\n%s", largest, diff)
	}
}
