package main

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// importSummary counts the rows of an import by their answers.
type importSummary struct {
	Rows           int            `json:"rows"`
	NotSent        map[string]int `json:"not_sent"` // by reason
	Accepted       int            `json:"accepted"`
	Refused        map[string]int `json:"refused"` // by constraint
	Failed         int            `json:"failed"`
	ShiftSeconds   int64          `json:"shift_seconds"`
	SyntheticSizes bool           `json:"synthetic_sizes"`
	DryRun         bool           `json:"dry_run"`
	Seconds        float64        `json:"seconds"`
	RowsPerSecond  float64        `json:"rows_per_second"` // answered rows
}

var summaryColumns = []column[importSummary]{
	{"Rows", func(s importSummary) any { return s.Rows }, inLists},
	{"Not Sent", func(s importSummary) any { return s.NotSent }, inLists},
	{"Accepted", func(s importSummary) any { return s.Accepted }, inLists},
	{"Refused", func(s importSummary) any { return s.Refused }, inLists},
	{"Failed", func(s importSummary) any { return s.Failed }, inLists},
	{"Shift Seconds", func(s importSummary) any { return s.ShiftSeconds }, inLists},
	{"Synthetic Sizes", func(s importSummary) any { return s.SyntheticSizes }, inLists},
	{"Dry Run", func(s importSummary) any { return s.DryRun }, inLists},
	{"Seconds", func(s importSummary) any { return s.Seconds }, inLists},
	{"Rows Per Second", func(s importSummary) any { return s.RowsPerSecond }, inLists},
}

func summarize(s *sender, took time.Duration) importSummary {
	sum := importSummary{
		Rows: len(s.load.rows), NotSent: make(map[string]int), Refused: make(map[string]int),
		ShiftSeconds: s.shift, SyntheticSizes: s.load.synthetic, DryRun: s.dryRun,
		Seconds: took.Round(time.Millisecond).Seconds(),
	}
	answered := 0
	for i, a := range s.answers {
		switch a.verdict {
		case accepted:
			sum.Accepted++
			answered++
		case refused:
			sum.Refused[a.constraint]++
			answered++
		case failed:
			sum.Failed++
		default:
			sum.NotSent[s.load.rows[i].reason()]++
		}
	}
	if took > 0 {
		sum.RowsPerSecond = float64(int64(float64(answered)/took.Seconds()*10)) / 10
	}
	return sum
}

// writeReport writes the answer to each row.
func writeReport(out io.Writer, s *sender) error {
	table := csv.NewWriter(out)
	records := [][]string{{"row", "start", "end", "quantity", "answer", "constraint", "message"}}
	for i, a := range s.answers {
		r, message := s.load.rows[i], a.message
		record := []string{r.id, "", "", "", string(a.verdict), a.constraint, message}
		if a.verdict == unsent {
			record[6] = r.reason()
		} else {
			request := s.request(r)
			record[1], record[2], record[3] = stamp(*request.StartTime), stamp(*request.EndTime), strconv.Itoa(r.quantity)
		}
		records = append(records, record)
	}
	return table.WriteAll(records)
}
