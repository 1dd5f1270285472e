package files

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

// document is a PDF with a line of text on each page.
func document(lines ...string) string {
	return writePDF(lines, "", func(content string) string { return content })
}

// writePDF writes a PDF with a line of text on each page. seal is how the content of a page is kept, the first in
// object 5; trailer is what the trailer says of it.
func writePDF(lines []string, trailer string, seal func(content string) string) string {
	var kids, objects []string
	for i, line := range lines {
		content := seal(fmt.Sprintf("BT /F1 12 Tf 72 720 Td (%s) Tj ET", line))
		page := 4 + 2*i
		kids = append(kids, fmt.Sprintf("%d 0 R", page))
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", page+1),
			fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content))
	}
	objects = append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(lines)),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	}, objects...)
	var b strings.Builder
	b.WriteString("%PDF-1.4\n")
	xref := "0000000000 65535 f \n"
	for i, o := range objects {
		xref += fmt.Sprintf("%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n%strailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, xref, len(objects)+1, trailer, at)
	return b.String()
}

func TestPDF(t *testing.T) {
	content := document("First page", "Second page")
	for parameters, want := range map[string]string{
		`{"operation":"pdf"}`:                               `{"numpages":2,"numrender":2,"text":"First page\n\nSecond page"}`,
		`{"operation":"pdf","options":{"joinPages":false}}`: `{"numpages":2,"numrender":2,"text":["First page","Second page"]}`,
		`{"operation":"pdf","options":{"maxPages":1}}`:      `{"numpages":2,"numrender":1,"text":"First page"}`,
	} {
		require.Equal(t, []string{want}, objects(nodestest.Run(t, Extract(), parameters, withFile(`{}`, content))[0]), parameters)
	}
	// A file that is cut off or garbled is an error and no crash.
	for n := 0; n < len(content); n += 37 {
		for _, damaged := range []string{content[:n], content[:n] + "\x00<<[(" + content[min(n+5, len(content)):]} {
			call := nodestest.Call(Extract(), `{"operation":"pdf"}`, withFile(`{}`, damaged))
			_, _ = call.Type.Execute(t.Context(), call)
		}
	}
}
