// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

// exampleWith returns an example with parts of it replaced; old and new parts alternate.
func exampleWith(t testing.TB, name string, parts ...string) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/examples/whatif/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(parts...).Replace(string(raw))
	if len(parts) > 0 && text == string(raw) {
		t.Fatalf("%s has none of %q", name, parts)
	}
	return text
}

func stage(t testing.TB, question string) whatif.StageAnswer {
	t.Helper()
	answer, err := whatif.Stage(strings.NewReader(question))
	if err != nil {
		t.Fatalf("%v, of %s", err, question)
	}
	return answer
}

// told formats an answer briefly: the reason or the VMs, the transfers, and the pools.
func told(a whatif.StageAnswer) []string {
	list := []string{a.Reason}
	if a.Accepted != (a.Reason == "") {
		list = append(list, "accepted or a reason, not both nor neither")
	}
	for _, node := range slices.Sorted(maps.Keys(a.Placement)) {
		list = append(list, fmt.Sprintf("%s:%d", node, a.Placement[node]))
	}
	for _, t := range a.Transfers {
		list = append(list, fmt.Sprintf("%s %s->%s [%d,%d) by %d", t.ID, t.Image, t.Node, t.Start, t.End, t.Deadline))
	}
	for _, node := range slices.Sorted(maps.Keys(a.Pool)) {
		for _, i := range a.Pool[node] {
			list = append(list, fmt.Sprintf("%s has %s until %d", node, i.Image, i.Expire))
		}
	}
	return list
}

// due returns a question with pending transfers of 48 each and no request; ids and deadlines
// alternate.
func due(strategy string, now int, pending ...any) string {
	var list []string
	for i := 0; i < len(pending); i += 2 {
		list = append(list, fmt.Sprintf(`{"id": %q, "image": %q, "node": "N1", "duration": 48, "deadline": %d}`, pending[i], strings.ToUpper(pending[i].(string)), pending[i+1]))
	}
	return fmt.Sprintf(`{"now": %d, "bandwidth": 12.5, "strategy": %q, "nodes": [{"name": "N1", "capacity": {"cpu": 2, "memory": 1024}}], "pending": [%s]}`,
		now, strategy, strings.Join(list, ", "))
}

// asking adds a request for one VM to a question.
func asking(question, image string, start, end int) string {
	return strings.TrimSuffix(question, "}") +
		fmt.Sprintf(`, "request": {"vms": 1, "resources": {"cpu": 1, "memory": 512}, "image": %q, "size": 600, "start": %d, "end": %d}}`, image, start, end)
}

func TestStageAnswersThePapersQuestions(t *testing.T) {
	abcd := []any{"a", 100, "b", 200, "c", 150, "d", 140}
	pooled := func(image string, expire int) string {
		return strings.Replace(due("edf", 0), `1024}}`, fmt.Sprintf(`1024}, "pool": [{"image": %q, "expire": %d}]}`, image, expire), 1)
	}
	piggyback := strings.Replace(due("edf", 0, "a", 100), `100}`, `100, "expire": 200}`, 1)
	for name, tc := range map[string]struct {
		question string
		want     []string
	}{
		"A000-1 with 4": {exampleWith(t, "stage"), []string{"", "N2:2", "N3:2", "request/N2 A->N2 [0,48) by 150", "N2 has A until 250", "N3 has A until 300"}},
		"A000-1 with 5": {exampleWith(t, "stage", `"vms": 4`, `"vms": 5`), []string{
			"", "N1:1", "N2:2", "N3:2", "request/N2 A->N2 [0,48) by 150", "request/N1 A->N1 [48,96) by 150",
			"N1 has A until 250", "N2 has A until 250", "N3 has A until 300"}},
		"A000-1 with 6": {exampleWith(t, "stage", `"vms": 4`, `"vms": 6`), []string{"resources", "N3 has A until 300"}},
		"A000-2 edf":    {due("edf", 0, "a", 100, "b", 200, "c", 150), []string{"", "a A->N1 [0,48) by 100", "c C->N1 [48,96) by 150", "b B->N1 [96,144) by 200", "N1 has A until 100", "N1 has B until 200", "N1 has C until 150"}},
		"A000-2 jit":    {due("jit", 0, "a", 100, "b", 200, "c", 150), []string{"", "a A->N1 [52,100) by 100", "c C->N1 [102,150) by 150", "b B->N1 [152,200) by 200", "N1 has A until 100", "N1 has B until 200", "N1 has C until 150"}},
		"A000-3 edf": {asking(due("edf", 0, "a", 100, "b", 200, "c", 150), "D", 140, 300), []string{"", "N1:1",
			"a A->N1 [0,48) by 100", "request/N1 D->N1 [48,96) by 140", "c C->N1 [96,144) by 150", "b B->N1 [144,192) by 200",
			"N1 has A until 100", "N1 has B until 200", "N1 has C until 150", "N1 has D until 300"}},
		"A000-3 jit": {asking(due("jit", 0, "a", 100, "b", 200, "c", 150), "D", 140, 300), []string{"", "N1:1",
			"a A->N1 [6,54) by 100", "request/N1 D->N1 [54,102) by 140", "c C->N1 [102,150) by 150", "b B->N1 [152,200) by 200",
			"N1 has A until 100", "N1 has B until 200", "N1 has C until 150", "N1 has D until 300"}},
		"A000-3 e by 150": {asking(due("edf", 0, abcd...), "E", 150, 300), []string{"transfer",
			"a A->N1 [0,48) by 100", "d D->N1 [48,96) by 140", "c C->N1 [96,144) by 150", "b B->N1 [144,192) by 200",
			"N1 has A until 100", "N1 has B until 200", "N1 has C until 150", "N1 has D until 140"}},
		"A000-3 e by 240": {asking(due("jit", 0, abcd...), "E", 240, 300), []string{"", "N1:1",
			"a A->N1 [0,48) by 100", "d D->N1 [48,96) by 140", "c C->N1 [96,144) by 150", "b B->N1 [144,192) by 200", "request/N1 E->N1 [192,240) by 240",
			"N1 has A until 100", "N1 has B until 200", "N1 has C until 150", "N1 has D until 140", "N1 has E until 300"}},
		"A000-4 at 6": {due("edf", 6, abcd...), []string{"",
			"a A->N1 [6,54) by 100", "d D->N1 [54,102) by 140", "c C->N1 [102,150) by 150", "b B->N1 [150,198) by 200",
			"N1 has A until 100", "N1 has B until 200", "N1 has C until 150", "N1 has D until 140"}},
		"A000-4 at 7": {due("edf", 7, abcd...), []string{"transfer",
			"a A->N1 [7,55) by 100", "d D->N1 [55,103) by 140", "c C->N1 [103,151) by 150", "b B->N1 [151,199) by 200",
			"N1 has A until 100", "N1 has B until 200", "N1 has C until 150", "N1 has D until 140"}},
		"A000-4 at 7 with a request": {asking(due("edf", 7, abcd...), "E", 1000, 2000), []string{"transfer",
			"a A->N1 [7,55) by 100", "d D->N1 [55,103) by 140", "c C->N1 [103,151) by 150", "b B->N1 [151,199) by 200",
			"N1 has A until 100", "N1 has B until 200", "N1 has C until 150", "N1 has D until 140"}},
		"A000-5 VW1":           {asking(due("edf", 0), "A", 100, 200), []string{"", "N1:1", "request/N1 A->N1 [0,48) by 100", "N1 has A until 200"}},
		"A000-5 VW2":           {asking(pooled("A", 200), "A", 150, 300), []string{"", "N1:1", "N1 has A until 300"}},
		"A000-5 VW3":           {asking(pooled("A", 300), "A", 250, 280), []string{"", "N1:1", "N1 has A until 300"}},
		"A000-5 VW4":           {asking(pooled("A", 300), "A", 300, 310), []string{"", "N1:1", "N1 has A until 310"}},
		"A000-5 VW5":           {asking(pooled("A", 310), "A", 311, 320), []string{"", "N1:1", "request/N1 A->N1 [0,48) by 311", "N1 has A until 320"}},
		"A000-6 VW2":           {asking(piggyback, "A", 500, 600), []string{"", "N1:1", "a A->N1 [0,48) by 100", "N1 has A until 600"}},
		"A000-6 VW2'":          {asking(due("edf", -10, "a", 100), "A", 90, 100), []string{"", "N1:1", "request/N1 A->N1 [-10,38) by 90", "a A->N1 [38,86) by 100", "N1 has A until 100"}},
		"A000-9":               {asking(due("edf", 0), "A", 40, 100), []string{"transfer"}},
		"A000-9 in the pool":   {asking(pooled("A", 40), "A", 40, 100), []string{"", "N1:1", "N1 has A until 100"}},
		"it starts now":        {asking(pooled("A", 40), "A", 0, 100), []string{"", "N1:1", "N1 has A until 100"}},
		"a full pool":          {exampleWith(t, "stage-pool"), []string{"pool", "N1 has A until 300", "N2 has B until 300"}},
		"no room for the VMs":  {exampleWith(t, "stage-resources"), []string{"resources", "N2 has A until 300"}},
		"no time for another":  {exampleWith(t, "stage-transfer", "jit", "edf", `"deadline": 200`, `"deadline": 250`), []string{"transfer", "a A->N1 [0,48) by 100", "d D->N1 [48,96) by 140", "c C->N3 [96,144) by 150", "b B->N2 [144,192) by 250", "N1 has A until 100", "N1 has D until 140", "N2 has B until 250", "N3 has C until 150"}},
		"no image":             {strings.Replace(asking(due("edf", 0), "A", 10, 100), `"image": "A", "size": 600, `, "", 1), []string{"", "N1:1"}},
		"one under way":        {strings.Replace(due("edf", 20, "r", 400, "a", 110), `"deadline": 400`, `"deadline": 400, "start": 0`, 1), []string{"", "r R->N1 [0,48) by 400", "a A->N1 [48,96) by 110", "N1 has A until 110", "N1 has R until 400"}},
		"larger than any pool": {strings.Replace(asking(due("edf", 0), "A", 100, 200), `"nodes"`, `"pool_limit": 599.5, "nodes"`, 1), []string{"pool"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(stage(t, tc.question))); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.question, diff)
			}
		})
	}
}

func TestFractionsOfSizeTakeWholeTimes(t *testing.T) {
	question := strings.NewReplacer(`12.5`, `0.0125`, `600`, `0.6`).Replace(asking(due("edf", 0), "A", 48, 100))
	if a := stage(t, question); !a.Accepted || a.Transfers[0].End != 48 {
		t.Errorf("0.6 at 0.0125 take 48: %+v", a)
	}
}

func TestAStageQuestionThatMakesNoSenseNamesItsField(t *testing.T) {
	for field, question := range map[string]string{
		"now":                                exampleWith(t, "stage", `"now": 0`, `"now": 9007199254740993`),
		"bandwidth":                          exampleWith(t, "stage", `"bandwidth": 12.5`, `"bandwidth": 0`),
		"strategy":                           exampleWith(t, "stage", `"edf"`, `"fifo"`),
		"pool_limit":                         exampleWith(t, "stage-pool", `"pool_limit": 1000`, `"pool_limit": -1`),
		"nodes":                              `{"bandwidth": 1}`,
		"nodes[0].name":                      exampleWith(t, "stage", `"name": "N1",`, ``),
		"nodes[1].name":                      exampleWith(t, "stage", `"N2"`, `"n1"`),
		"nodes[0].capacity":                  `{"bandwidth": 1, "nodes": [{"name": "N1"}]}`,
		"nodes[0].capacity.cpu":              `{"bandwidth": 1, "nodes": [{"name": "N1", "capacity": {"cpu": 1, "vcpus": 1}}]}`,
		"nodes[0].capacity.memory":           `{"bandwidth": 1, "nodes": [{"name": "N1", "capacity": {"memory": 1, "memory_mb": 1}}]}`,
		"nodes[0].capacity.vcpus":            `{"bandwidth": 1, "nodes": [{"name": "N1", "capacity": {"cpu": -1}}]}`,
		"nodes[0].capacity.gpus":             `{"bandwidth": 1, "nodes": [{"name": "N1", "capacity": {"gpus": 1}}]}`,
		"nodes[0].committed[0].end":          exampleWith(t, "stage", `"end": 200`, `"end": 100`),
		"nodes[0].committed[0].resources":    exampleWith(t, "stage", `{"vcpus": 1, "memory_mb": 512}}]`, `{"vcpus": 3}}]`),
		"nodes[2].pool[0].expire":            exampleWith(t, "stage", `"A", "expire": 300`, `"A"`),
		"nodes[2].pool[0].image":             exampleWith(t, "stage", `"image": "A", "expire"`, `"expire"`),
		"nodes[2].pool[0].size":              exampleWith(t, "stage", `"expire": 300`, `"expire": 300, "size": 500`),
		"pending[1].id":                      due("edf", 0, "a", 100, "a", 200),
		"pending[0].image":                   strings.Replace(due("edf", 0, "a", 100), `"image": "A", `, "", 1),
		"pending[0].node":                    exampleWith(t, "stage-transfer", `"node": "N1", "duration": 48, "deadline": 100`, `"node": "N9", "duration": 48, "deadline": 100`),
		"pending[0].duration":                strings.Replace(due("edf", 0, "a", 100), `48`, `0`, 1),
		"pending[0].deadline":                strings.Replace(due("edf", 0, "a", 100), `, "deadline": 100`, ``, 1),
		"pending[0].expire":                  strings.Replace(due("edf", 0, "a", 100), `100}`, `100, "expire": 99}`, 1),
		"pending[0].start":                   strings.Replace(due("edf", 0, "a", 100), `100}`, `100, "start": 1}`, 1),
		"pending[0].size":                    strings.Replace(due("edf", 0, "a", 100), `100}`, `100, "size": -1}`, 1),
		"request.vms":                        exampleWith(t, "stage", `"vms": 4`, `"vms": 0`),
		"request.start":                      exampleWith(t, "stage", `"now": 0`, `"now": 151`),
		"request.end":                        exampleWith(t, "stage", `"end": 250`, `"end": 150`),
		"request.size":                       exampleWith(t, "stage", `"size": 600,`, ``),
		"request.image":                      asking(due("edf", 0), "", 100, 200),
		"request.resources":                  exampleWith(t, "stage", `"resources": {"vcpus": 1, "memory_mb": 512},`, ``),
		"request.resources.memory_mb":        strings.Replace(asking(due("edf", 0), "A", 100, 200), `"memory": 512`, `"memory": -512`, 1),
		"request.vm":                         exampleWith(t, "stage", `"vms"`, `"vm"`),
		"input":                              "{",
		"nodes[0].capacity.custom":           `{"bandwidth": 1, "nodes": [{"name": "N1", "capacity": {"custom": {"gpu": 1}}}]}`,
		"nodes[0].committed[0].start":        exampleWith(t, "stage", `"start": 100`, `"start": 9007199254740993`),
		"nodes[0].committed[0].resources.cp": exampleWith(t, "stage", `{"vcpus": 1, "memory_mb": 512}}]`, `{"cp": 3}}]`),
	} {
		t.Run(field, func(t *testing.T) {
			_, err := whatif.Stage(strings.NewReader(question))
			if got := fault.Of(err); err == nil || got.Kind != fault.Invalid || got.Field != field {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhatIsCommittedSaysWhenAndHowMuch(t *testing.T) {
	for field, question := range map[string]string{
		"nodes[0].committed[0].resources": exampleWith(t, "stage", `{"vcpus": 1, "memory_mb": 512}}]`, `{}}]`),
		"nodes[0].committed[0].start":     exampleWith(t, "stage", `"start": 100, `, ``),
	} {
		_, err := whatif.Stage(strings.NewReader(question))
		if got := fault.Of(err); err == nil || got.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestTheCostOfAnAnswerGrowsAtMostWithTheSquareOfThePendingTransfers(t *testing.T) {
	for _, strategy := range []string{"edf", "jit"} {
		for _, pool := range []string{"", `"pool_limit": 1200, `} {
			cost := func(transfers int) time.Duration {
				var pending []any
				for i := range transfers {
					pending = append(pending, fmt.Sprint("p", i), 48*(i+1))
				}
				question := strings.Replace(asking(due(strategy, 0, pending...), "A", 150, 250), `"nodes"`, pool+`"nodes"`, 1)
				start := time.Now()
				if a := stage(t, question); a.Reason == "" {
					t.Errorf("%s, %s: accepted", strategy, pool)
				}
				return time.Since(start)
			}
			few, many := cost(250), cost(1000)
			for try := 0; many > 40*few && try < 30; try++ { // other work on the machine slows each of them
				few, many = min(few, cost(250)), min(many, cost(1000))
			}
			if t.Logf("%s, %s: %v, and %v for four times as many", strategy, pool, few, many); many > 40*few {
				t.Errorf("%s, %s: four times as many take %v instead of %v", strategy, pool, many, few)
			}
		}
	}
}

// FuzzStage checks that every input is answered, or refused as invalid.
func FuzzStage(f *testing.F) {
	for _, name := range []string{"stage", "stage-pool", "stage-resources", "stage-transfer"} {
		f.Add(exampleWith(f, name))
	}
	f.Add(due("jit", 6, "a", 100, "b", 200))
	f.Add(asking(strings.Replace(due("edf", 20, "r", 400, "a", 110), `"deadline": 400`, `"deadline": 400, "start": 0`, 1), "A", 90, 100))
	f.Fuzz(func(t *testing.T, question string) {
		a, err := whatif.Stage(strings.NewReader(question))
		if err != nil {
			if got, ok := errors.AsType[*fault.Error](err); !ok || got.Kind != fault.Invalid {
				t.Fatalf("%v, of %s", err, question)
			}
			return
		}
		if a.Accepted != (a.Reason == "") {
			t.Fatalf("%+v, of %s", a, question)
		}
		for _, tr := range a.Transfers {
			if a.Accepted && tr.End > tr.Deadline && !strings.Contains(question, "pending") {
				t.Fatalf("a transfer is late: %+v, of %s", a, question)
			}
		}
	})
}
