package workflow

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
)

// ParseItems reads items as people write them: a list or a single one, each
// an item with a json object or the bare object. Null entries are left out;
// the result is never nil. The error is a *SyntaxError when data is no JSON.
func ParseItems(data []byte) (Items, error) {
	data, err := checkJSON(data)
	if err != nil {
		return nil, err
	}
	return decodeItems(gjson.ParseBytes(data))
}

func decodeItems(v gjson.Result) (Items, error) {
	v = unquoted(v)
	if v.IsObject() {
		return Items{decodeItem(v)}, nil
	}
	if !v.IsArray() {
		return nil, fmt.Errorf("is %s, want a list of items", describe(v))
	}
	items := Items{}
	var err error
	i := 0
	v.ForEach(func(_, v gjson.Result) bool {
		switch {
		case v.IsObject():
			items = append(items, decodeItem(v))
		case v.Type != gjson.Null:
			err = fmt.Errorf("item %d is %s, want an object", i, describe(v))
		}
		i++
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// decodeItem takes an object for an item when its json member is an object, or
// null beside a file; else for the item's bare json.
func decodeItem(v gjson.Result) Item {
	body := v.Get("json")
	switch {
	case body.IsObject():
		item := Item{JSON: json.RawMessage(body.Raw)}
		decodeExtras(&item, v)
		return item
	case body.Type == gjson.Null && v.Get("binary").IsObject():
		item := Item{JSON: json.RawMessage("{}")}
		decodeExtras(&item, v)
		return item
	}
	return Item{JSON: json.RawMessage(v.Raw)}
}

// decodeExtras reads the files, lineage and error of an item. Members of other
// types than expected are dropped: pinned data is old run data, and nothing
// else of the item depends on them.
func decodeExtras(item *Item, v gjson.Result) {
	if binary := v.Get("binary"); binary.IsObject() {
		binary.ForEach(func(key, file gjson.Result) bool {
			if !file.IsObject() {
				return true
			}
			if item.Binary == nil {
				item.Binary = map[string]Binary{}
			}
			item.Binary[key.Str] = Binary{
				MimeType:      text(file.Get("mimeType")),
				FileType:      text(file.Get("fileType")),
				FileExtension: text(file.Get("fileExtension")),
				FileName:      text(file.Get("fileName")),
				FileSize:      text(file.Get("fileSize")),
				Data:          text(file.Get("data")),
				ID:            text(file.Get("id")),
			}
			return true
		})
	}
	if paired := v.Get("pairedItem"); paired.Exists() {
		if json.Unmarshal([]byte(paired.Raw), &item.PairedItem) != nil {
			item.PairedItem = nil
		}
	}
	if e := v.Get("error"); e.Exists() && e.Type != gjson.Null {
		item.Error = json.RawMessage(e.Raw)
	}
}
