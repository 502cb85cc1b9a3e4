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

func stageFields(a whatif.StageAnswer) []field {
	placement := each(slices.Sorted(maps.Keys(a.Placement)), func(node string) string { return fmt.Sprintf("%s: %d", node, a.Placement[node]) })
	pool := each(slices.Sorted(maps.Keys(a.Pool)), func(node string) string { return stagePool(node, a.Pool[node]) })
	return []field{
		{"Accepted", a.Accepted, inLists}, {"Reason", a.Reason, inLists}, {"Placement", lines(placement), inLists},
		{"Transfers", lines(each(a.Transfers, stageTransfer)), inLists}, {"Pool", lines(pool), inLists},
	}
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
		Short: "Plan VM placement and image transfers (paper 000)",
		Long: `Plan the placement of VMs, which run together from start to end, and the transfers of
their image to the nodes. Each transfer ends before its deadline, and one channel carries
one transfer at a time. The plan prefers nodes that will have the image, then nodes that
can hold more VMs. Times are whole numbers of any unit; bandwidth is in units of size per
unit of time.

strategy chooses transfers as early as possible (edf) or as late as possible (jit); both
accept the same requests. pool_limit bounds the images that a node keeps, each from the
start of its transfer until its expiry; 0 is no limit.

pending is the list of existing transfers, each with a duration. A transfer with a start
has been running since then and is not interrupted. Its image stays in the pool until
expire, by default until the deadline. Without a request, the question is whether all
pending transfers can meet their deadlines.

capacity and resources have vcpus, memory_mb and disk_gb (also cpu and memory). The
default size of the image of a pending transfer is what the bandwidth carries in its
duration. The default size of an image in a pool is its size elsewhere in the question,
or else the size of the image of the request: in the paper all images have one size.

A refusal has a reason: resources (no capacity for the VMs), pool (no capacity for their
image) or transfer (the image cannot arrive in time).`,
		Example: `  almanac whatif stage --input docs/examples/whatif/stage.json -f json
  almanac whatif stage --input question.json -f value -c Transfers`,
	}, stageFields, func(question io.Reader) (whatif.StageAnswer, bool, error) {
		answer, err := whatif.Stage(question)
		return answer, answer.Accepted, err
	})
}
