package credentials

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Entry is one credential of a file: in plain text, {"id", "name", "type", "data"} as in n8n's
// decrypted credential export, or with "encrypted" instead of "data".
type Entry struct {
	ID, Name, Type string
	// Data is nil when Encrypted is set.
	Data      json.RawMessage
	Encrypted *Envelope

	// others are members of the entry that mean nothing here and are kept.
	others map[string]json.RawMessage
}

// File is a credentials file. It is changed in memory; Write stores it.
type File struct {
	Path    string
	Entries []*Entry
	mode    fs.FileMode
}

// Read reads a credentials file. Nothing is decrypted. Errors show no part of what was read.
func Read(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	f := &File{Path: path, mode: info.Mode()}
	// The errors of encoding/json may quote what it read, which is secret.
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("credentials file %s is not a JSON list of {\"id\", \"name\", \"type\", \"data\"}", path)
	}
	for i, members := range entries {
		e, err := newEntry(members)
		if err != nil {
			return nil, fmt.Errorf("credentials file %s: entry %d %w", path, i+1, err)
		}
		f.Entries = append(f.Entries, e)
	}
	return f, nil
}

func newEntry(members map[string]json.RawMessage) (*Entry, error) {
	e := &Entry{others: members}
	for name, into := range map[string]any{"id": &e.ID, "name": &e.Name, "type": &e.Type, "encrypted": &e.Encrypted} {
		if raw, ok := members[name]; ok {
			if json.Unmarshal(raw, into) != nil {
				return nil, fmt.Errorf("has a bad %q", name)
			}
		}
		delete(members, name)
	}
	e.Data = members["data"]
	delete(members, "data")
	data := bytes.TrimSpace(e.Data)
	if string(data) == "null" {
		e.Data, data = nil, nil
	}
	switch {
	case e.Encrypted == nil && len(data) > 0 && data[0] == '"':
		return nil, errors.New("is encrypted by n8n; export it with: n8n export:credentials --all --decrypted")
	case e.Encrypted == nil && len(data) > 0 && data[0] != '{':
		return nil, errors.New(`has "data" that is no object`)
	case e.Encrypted != nil && e.Data != nil:
		return nil, errors.New(`has both "data" and "encrypted"; take one out`)
	}
	return e, nil
}

// MarshalJSON implements json.Marshaler.
func (e *Entry) MarshalJSON() ([]byte, error) {
	members := map[string]any{"id": e.ID, "name": e.Name, "type": e.Type}
	for name, raw := range e.others {
		members[name] = raw
	}
	if e.Encrypted != nil {
		members["encrypted"] = e.Encrypted
	} else if e.Data != nil {
		members["data"] = e.Data
	}
	return json.Marshal(members)
}

// Plain is the number of entries in plain text.
func (f *File) Plain() int {
	n := 0
	for _, e := range f.Entries {
		if e.Encrypted == nil {
			n++
		}
	}
	return n
}

// Encrypt encrypts what is in plain text with the first key, and returns how many that were.
func (f *File) Encrypt(keys Keys) (int, error) {
	if len(keys) == 0 {
		return 0, errNoKeys
	}
	n := 0
	for _, e := range f.Entries {
		if e.Encrypted != nil || e.Data == nil {
			continue
		}
		if err := e.seal(keys[0]); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Rotate encrypts all entries with the first key: those in plain text, and those of other keys. It
// returns how many that were. When an entry cannot be opened nothing is changed.
func (f *File) Rotate(keys Keys) (int, error) {
	if len(keys) == 0 {
		return 0, errNoKeys
	}
	fresh := make([]*Entry, len(f.Entries))
	n := 0
	for i, e := range f.Entries {
		fresh[i] = e
		data, err := e.open(keys)
		if err != nil {
			return 0, err
		}
		if data == nil || e.Encrypted != nil && e.Encrypted.KeyID == keys[0].ID {
			continue
		}
		changed := *e
		changed.Data, changed.Encrypted = data, nil
		if err := changed.seal(keys[0]); err != nil {
			return 0, err
		}
		fresh[i] = &changed
		n++
	}
	f.Entries = fresh
	return n, nil
}

var errNoKeys = fmt.Errorf("no key is given; make one with \"reprise credentials keygen\" and name it in %s or %s", EnvKeyFile, EnvKey)

// Write stores the file at path, readable for its owner only. The file that was there is replaced as a
// whole or not at all.
func (f *File) Write(path string) (err error) {
	data, err := json.MarshalIndent(f.Entries, "", "  ")
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	if f.Entries == nil {
		data = []byte("[]")
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile replaces a file by way of another one beside it, of mode 0600.
func writeFile(path string, data []byte) (err error) {
	// What a link leads to is replaced, not the link.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // has mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if _, err := temp.Write(data); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// readableByOthers reports whether people other than the owner and group may read the file. Windows
// has no such bits.
func (f *File) readableByOthers() bool { return runtime.GOOS != "windows" && f.mode.Perm()&0o004 != 0 }

// writableByOthers is the same for writing.
func (f *File) writableByOthers() bool { return runtime.GOOS != "windows" && f.mode.Perm()&0o002 != 0 }
