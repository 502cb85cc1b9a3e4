// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// The page of a part names its group and the other parts, changes what the part has alone, and its commands book, change
// and cancel the whole group.
func TestThePageOfAPartOfAGroupOffersOnlyWhatTheServiceDoes(t *testing.T) {
	p, s := startPage(t)
	begin, lasts := time.Now().Add(24*time.Hour).Truncate(time.Second), v1.Duration(7200)
	group, err := s.Client(t).CreateGroup(t.Context(), v1.GroupRequest{
		Name: "O'Hara's cluster", StartTime: &begin, Duration: &lasts,
		Parts: []v1.GroupPart{
			{Quantity: &v1.QuantityRange{Min: 2, Max: 2}},
			{Kind: "instance", Quantity: &v1.QuantityRange{Min: 3, Max: 3}, Resources: &v1.Resources{VCPUs: 2, MemoryMB: 4096}, Affinity: "same"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second := group.Reservations[0], group.Reservations[1]
	run := func(element string) {
		t.Helper()
		command := labtest.Evaluate[string](p.Browser, fmt.Sprintf(`document.querySelector(%q).textContent`, element))
		program, rest, _ := strings.Cut(command, " ")
		if program != "almanac" {
			t.Fatalf("the command is %s", command)
		}
		built.Shell(t, s.Folder, []string{"ALMANAC_URL=" + s.URL}, "bash", "-c", built.Commands()+"/almanac "+rest)
	}

	p.open("reservation/"+first.ID, "#of-group")
	p.says("#of-group", "one of the 2 parts of the group “O'Hara's cluster”")
	p.says("#group-name", "O'Hara's cluster")
	for _, width := range []int{1440, 390} {
		p.Look(width, 900, false)
		if wide := labtest.Evaluate[int](p.Browser, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("at %d pixels the page is %d wide", width, wide)
		}
		p.Picture(fmt.Sprintf("part-%d", width))
	}
	if forms := labtest.Evaluate[string](p.Browser, `[...document.querySelectorAll('.forms form button[id]')].map(one => one.id).join(' ')`); forms != "submit-name submit-quantity" {
		t.Errorf("the page has the buttons %q", forms)
	}
	if there := labtest.Evaluate[bool](p.Browser, `Boolean(document.querySelector('#cancel'))`); there {
		t.Error("the page offers to cancel one part, which the service refuses")
	}
	p.replace("#quantity", "3")
	p.Click("#submit-quantity")
	built.Eventually(t, "the part has no third host", func() bool {
		got, err := s.Client(t).GetReservation(t.Context(), first.ID)
		return err == nil && got.Quantity == 3
	})

	p.says("#same-command", `"kind":"host","quantity":3`)
	run("#same-command")
	again := ""
	for _, r := range reservations(t, s) {
		if r.LeaseID != nil && *r.LeaseID != group.ID {
			again += fmt.Sprintln(fault.Counted(r.Quantity, r.Kind), r.Affinity, r.Start.Equal(first.Start), r.End.Equal(first.End))
		}
	}
	if again != "3 hosts  true true\n3 instances same true true\n" && again != "3 instances same true true\n3 hosts  true true\n" {
		t.Errorf("the command books\n%s", again)
	}
	run("#change-group") // to the end that it has
	p.Click(fmt.Sprintf("a[href='#/reservation/%s']", second.ID))
	p.Await(fmt.Sprintf("a[href='#/reservation/%s']", first.ID))
	run("#delete-group")
	p.Await(".badge.canceled")
	p.Eventually("there is nothing to change any more", `!document.querySelector('#of-group')`)
	p.wellBehaved()
}
