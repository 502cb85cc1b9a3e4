// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// report writes what was run and the results.
func (r *results) report() *sim.Report {
	report := sim.NewReport("Images there in time, and best-effort work beside reservations")
	report.Text("The experiments of Borja Sotomayor's thesis \"A Resource Management Model for VM-Based Virtual Workspaces\" (University of Chicago, 2007; paper 000 is a draft of it), on a virtual clock: with the booking code of the service, its staging of images (EDF, EDF/JIT, pools, the channel of best-effort work) and its planner of best-effort work.")
	r.tellRun(report)
	r.tellFindings(report)
	if r.has(Accuracy) {
		r.tellAccuracy(report)
	}
	if r.has(Disk) {
		r.tellDisk(report)
	}
	if r.has(Reuse) {
		r.tellReuse(report)
	}
	if r.has(Mixes) {
		r.tellImages(report)
		r.tellMixes(report)
	}
	r.tellChoices(report)
	report.Results = r.table()
	return report
}

func (r *results) tellRun(report *sim.Report) {
	report.Heading(2, "Setup")
	machine := fmt.Sprintf("%d nodes of %d CPUs, and virtual machines of one CPU; images of %d MB, and a repository that sends %v MB/s to reservations and as much to best-effort work, so that an image takes %d s.", r.Nodes, r.CPUs, r.ImageSize, r.Rate, r.transfer())
	items := []string{machine,
		fmt.Sprintf("Runs of each setting: %d, and %d of the mixes, with other random numbers (seed %d); all that is compared in a run gets the same requests; ± is the 95 %% interval of the mean (Student's t).", r.Runs, r.MixRuns, r.Seed),
		fmt.Sprintf("Work takes %v %% longer in a virtual machine.%s", 100*r.Slowdown, r.overheads()),
		"The thesis leaves some settings open. Chosen with its results in sight were: that durations spread by 20 %, that reservations start at drawn intervals, that each virtual machine has a copy of its image on disk, and that copies are made at 10 MB/s. For all but the last there is a source in the thesis or in its program.",
	}
	if r.PoolLimit > 0 {
		items = append(items, fmt.Sprintf("A node keeps at most %d MB of images for reservations, and as much for best-effort work.", r.PoolLimit))
	}
	report.List(items...)
}

// overheads describes the overheads in words.
func (r *results) overheads() string {
	if r.Overheads == (besteffort.Overheads{}) {
		return " Suspension, resumption, boot and shutdown take no time, as in the thesis."
	}
	return fmt.Sprintf(" A boot takes %d s, a shutdown %d s; memory is written at %v MB/s and read at %v MB/s (0 is at once).", r.Overheads.Boot, r.Overheads.Shutdown, r.Overheads.SuspendRate, r.Overheads.ResumeRate)
}

func (r *results) tellFindings(report *sim.Report) {
	report.Heading(2, "Against the thesis")
	list := r.findings()
	report.Text("%d of %d statements held.", sim.CountHeld(list), len(list))
	if r.Runs < 2 || r.MixRuns < 2 {
		report.Text("One run proves nothing: it has no intervals, and its results may be chance.")
	}
	report.Findings("the thesis", list)
}

func (r *results) tellAccuracy(report *sim.Report) {
	report.Heading(2, "Accuracy: how much of their time reservations get")
	report.Text("Reservations of two to four virtual machines for half an hour, each with an image of its own that has to be sent, start one after the other (Trace I) or in windows of 100 s every 900 s (Trace II). An image takes %.0f s alone in the channel, in the median; the time is log-normal, with a deviation of %v of its logarithm; the planner expects %d s. EDF and EDF/JIT send one after the other, by the service's schedule. The others send each by itself, and what is under way shares the channel: aggressively from when it was asked for, just in time so long before its start as it takes alone, unscheduled from its start on.",
		float64(r.ImageSize)/r.Measured.Rate, r.Measured.Spread, r.estimate())
	t := sim.Table{Columns: []string{"trace", "transfers", "share of the time, %", "in the thesis' figure, about", "the worst, %", "had all of it, %"}}
	for _, trace := range accuracyTraces {
		for _, p := range plans {
			runs := r.accuracy[accuracyKey{trace.name, p}]
			hundred := func(of func(served) float64) string {
				return estimate(runs, func(s served) float64 { return 100 * of(s) }).Format(1)
			}
			t.Add(trace.name, p, hundred(meanShare), cmp.Or(inFigures[accuracyKey{trace.name, p}], "–"), hundred(worstShare), hundred(wholeShare))
		}
	}
	report.Table(t)
	report.Text("EDF/JIT is not in the thesis' figures, which have just-in-time transfers that know nothing of each other. It leaves no time for transfers that take longer than expected, and what cannot be in time any more is put behind what can, for as long as the channel is full: so a few get little. A margin before each deadline, here as long as the expected time of an image, changes little where the channel is as full as this.")
	report.Figure("accuracy", "The share of their time that virtual machines got, as a mean over all that started so far, in the first run (figures 8.2 and 8.3 of the thesis).", r.accuracyFigure())
}

// inFigures are the means at the end of figures 8.2 and 8.3, in percent, read off these figures.
var inFigures = map[accuracyKey]string{
	{"Trace I", planEDF}: "100", {"Trace I", planAggressive}: "99", {"Trace I", planJustInTime}: "100", {"Trace I", planUnscheduled}: "89",
	{"Trace II", planEDF}: "98", {"Trace II", planAggressive}: "94", {"Trace II", planJustInTime}: "78", {"Trace II", planUnscheduled}: "65",
}

func (r *results) tellDisk(report *sim.Report) {
	report.Heading(2, "Disk: the space that early staging needs")
	report.Text("%d reservations of 1 to %d virtual machines in ten hours, known at the beginning; nobody uses an image of another. A reservation's image is sent to a node once; the disk has a copy for each of its virtual machines, as the thesis' program counts.", diskRequests, r.slots())
	t := sim.Table{Columns: []string{"transfers", "peak on a node, GB", "in the thesis, GB", "with one image on a node for a reservation, GB", "reservations taken", "images sent"}}
	for _, s := range staging.Strategies {
		runs := r.disk[s]
		printed := map[staging.Strategy]float64{staging.EDF: peakEDF, staging.JIT: peakJIT}[s]
		t.Add(s, estimate(runs, diskPeak).Format(1), printed, estimate(runs, diskSent).Format(1),
			estimate(runs, func(k kept) float64 { return float64(k.taken) }).Format(0), estimate(runs, func(k kept) float64 { return float64(k.transfers) }).Format(0))
	}
	report.Table(t)
	report.Figure("disk", "The space of images on the fullest node over time, in the first run (figure 8.4 of the thesis).", r.diskFigure())
}

func (r *results) tellReuse(report *sim.Report) {
	report.Heading(2, "Reuse: images that stay on their nodes")
	report.Text("62 requests with 144 virtual machines in 80 minutes, most of them at once, with one of six images: all as often (Trace III), or two of them four times out of five (Trace IV). The virtual machines of a request run at the same time. A node keeps %d images, the one that was used least often goes. On the testbed of the thesis requests begin in turn on the first nodes with room, images share the channel, and with a cache each virtual machine waits for a copy from it, at %v MB/s; the service's planner looks for nodes that have the image, sends one image after the other, and has copy-on-write. A deployment lasts from when a virtual machine has its place on a node, or could have it if the image were there, until it runs.", r.Cache, r.Measured.Copy)
	t := sim.Table{Columns: []string{"trace", "nodes are chosen by", "cache", "mean deployment, s", "in the thesis, s", "images sent", "more deployed at 3,550 s, GB", "in the thesis, GB"}}
	printed := map[string][2]float64{reuseTraces[0].name: {deployUniform, leadUniform}, reuseTraces[1].name: {deploySkewed, leadSkewed}}
	for _, trace := range reuseTraces {
		for _, planner := range []bool{false, true} {
			for _, cached := range []bool{false, true} {
				runs := r.reuse[reuseKey{trace.name, planner, cached}]
				time, lead, inLead := fmt.Sprint(deployPlain), "–", "–"
				if cached {
					time, lead, inLead = fmt.Sprint(printed[trace.name][0]), sim.Mean(r.lead(trace.name, planner)).Format(1), fmt.Sprint(printed[trace.name][1])
				}
				if planner {
					time, inLead = "–", "–"
				}
				t.Add(trace.name, map[bool]string{false: "testbed", true: "planner"}[planner], map[bool]string{false: "no", true: "yes"}[cached],
					estimate(runs, deployTime).Format(0), time, estimate(runs, deploySent).Format(0), lead, inLead)
			}
		}
	}
	report.Table(t)
	report.Figure("reuse", "Deployments over time, in the first run (figures 8.6 and 8.7 of the thesis).", r.reuseFigure())
}

func (r *results) tellImages(report *sim.Report) {
	report.Heading(2, "Without reuse and suspension: the bandwidth that images need")
	t := sim.Table{Columns: []string{"mix", "images", "in the thesis", "MB/s in ten hours", "in the thesis"}}
	times := sim.Table{Columns: []string{"mix", "setup", "until all is done, s", "in the thesis, s", "off, %", "against no virtual machines, %", "in the thesis, %"}}
	for _, m := range []mix{fewLong, manyShort} {
		images := estimate(r.of(m, plainSetup), mixImages)
		t.Add(m, images.Format(0), imagesInThesis[m], fmt.Sprintf("%.1f", r.need(images.Mean)), fmt.Sprintf("%.1f", float64(imagesInThesis[m])*600/float64(tenHours)))
		for i, s := range []setup{plainSetup, backfilledSetup, sentSetup} {
			e, printed := r.finish(m, s), float64(backfilledInThesis[m][i])
			times.Add(m, s.name, e.Format(0), printed, fmt.Sprintf("%+.1f", 100*(e.Mean/printed-1)),
				fmt.Sprintf("%+.1f", 100*(e.Mean/r.finish(m, plainSetup).Mean-1)), fmt.Sprintf("%+.1f", 100*(printed/float64(backfilledInThesis[m][0])-1)))
		}
	}
	report.Table(t)
	report.Text("The channel sends %v MB/s. All of these are backfilled, and nothing is suspended (tables 4.1 and 4.2).", r.Rate)
	report.Table(times)
}

func (r *results) tellMixes(report *sim.Report) {
	report.Heading(2, "Reservations and best-effort work together")
	report.Text("Work of 10 to 10.5 hours for all nodes: a share of it best-effort, in virtual machines of 15 (long), 10 (medium) or 5 minutes (short) in the mean, and the rest reservations that take up to a quarter of the nodes, up to a half, and so on. Without virtual machines work is backfilled; with them it is suspended for reservations. Names are as in the thesis: length, width in percent, share of best-effort and of reservations. Times are seconds until all best-effort work is done; *off* is against the thesis, in percent.")
	report.Figure("mixes", "Until all best-effort work is done, by its share (in percent) and by the width of reservations (below): in the thesis on the left, here on the right.", r.mixFigure())
	t := sim.Table{Columns: []string{"mix", "no virtual machines", "thesis", "off", "predeployed", "thesis", "off", "prefetched", "thesis", "off", "prefetched and reused", "thesis", "off"}}
	for _, m := range allMixes() {
		p, cells := inThesis[m], []any{m}
		for i, s := range []setup{plainSetup, predeployedSetup, prefetchedSetup, reusedSetup} {
			e, printed := r.finish(m, s), []int64{p.plain, p.predeployed, p.prefetched, p.reused}[i]
			cells = append(cells, e.Format(0), printed, fmt.Sprintf("%+.1f", 100*(e.Mean/float64(printed)-1)))
		}
		t.Add(cells...)
	}
	report.Table(t)
	report.Text("The cost or gain of virtual machines, in percent: suspension against backfilling without them, and images that are sent against images in place. The bandwidth is what is needed without reuse, of %v MB/s.", r.Rate)
	c := sim.Table{Columns: []string{"mix", "suspended", "thesis", "no reuse", "thesis", "reuse", "thesis", "MB/s", "images sent without reuse", "with reuse", "reservations refused, %"}}
	for _, m := range allMixes() {
		p := inThesis[m]
		plain, ready, sent, reused := r.finish(m, plainSetup).Mean, r.finish(m, predeployedSetup).Mean, r.finish(m, prefetchedSetup).Mean, r.finish(m, reusedSetup).Mean
		images := estimate(r.of(m, prefetchedSetup), mixSent).Mean
		change := func(a, b float64) string { return fmt.Sprintf("%+.1f", 100*(a/b-1)) }
		c.Add(m, change(ready, plain), change(float64(p.predeployed), float64(p.plain)), change(sent, ready), change(float64(p.prefetched), float64(p.predeployed)),
			change(reused, ready), change(float64(p.reused), float64(p.predeployed)), fmt.Sprintf("%.1f", r.need(images)), fmt.Sprintf("%.0f", images),
			fmt.Sprintf("%.0f", estimate(r.of(m, reusedSetup), mixSent).Mean), fmt.Sprintf("%.0f", 100*estimate(r.of(m, reusedSetup), refusedShare).Mean))
	}
	report.Table(c)
}

// tellChoices describes the assumptions where the thesis is silent.
func (r *results) tellChoices(report *sim.Report) {
	report.Heading(2, "Where this differs from the thesis, or had to choose")
	report.List(
		fmt.Sprintf("How long reservations take in the simulations is not in the thesis. It is %d s here in the mean, from half of that to half as much again: so the mixes of section 4 need about as many images as it says.", r.ReservationLength),
		"Reservations start throughout the ten hours; the time from one to the next is uniform between nothing and twice the mean, as in the program with which the thesis made its traces (github.com/borjasotomayor/haizea, 8f3c084). Those that find no room are refused, in both.",
		fmt.Sprintf("Best-effort requests come every %d s, with as many virtual machines as the share of the work comes to; durations are normal with a deviation of a fifth, as in an example of that program. All virtual machines of a request have one image, which helps reuse.", worksEvery),
		"The thesis does not state whether reservations and best-effort work had half of the bandwidth each, or all of it. Its program assigns all of it to each, and so does this simulation.",
		"Without reuse the thesis' short mixes take longer than it takes to send all of their images. Its program divides 100 Mb/s by 8 in whole numbers, so that an image takes 50 s, and sends one for a virtual machine only where that could begin when it comes: so the channel stands idle while wide reservations run. The planner sends what is next where it can run soonest.",
		"The program looks at the queue once a minute, so that its times are whole minutes; the planner looks whenever something happens.",
		fmt.Sprintf("The planner is shown the %d virtual machines that wait first in the queue, which saves time; showing it four times as many changed the times of the two mixes of section 4 by little more than a percent at most.", r.Depth),
		"Two reservations on a node may need one image at different times. With reuse it stays in between (E000-6).",
		"Traces III and IV are a stretch of a log of SDSC DataStar, which is not at hand. Made up here are requests with as many virtual machines, as bunched as figure 8.5 shows them.",
		"Images that are sent by several transfers at once share the channel equally here; on the testbed NFS and TCP decided.",
		"Percentages are of the earlier value; some that the thesis prints are of the later one, or lack their sign (E000-9).",
	)
}
