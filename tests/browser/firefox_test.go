// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// startBrowser starts a Firefox for a test below TestThePageWorksInFirefox, and a Chromium for each other one.
func startBrowser(t *testing.T) *labtest.Browser {
	t.Helper()
	if strings.HasPrefix(t.Name(), "TestThePageWorksInFirefox/") {
		return labtest.StartFirefox(t)
	}
	return labtest.StartBrowser(t)
}

// What a user does with the page, in the other engine: pointer, keyboard, fields of time, zones, lists, changes and
// operators' pages. The tests that measure pixels, colors, paper or accessibility run in Chromium alone.
func TestThePageWorksInFirefox(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"hosts are booked, extended and canceled":      TestHostsAreBookedExtendedAndCanceledInTheBrowser,
		"hosts are booked with the keyboard":           TestHostsAreBookedWithTheKeyboard,
		"hostile names are text":                       TestHostileNamesAreTextInTheBrowser,
		"maintenance is planned and canceled":          TestMaintenanceIsPlannedAndCanceledInTheBrowser,
		"a booking leaves nothing behind":              TestABookingLeavesNoOfferAndNoQuestionBehind,
		"the offered time is booked in each zone":      TestTheOfferedTimeIsBookedInWhateverZoneItIsShown,
		"the second hour of October's night":           TestADragIntoTheSecondHourOfOctobersNightBooksThatHour,
		"a filled form stays":                          TestAFilledFormStaysOverADragTheButtonAReloadAndBack,
		"a time is found in three actions":             TestATimeIsFoundInThreeActions,
		"a refused extension shows what is in the way": TestARefusedExtensionShowsWhatIsInTheWayAndTheLatestEnd,
		"an offer for ranges is booked":                TestOffersAreComparedAndOneIsBookedWithOnePress,
		"an offer that is taken is refused":            TestAnOfferThatSomebodyElseHasTakenIsRefusedAndOffersAreAskedForAgain,
		"an open offer is renewed":                     TestAnOpenOfferIsRenewedWhenSomebodyElseBooks,
		"a filter is written in plain words":           TestAFilterIsWrittenInPlainWordsSavedAndDeleted,
		"a field for a time":                           TestAFieldForATimeHasNoHalvesOfTheDayAndBothHalvesOfTheNight,
		"an offer far below is scrolled to":            TestAnOfferFarBelowIsScrolledToAndItsRowAloneIsShown,
		"Back leads to the place before a move":        TestBackLeadsToThePlaceInTheCalendarBeforeAMove,
		"a damaged link shows the page":                TestADamagedLinkShowsThePage,
		"a reservation is shown while somebody types":  TestAReservationIsShownAsItIsWhileSomebodyTypes,
		"a change is undone":                           TestAChangeIsUndoneInTheBrowser,
		"what a change can change is changed":          TestWhatAChangeCanChangeIsChangedInTheBrowser,
		"a cancellation of what has changed":           TestACancellationOfWhatHasChangedAsksAgain,
		"operators' pages go on after a failure":       TestOperatorsPagesGoOnAfterAFailure,
		"focus stays over a reading":                   TestFocusAndWhatIsTypedStayOverAReading,
		"a host is marked as out of order":             TestAnOperatorFollowsAHostAndMarksItAsOutOfOrder,
	} {
		t.Run(name, test)
	}
}
