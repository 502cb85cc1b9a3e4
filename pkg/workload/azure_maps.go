package workload

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// AzureFlavors are the shapes of virtual machines by letter.
type AzureFlavors map[string]resource.Vector

// AzureBins are the lifetimes of virtual machines by bin number.
type AzureBins []AzureBin

// AzureBin is the lifetimes of at least From and less than To seconds.
type AzureBin struct{ From, To int64 }

// mostBins is the maximum number of bins.
const mostBins = 10_000

// ReadAzureFlavors reads lines such as "2,3.5 g": VCPUs, GiB of memory, letter. The error is an
// Invalid fault at the first wrong line.
func ReadAzureFlavors(r io.Reader) (AzureFlavors, error) {
	flavors := AzureFlavors{}
	err := eachRow(r, func(fields [][]byte) string {
		vcpus, memory, _ := bytes.Cut(fields[0], []byte{','})
		n, why := whole(vcpus, mostSize)
		gib, err := strconv.ParseFloat(string(memory), 64)
		if why != "" || err != nil || n < 1 || !(gib > 0 && gib < mostSize) {
			return `must begin with a flavor, such as "2,3.5"`
		}
		flavors[string(fields[1])] = resource.Vector{VCPUs: n, MemoryMB: int64(math.Round(1024 * gib))}
		return ""
	})
	return flavors, err
}

// ReadAzureBins reads lines such as "600 2": a lifetime in seconds, rounded down to five
// minutes, and its bin. The error is an Invalid fault if the bins are not in order.
func ReadAzureBins(r io.Reader) (AzureBins, error) {
	var bins AzureBins
	err := eachRow(r, func(fields [][]byte) string {
		seconds, why := whole(fields[0], mostTime)
		bin, whyBin := whole(fields[1], mostBins)
		switch last := int64(len(bins)) - 1; {
		case why != "" || whyBin != "":
			return "must have a lifetime and its bin"
		case bin == last && bin >= 0 && seconds == bins[bin].To:
			bins[bin].To += azureTick
		case bin == last+1 && (bin == 0 && seconds == 0 || bin > 0 && seconds == bins[last].To):
			bins = append(bins, AzureBin{From: seconds, To: seconds + azureTick})
		default:
			return "must be five minutes after the line before, in the same bin or the next; the first is 0 in bin 0"
		}
		return ""
	})
	return bins, err
}

// eachRow reads lines of two fields.
func eachRow(r io.Reader, use func(fields [][]byte) (why string)) error {
	text := lines{r: bufio.NewReader(r)}
	var fields row
	for used := false; ; {
		line, why, err := text.next()
		switch {
		case errors.Is(err, io.EOF) && !used:
			return fault.Field("map", "has no lines")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case why == Blank:
			continue
		}
		fields.split(line)
		if why == "" && len(fields.fields) != 2 {
			why = fewColumns
		}
		if why == "" {
			why = use(fields.fields)
		}
		if why != "" {
			return fault.Field("map", "line %d %s", text.number, why)
		}
		used = true
	}
}
