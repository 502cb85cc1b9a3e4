package figure

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// textCanvas is an SVG canvas that remembers the width of each text, in points, in the font of the
// layout. A viewer may not have that font.
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

// write writes the canvas with each text at its width in the layout, in any font.
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

// fit writes an SVG with the widths of its texts, in order, and with fallback fonts similar to the
// layout's.
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
