// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// textCanvas is an SVG canvas that records the width of each text, in points, in the figure's font.
// write sets these widths in the SVG, so that the texts keep their size in a viewer without that
// font.
type textCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (c *textCanvas) FillString(face font.Face, at vg.Point, text string) {
	if text == "" {
		return
	}
	c.widths = append(c.widths, face.Width(text))
	c.Canvas.FillString(face, at, text)
}

// write writes the SVG with the recorded width of each text.
func (c *textCanvas) write(w io.Writer) error {
	var drawn bytes.Buffer
	if _, err := c.WriteTo(&drawn); err != nil {
		return err
	}
	return fit(w, drawn.Bytes(), c.widths)
}

var (
	textTag = []byte("<text ")
	laidOut = []byte("font-family:Liberation Serif;")
	similar = []byte("font-family:'Liberation Serif','Times New Roman',Times,serif;")
)

// fit writes an SVG in which each text has its width of widths, in the order of the texts. For
// viewers without the figure's font, it names similar fonts.
func fit(w io.Writer, svg []byte, widths []vg.Length) error {
	parts := bytes.Split(bytes.ReplaceAll(svg, laidOut, similar), textTag)
	if len(parts) != len(widths)+1 {
		return fmt.Errorf("the figure has %d texts, and %d were drawn", len(parts)-1, len(widths))
	}
	var fitted bytes.Buffer
	fitted.Write(parts[0])
	for i, part := range parts[1:] {
		fmt.Fprintf(&fitted, `<text textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, widths[i].Points())
		fitted.Write(part)
	}
	_, err := w.Write(fitted.Bytes())
	return err
}
