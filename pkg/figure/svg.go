package figure

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// textCanvas is an SVG canvas that remembers how wide each text is in the font with which
// the figure is laid out, in points. A viewer need not have that font.
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

// write writes the canvas with each text as wide as it was laid out, in whatever font.
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

// fit writes an SVG with the widths of its texts, in their order, and with fonts that are
// like the one they were laid out in.
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
