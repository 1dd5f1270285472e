package credentials

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxExportBytes bounds an export that is read from a stream.
const maxExportBytes = 64 << 20

// ReadExport reads what n8n writes with "export:credentials --decrypted": a list of credentials, one
// credential, or a directory with one in each file (--separate, --backup). "-" is stdin. Errors
// show no part of what was read.
func ReadExport(path string, stdin io.Reader) ([]*Entry, error) {
	if path == "-" {
		data, err := io.ReadAll(io.LimitReader(stdin, maxExportBytes+1))
		if err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		if len(data) > maxExportBytes {
			return nil, errors.New("the credentials to import are larger than 64 MiB")
		}
		return parseExport("from standard input", data)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil || len(files) == 0 {
			return nil, fmt.Errorf("there are no files *.json in %s", path)
		}
		slices.Sort(files)
	}
	var all []*Entry
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		entries, err := parseExport("file "+file, data)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}

func parseExport(source string, data []byte) ([]*Entry, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	var list []map[string]json.RawMessage
	if bytes.HasPrefix(data, []byte("{")) {
		data = append(append([]byte("["), data...), ']')
	}
	if json.Unmarshal(data, &list) != nil {
		return nil, fmt.Errorf("credentials %s: not a JSON list of {\"id\", \"name\", \"type\", \"data\"}, as n8n export:credentials --all --decrypted writes it", source)
	}
	var entries []*Entry
	for i, members := range list {
		e, err := newEntry(members)
		switch {
		case err != nil:
			return nil, fmt.Errorf("credentials %s: entry %d %w", source, i+1, err)
		case e.Type == "" || e.Name == "" && e.ID == "":
			return nil, fmt.Errorf("credentials %s: entry %d has no type, or neither id nor name", source, i+1)
		case e.Data == nil && e.Encrypted == nil:
			return nil, fmt.Errorf("credentials %s: entry %d has no data; export it with: n8n export:credentials --all --decrypted", source, i+1)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// ReadOrNew is Read, and an empty File when there is none at path.
func ReadOrNew(path string) (*File, error) {
	f, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{Path: path}, nil
	}
	return f, err
}

// Merge puts entries into the file. One with the type and the id (or, without an id, the name) of one
// that is there replaces it when replace is set, and is else left out. It returns how many there were of each.
func (f *File) Merge(entries []*Entry, replace bool) (added, replaced, skipped int) {
	for _, e := range entries {
		at := slices.IndexFunc(f.Entries, func(old *Entry) bool {
			return old.Type == e.Type && (e.ID != "" && old.ID == e.ID || e.ID == "" && old.Name == e.Name)
		})
		switch {
		case at < 0:
			f.Entries = append(f.Entries, e)
			added++
		case replace:
			f.Entries[at] = e
			replaced++
		default:
			skipped++
		}
	}
	return added, replaced, skipped
}

// Decrypted returns the data of an entry.
func (e *Entry) Decrypted(keys Keys) (map[string]any, error) {
	raw, err := e.open(keys)
	if err != nil {
		return nil, err
	}
	var data map[string]any
	if raw != nil && json.Unmarshal(raw, &data) != nil {
		return nil, fmt.Errorf("the data of credential %q is no JSON object", e.Name)
	}
	return data, nil
}
