package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func compact(raw string) []byte {
	var b bytes.Buffer
	if json.Compact(&b, []byte(raw)) != nil {
		return []byte(raw)
	}
	return b.Bytes()
}

// multipart writes the fields in the order of the list.
func (p *parameters) multipart(path string) body {
	var b bytes.Buffer
	parts := &[]part{}
	w := multipart.NewWriter(&b)
	p.value(path).ForEach(func(_, entry gjson.Result) bool {
		name := entry.Get("name").String()
		if name == "" {
			return true
		}
		if entry.Get("parameterType").String() == "formBinaryData" {
			p.filePart(w, &b, parts, name, entry.Get("inputDataFieldName").String())
		} else if err := w.WriteField(name, gjson.Parse(valueOf(entry)).String()); err != nil {
			p.err = err
		}
		return p.err == nil
	})
	if err := w.Close(); err != nil && p.err == nil {
		p.err = err
	}
	p.cut(&b, parts)
	if len(*parts) == 1 {
		return plainBody((*parts)[0].bytes, w.FormDataContentType())
	}
	return body{parts: *parts, contentType: w.FormDataContentType()}
}

var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", "")

// cut makes what was written so far a part of its own.
func (p *parameters) cut(b *bytes.Buffer, parts *[]part) {
	*parts = append(*parts, part{bytes: bytes.Clone(b.Bytes())})
	b.Reset()
}

func (p *parameters) filePart(w *multipart.Writer, b *bytes.Buffer, parts *[]part, name, property string) {
	data, file := p.binary(property)
	if p.err != nil {
		return
	}
	fileName := file.FileName
	if fileName == "" {
		fileName = "file"
	}
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"; filename="%s"`, quoteEscaper.Replace(name), quoteEscaper.Replace(fileName)))
	h.Set("Content-Type", file.MimeType)
	content, err := w.CreatePart(h)
	switch {
	case err == nil && data != nil:
		_, err = content.Write(data)
	case err == nil:
		p.cut(b, parts)
		*parts = append(*parts, part{file: &file})
	}
	if err != nil {
		p.err = err
	}
}

// fileBody is a file of the input item as a body.
func (p *parameters) fileBody(property string) body {
	data, file := p.binary(property)
	if data == nil {
		return body{parts: []part{{file: &file}}, contentType: file.MimeType}
	}
	return plainBody(data, file.MimeType)
}

// binary returns a file of the input item, with its bytes when it carries them.
func (p *parameters) binary(property string) ([]byte, workflow.Binary) {
	if p.err != nil {
		return nil, workflow.Binary{}
	}
	fail := func(message string) ([]byte, workflow.Binary) {
		p.err = operationError(message)
		return nil, workflow.Binary{}
	}
	if len(p.call.Inputs) == 0 || p.item >= len(p.call.Inputs[0]) {
		return fail("there is no input item to take a file from")
	}
	file, ok := p.call.Inputs[0][p.item].Binary[property]
	if !ok {
		return fail(fmt.Sprintf("This operation expects the node's input data to contain a binary file '%s', but none was found [item %d]", property, p.item))
	}
	if file.MimeType == "" {
		file.MimeType = "application/octet-stream"
	}
	if file.ID != "" {
		if !p.call.Files.Stored() {
			return fail(fmt.Sprintf("the bytes of file %q are not kept with its item and cannot be sent", property))
		}
		return nil, file
	}
	r, err := p.call.Files.Open(p.ctx, file)
	if err != nil {
		return fail(fmt.Sprintf("file %q is not valid base64", property))
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return fail(err.Error())
	}
	return data, file
}
