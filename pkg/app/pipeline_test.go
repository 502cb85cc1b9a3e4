// SPDX-License-Identifier: Apache-2.0

package app

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/tests/repository"
	"github.com/almanac-cloud/almanac/weighers"
)

// notBeside names the weighers of ours that do not count beside a nova-scheduler with the plugin, and why.
var notBeside = map[string]string{
	"OvercommitWeigher":       "nova-scheduler evicts nothing",
	"PeriodWeigher":           "nova-scheduler evicts nothing",
	"PreemptibleCountWeigher": "nova-scheduler evicts nothing",
	"PreemptionCostWeigher":   "nova-scheduler evicts nothing",
}

func TestAWeigherOfOursCountsBesideThePluginOrHasAReason(t *testing.T) {
	beside, err := ownWeighers(config.Config{}, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	counts, unused := map[string]bool{}, maps.Clone(notBeside)
	for _, w := range beside {
		counts[w.Name()] = true
	}
	for _, name := range weighers.Own() {
		if counts[name] == (unused[name] != "") {
			t.Errorf("%s counts beside the plugin: %v; either it is in ownWeighers, or notBeside states why not", name, counts[name])
		}
		delete(unused, name)
	}
	for name := range unused {
		t.Errorf("notBeside names %s, which does not exist", name)
	}
}

// The guide names the weighers whose sum the plugin gets.
func TestTheGuideNamesTheWeighersBesideThePlugin(t *testing.T) {
	_, chapter, _ := strings.Cut(repository.Read(t, "../../docs/api.md"), "\n### POST /v1/scheduler/weigh\n")
	chapter, _, _ = strings.Cut(chapter, "\n### ")
	beside, err := ownWeighers(config.Config{}, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range beside {
		names = append(names, w.Name())
	}
	if sum := "the sum of [" + strings.Join(names, " and ") + "]"; !strings.Contains(strings.Join(strings.Fields(chapter), " "), sum) {
		t.Errorf("docs/api.md does not say that the weight is %s", sum)
	}
}

// The page on the plugin names the multipliers of the weighers beside it, twice: with the weights, which contain them, and
// where the metadata of aggregates does not count.
func TestThePageOnThePluginNamesTheMultipliersOfTheWeighersBesideIt(t *testing.T) {
	page := repository.Read(t, "../../docs/plugin.md")
	beside, err := ownWeighers(config.Config{}, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]bool{}
	for _, w := range beside {
		counts[w.Option] = true
		if n := strings.Count(page, w.Option+"`"); n != 2 {
			t.Errorf("docs/plugin.md names %s %d times, want 2", w.Option, n)
		}
	}
	for option := range weighers.Multipliers() {
		if !counts[option] && strings.Contains(page, option) {
			t.Errorf("docs/plugin.md names %s, which does not count beside the plugin", option)
		}
	}
}

// Alone is no option of a weigher: it follows from [scheduler].
const follows = "Nova.Alone"

func TestEachOptionOfAWeigherReachesTheWeighers(t *testing.T) {
	eachField(reflect.TypeFor[config.Weighers](), nil, func(path []int, name string) {
		var c config.Config
		field := reflect.ValueOf(&c.Weighers).Elem().FieldByIndex(path)
		switch field.Kind() {
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
			field.SetMapIndex(reflect.Zero(field.Type().Key()), reflect.Zero(field.Type().Elem()))
		case reflect.Bool:
			field.SetBool(true)
		case reflect.String:
			field.SetString("x")
		case reflect.Int, reflect.Int64:
			field.SetInt(1)
		case reflect.Float64:
			field.SetFloat(1)
		default:
			t.Fatalf("%s is a %v: set it here", name, field.Kind())
		}
		classes, multipliers, ports := weighing(c, weighers.Ports{})
		reaches := len(classes) > 0 || len(multipliers) > 0 || !reflect.DeepEqual(ports, weighers.Ports{})
		if reaches == (name == follows) {
			t.Errorf("config.Weighers.%s reaches the weighers: %v", name, reaches)
		}
	})
}

// eachField calls do with the index and the name of each field of a struct, and of the structs in it.
func eachField(of reflect.Type, path []int, do func(path []int, name string)) {
	for i := range of.NumField() {
		f, at := of.Field(i), append(slices.Clone(path), i)
		if f.Type.Kind() == reflect.Struct {
			eachField(f.Type, at, func(path []int, name string) { do(path, f.Name+"."+name) })
		} else {
			do(at, f.Name)
		}
	}
}
