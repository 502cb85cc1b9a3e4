// SPDX-License-Identifier: Apache-2.0

package staging

import "fmt"

// length names how long each virtual machine of the best-effort work of a mix runs.
type length string

// The lengths of the thesis.
const (
	long   length = "long"
	medium length = "medium"
	short  length = "short"
)

// meanSeconds is the mean duration of a virtual machine of best-effort work, in seconds, by length.
var meanSeconds = map[length]int64{long: 900, medium: 600, short: 300}

// mix is one of the 36 mixtures of reservations and best-effort work.
type mix struct {
	Length length
	// Width is the range of the share of all slots that a reservation occupies: more than the first
	// percentage, and at most the second.
	Width string
	// BestEffort is the share of all work that is best-effort, in percent.
	BestEffort int
}

// The widths, in quarters of all slots, and the percentages of best-effort work.
var (
	widths = []string{"000-025", "025-050", "050-075", "075-100"}
	shares = []int{25, 50, 75}
)

// allMixes returns the 36 mixes in the order of the thesis' tables.
func allMixes() (all []mix) {
	for _, l := range []length{long, medium, short} {
		for _, w := range widths {
			for _, s := range shares {
				all = append(all, mix{l, w, s})
			}
		}
	}
	return all
}

// String returns the name of a mix as in the tables of the thesis.
func (m mix) String() string {
	return fmt.Sprintf("%s %s %d-%d", m.Length, m.Width, m.BestEffort, 100-m.BestEffort)
}

// printed are the seconds until all best-effort work of a mix is done, as the thesis prints them.
type printed struct{ plain, predeployed, prefetched, reused int64 }

// inThesis contains tables 8.3 and 8.5.
var inThesis = map[mix]printed{
	{long, "000-025", 25}:   {38880, 39000, 39120, 39120},
	{long, "000-025", 50}:   {41160, 41880, 42180, 41760},
	{long, "000-025", 75}:   {41160, 43500, 44640, 43920},
	{long, "025-050", 25}:   {38400, 37200, 37380, 37560},
	{long, "025-050", 50}:   {41820, 39360, 40080, 39420},
	{long, "025-050", 75}:   {41100, 42360, 43260, 42420},
	{long, "050-075", 25}:   {37260, 37020, 37500, 37140},
	{long, "050-075", 50}:   {37320, 37500, 37680, 37620},
	{long, "050-075", 75}:   {42060, 40080, 41100, 40140},
	{long, "075-100", 25}:   {38700, 37020, 37320, 37140},
	{long, "075-100", 50}:   {41160, 37260, 37620, 37440},
	{long, "075-100", 75}:   {45780, 42180, 43500, 42180},
	{medium, "000-025", 25}: {38700, 39060, 39060, 39540},
	{medium, "000-025", 50}: {40800, 42900, 44040, 42780},
	{medium, "000-025", 75}: {40140, 43140, 45660, 42960},
	{medium, "025-050", 25}: {36840, 36960, 37200, 37140},
	{medium, "025-050", 50}: {37200, 37020, 39540, 37140},
	{medium, "025-050", 75}: {41220, 42780, 46740, 42420},
	{medium, "050-075", 25}: {33420, 33780, 34380, 33960},
	{medium, "050-075", 50}: {37260, 36780, 38580, 36600},
	{medium, "050-075", 75}: {40800, 41520, 47040, 41640},
	{medium, "075-100", 25}: {37380, 36600, 37680, 36660},
	{medium, "075-100", 50}: {38640, 37860, 40980, 38340},
	{medium, "075-100", 75}: {40800, 40860, 46080, 41220},
	{short, "000-025", 25}:  {36120, 38700, 40740, 38820},
	{short, "000-025", 50}:  {40860, 43260, 62580, 45420},
	{short, "000-025", 75}:  {41820, 45240, 81720, 47040},
	{short, "025-050", 25}:  {36600, 36540, 38820, 36840},
	{short, "025-050", 50}:  {40380, 41340, 64320, 42960},
	{short, "025-050", 75}:  {41160, 43140, 78180, 46320},
	{short, "050-075", 25}:  {30960, 31020, 32220, 32700},
	{short, "050-075", 50}:  {36900, 37200, 57840, 39900},
	{short, "050-075", 75}:  {39180, 40980, 78600, 43020},
	{short, "075-100", 25}:  {36600, 36600, 43020, 36840},
	{short, "075-100", 50}:  {37740, 37560, 64800, 38700},
	{short, "075-100", 75}:  {41040, 42840, 84540, 44940},
}

// backfilledInThesis contains tables 4.1 and 4.2 of the thesis, for work that is backfilled and not
// suspended: without virtual machines, with images in place, and with an image sent for each
// virtual machine.
var backfilledInThesis = map[mix][3]int64{
	fewLong:   {45780, 48240, 52020},
	manyShort: {41040, 44640, 87000},
}

// The mixes of tables 4.1 and 4.2.
var (
	fewLong   = mix{long, "075-100", 75}
	manyShort = mix{short, "075-100", 75}
)

// imagesInThesis is the number of images that section 4 sends for these mixes in ten hours.
var imagesInThesis = map[mix]int{fewLong: 830, manyShort: 1876}

// The thesis on peaks of disk, in GB on a node (section 8.1 and 8.3.2).
const (
	peakEDF, peakJIT           = 31.2, 2.4
	peakMixesEDF, peakMixesJIT = 30.0, 3.6
	peakMixesReuse             = 3.0
)

// The thesis on deployment times, in seconds (section 8.2): without a cache, and with a cache in
// traces III and IV; and on how much more is deployed with it at 3,550 s, in GB.
const (
	deployPlain, deployUniform, deploySkewed = 440.0, 305.0, 247.0
	leadUniform, leadSkewed                  = 25.2, 27.6
	leadAt                                   = 3550
)
