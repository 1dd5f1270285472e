package http

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	w := multipart.NewWriter(&b)
	p.value(path).ForEach(func(_, entry gjson.Result) bool {
		name := entry.Get("name").String()
		if name == "" {
			return true
		}
		if entry.Get("parameterType").String() == "formBinaryData" {
			p.filePart(w, name, entry.Get("inputDataFieldName").String())
		} else if err := w.WriteField(name, gjson.Parse(valueOf(entry)).String()); err != nil {
			p.err = err
		}
		return p.err == nil
	})
	if err := w.Close(); err != nil && p.err == nil {
		p.err = err
	}
	return body{b.Bytes(), w.FormDataContentType()}
}

var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", "")

func (p *parameters) filePart(w *multipart.Writer, name, property string) {
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
	part, err := w.CreatePart(h)
	if err == nil {
		_, err = part.Write(data)
	}
	if err != nil {
		p.err = err
	}
}

// binary returns the bytes of a file of the input item.
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
	if file.Data == "" && file.ID != "" {
		return fail(fmt.Sprintf("the bytes of file %q are not kept with its item and cannot be sent", property))
	}
	data, err := decodeBase64(file.Data)
	if err != nil {
		return fail(fmt.Sprintf("file %q is not valid base64", property))
	}
	if file.MimeType == "" {
		file.MimeType = "application/octet-stream"
	}
	return data, file
}
