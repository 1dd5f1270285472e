// Package credentials reads the secrets that node code needs. Only workers use
// it: a secret never leaves the process that runs the node.
//
// A file holds a list of credentials, in plain text as n8n exports them or each in an envelope
// (AES-256-GCM) that is bound to the credential's id, name and type. Workers decrypt it when they
// start, with keys that are given apart from the file; several keys may be known at once, so that
// keys are changed without stopping anything:
//
//  1. give all workers the new key after the old one, and restart them,
//  2. put the new key first and run `reprise credentials rotate`,
//  3. take the old key away.
package credentials

import (
	"context"
	"encoding/json"
	"fmt"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Store holds credentials in memory. The zero value is empty.
type Store struct {
	source      string
	credentials []credential
	overrides   map[string]map[string]any
}

// credential is a decrypted entry.
type credential struct {
	ID, Name, Type string
	Data           map[string]any
}

// Load reads a credentials file with the keys of the environment (EnvironmentKeys). An empty name
// gives an empty Store.
func Load(file string) (*Store, error) {
	if file == "" {
		return &Store{}, nil
	}
	keys, err := EnvironmentKeys()
	if err != nil {
		return nil, err
	}
	return Open(file, keys, nil)
}

// Open reads a credentials file. Encrypted entries are opened with keys; one that cannot be
// opened is an error. log, which may be nil, gets a warning when the file leaves secrets open. A file that
// everybody may write to is refused: whoever changes it decides where secrets are sent.
func Open(file string, keys Keys, log *zap.Logger) (*Store, error) {
	if log == nil {
		log = zap.NewNop()
	}
	f, err := Read(file)
	if err != nil {
		return nil, err
	}
	if f.writableByOthers() {
		return nil, fmt.Errorf("credentials file %s can be changed by everybody; run: chmod o-w %s", file, file)
	}
	if plain := f.Plain(); plain > 0 {
		switch {
		case f.readableByOthers():
			log.Warn("credentials are in plain text in a file that everybody may read; encrypt it with \"reprise credentials encrypt\", or chmod 600",
				zap.String("file", file), zap.Int("plain", plain))
		case len(keys) > 0:
			log.Warn("credentials are in plain text although there is a key; encrypt them with \"reprise credentials encrypt\"",
				zap.String("file", file), zap.Int("plain", plain))
		default:
			log.Info("credentials are in plain text; \"reprise credentials encrypt\" encrypts them", zap.String("file", file), zap.Int("plain", plain))
		}
	}
	s := &Store{source: file}
	for _, e := range f.Entries {
		raw, err := e.open(keys)
		if err != nil {
			return nil, fmt.Errorf("credentials file %s: %w", file, err)
		}
		c := credential{ID: e.ID, Name: e.Name, Type: e.Type}
		if raw != nil && json.Unmarshal(raw, &c.Data) != nil {
			return nil, fmt.Errorf("credentials file %s: the data of credential %q is no JSON object", file, e.Name)
		}
		s.credentials = append(s.credentials, c)
	}
	return s, nil
}

// Secrets are those of all credentials.
func (s *Store) Secrets() []string {
	var found []string
	for _, c := range s.credentials {
		found = append(found, Secrets(c.Type, c.Data)...)
	}
	for credentialType, data := range s.overrides {
		found = append(found, Secrets(credentialType, data)...)
	}
	return found
}

// Add puts a credential before those that are there.
func (s *Store) Add(id, name, credentialType string, data map[string]any) {
	added := credential{ID: id, Name: name, Type: credentialType, Data: data}
	s.credentials = append([]credential{added}, s.credentials...)
}

// Override makes data the answer for every credential of a type.
func (s *Store) Override(credentialType string, data map[string]any) {
	if s.overrides == nil {
		s.overrides = map[string]map[string]any{}
	}
	s.overrides[credentialType] = data
}

// Get returns the data of the credential of that type that ref names: by id, else
// by name.
func (s *Store) Get(_ context.Context, credentialType string, ref workflow.CredentialRef) (map[string]any, error) {
	if data, ok := s.overrides[credentialType]; ok {
		return data, nil
	}
	for _, byID := range []bool{true, false} {
		for _, c := range s.credentials {
			if c.Type != credentialType {
				continue
			}
			if byID && ref.ID != "" && c.ID == ref.ID || !byID && ref.Name != "" && c.Name == ref.Name {
				return c.Data, nil
			}
		}
	}
	where := "no credentials file is given to this worker (REPRISE_CREDENTIALS_FILE)"
	if s.source != "" {
		where = "the worker's credentials file has none"
	}
	return nil, fmt.Errorf("credential %q (type %s, id %q) not found: %s", ref.Name, credentialType, ref.ID, where)
}
