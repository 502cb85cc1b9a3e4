// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// filter returns the JSON of --properties, which may name a file.
func (p *process) filter(text string) (json.RawMessage, error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		content, err := p.read(name)
		if err != nil {
			return nil, err
		}
		text = string(content)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, fault.Field("--properties", `%s is not JSON; write a filter such as '["=", "$gpu", "a100"]', in quotes`, text)
	}
	return json.RawMessage(text), nil
}

// read returns the content of a file; "-" is standard input.
func (p *process) read(name string) ([]byte, error) {
	if name == "-" {
		content, err := io.ReadAll(p.stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return content, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Message: "the file cannot be read", Err: err}
	}
	return content, nil
}
