package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/whatif"
)

var stageColumns = []column[whatif.StageAnswer]{
	{"Accepted", func(a whatif.StageAnswer) any { return a.Accepted }, inLists},
	{"Reason", func(a whatif.StageAnswer) any { return a.Reason }, inLists},
	{"Placement", func(a whatif.StageAnswer) any {
		return lines(each(slices.Sorted(maps.Keys(a.Placement)), func(node string) string {
			return fmt.Sprintf("%s: %d", node, a.Placement[node])
		}))
	}, inLists},
	{"Transfers", func(a whatif.StageAnswer) any { return lines(each(a.Transfers, stageTransfer)) }, inLists},
	{"Pool", func(a whatif.StageAnswer) any {
		return lines(each(slices.Sorted(maps.Keys(a.Pool)), func(node string) string { return stagePool(node, a.Pool[node]) }))
	}, inLists},
}

func stageTransfer(t whatif.StageTransfer) string {
	return fmt.Sprintf("%s: %s to %s in [%d, %d), by %d", t.ID, t.Image, t.Node, t.Start, t.End, t.Deadline)
}

func stagePool(node string, images []whatif.StagePooled) string {
	if len(images) == 0 {
		return node + ": empty"
	}
	return node + ": " + strings.Join(each(images, func(i whatif.StagePooled) string {
		return fmt.Sprintf("%s until %d", i.Image, i.Expire)
	}), ", ")
}

func (p *process) whatIfStageCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "stage",
		Short: "Where VMs go, and when their image is transferred there (paper 000)",
		Long: `Where VMs can be reserved, all at once from start to end, and when their image is
transferred to the nodes, each transfer before its deadline, one at a time through
one channel. VMs go to nodes that will have the image first, then to those that can
hold more of them. Times are whole numbers of any unit; bandwidth is in units of
size per unit of time.

strategy says whether transfers are carried out as early as they can be (edf) or as
late (jit); both accept the same. pool_limit bounds the images that a node keeps,
from the start of a transfer until its expiry; 0 is no limit.

pending are transfers that are entered already, each with a duration. One with a
start is under way since then and is not pre-empted. Its image stays in the pool
until expire, or the deadline where that is not given. Without a request the
question is whether all that is pending can be in time.

capacity and resources have vcpus, memory_mb and disk_gb (also cpu and memory).
Where it is not given, the size of a pending transfer's image is what the bandwidth
carries in its duration; an image in a pool is as large as it is said to be
elsewhere, or else as large as the image of the request: the paper has all images of
one size.

A refusal has a reason: resources (no room for the VMs), pool (no room for their
image) or transfer (the image cannot be there in time).`,
		Example: `  almanac whatif stage --input docs/examples/whatif/stage.json -f json
  almanac whatif stage --input question.json -f value -c Transfers`,
	}, stageColumns, func(question io.Reader) (whatif.StageAnswer, bool, error) {
		answer, err := whatif.Stage(question)
		return answer, answer.Accepted, err
	})
}
