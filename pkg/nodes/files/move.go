package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"maps"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// MoveBinaryData moves data between the JSON of an item and its files. Extract from File and Convert to File came
// after it.
func MoveBinaryData() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "moveBinaryData", Versions: []float64{1, 1.1}},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return each(ctx, call, func(j *job) (workflow.Items, error) {
				mode := j.text("mode", "binaryToJson")
				switch {
				case j.err != nil:
					return nil, j.err
				case mode == "binaryToJson":
					return j.fileToJSON()
				case mode == "jsonToBinary":
					return j.jsonToFile()
				}
				return nil, failure(j.item, "The mode %q is not known: choose binaryToJson or jsonToBinary", mode)
			})
		},
	}
}

// fileToJSON puts a file into the item's JSON. An item without the file is left out.
func (j *job) fileToJSON() (workflow.Items, error) {
	source, all, keep := j.text("sourceKey", "data"), j.flag("setAllData", true), j.flag("options.keepSource", false)
	destination, parse := j.text("destinationKey", "data"), j.flag("options.jsonParse", false)
	asBase64 := j.flag("options.keepAsBase64", false) && !all
	if j.err != nil {
		return nil, j.err
	}
	if _, ok := j.input().Binary[source]; !ok {
		return nil, nil
	}
	data, err := j.read(source)
	if err != nil {
		return nil, err
	}
	item := workflow.Item{Binary: j.input().Binary}
	if !keep {
		item.Binary = maps.Clone(item.Binary)
		delete(item.Binary, source)
		if len(item.Binary) == 0 {
			item.Binary = nil
		}
	}
	var value string
	if asBase64 {
		value = jsonobject.Quote(base64.StdEncoding.EncodeToString(data))
	} else {
		text, err := decode(data, j.text("options.encoding", "utf8"))
		if err != nil {
			return nil, failure(j.item, "%v", err)
		}
		if j.flag("options.stripBOM", true) {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if value = jsonobject.Quote(text); all || parse {
			value = text
			if !gjson.Valid(text) {
				return nil, failure(j.item, "The file '%s' does not hold valid JSON", source)
			}
		}
	}
	if all {
		if !gjson.Parse(value).IsObject() {
			return nil, failure(j.item, "The file '%s' does not hold a JSON object: turn off \"Set All Data\" and choose a destination key", source)
		}
		item.JSON = []byte(value)
		return workflow.Items{item}, j.err
	}
	o := jsonobject.Parse(j.input().JSON)
	o.SetPath(destination, value)
	item.JSON = o.JSON()
	return workflow.Items{item}, j.err
}

// jsonToFile makes a file of the item's JSON, or of a part of it. An item without that part is left out.
func (j *job) jsonToFile() (workflow.Items, error) {
	all, raw := j.flag("convertAllData", true), j.flag("options.useRawData", false)
	source, destination := j.text("sourceKey", "data"), j.text("destinationKey", "data")
	file := workflow.Binary{FileName: j.text("options.fileName", ""), MimeType: j.text("options.mimeType", "")}
	if j.err != nil {
		return nil, j.err
	}
	item := workflow.Item{JSON: j.input().JSON, Binary: maps.Clone(j.input().Binary)}
	value, path := gjson.ParseBytes(item.JSON), ""
	if !all {
		if value, path = part(item.JSON, source); !value.Exists() {
			return nil, nil
		}
	}
	text := value.Raw
	if raw || j.flag("options.dataIsBase64", false) {
		text = value.String()
	}
	j.nameFile(&file, raw)
	var data []byte
	if j.flag("options.dataIsBase64", false) {
		var err error
		if data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "=\r\n ")); err != nil {
			return nil, failure(j.item, "The value in \"%s\" is no valid base64", source)
		}
	} else {
		if j.flag("options.addBOM", false) {
			text = "\ufeff" + text
		}
		var err error
		if data, err = encode(text, j.text("options.encoding", "utf8")); err != nil {
			return nil, failure(j.item, "%v", err)
		}
	}
	keep := j.flag("options.keepSource", false)
	if j.err != nil {
		return nil, j.err
	}
	saved, err := j.call.Files.Save(j.ctx, file, bytes.NewReader(data))
	if err != nil {
		return nil, failure(j.item, "%v", err)
	}
	if item.Binary == nil {
		item.Binary = map[string]workflow.Binary{}
	}
	item.Binary[destination] = saved
	switch {
	case keep:
	case all:
		item.JSON = []byte("{}")
	default:
		left, err := sjson.DeleteBytes(item.JSON, path)
		if err != nil {
			return nil, failure(j.item, "%v", err)
		}
		item.JSON = left
	}
	return workflow.Items{item}, nil
}

// nameFile fills in what the user left open. From version 1.1 on a file always has a name.
func (j *job) nameFile(file *workflow.Binary, raw bool) {
	later := j.call.Node.TypeVersion >= 1.1
	if file.MimeType == "" {
		switch {
		case !raw || !later:
			file.MimeType = "application/json"
		case file.FileName == "":
			file.MimeType = "text/plain"
		}
	}
	if file.FileName == "" && later {
		file.FileName = "file"
		if extension := node.Describe(workflow.Binary{MimeType: file.MimeType}, nil).FileExtension; extension != "" {
			file.FileName += "." + extension
		}
	}
}

// part is the value of a key, else of a path with dots, and where it is as a path of sjson.
func part(object []byte, name string) (gjson.Result, string) {
	escaped := gjson.Escape(name)
	if value := gjson.GetBytes(object, escaped); value.Exists() {
		return value, escaped
	}
	return gjson.GetBytes(object, name), name
}
