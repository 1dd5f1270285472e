// Package credentials reads the secrets that node code needs. Only workers use
// it: a secret never leaves the process that runs the node.
package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Store holds credentials in memory. The zero value is empty.
type Store struct {
	source      string
	credentials []credential
	overrides   map[string]map[string]any
}

// credential is one entry of n8n's decrypted credential export.
type credential struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// Load reads a file in the format of n8n's decrypted credential export: a JSON
// list of {"id", "name", "type", "data"}. An empty name gives an empty Store.
func Load(file string) (*Store, error) {
	if file == "" {
		return &Store{}, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	s := &Store{source: file}
	if err := json.Unmarshal(data, &s.credentials); err != nil {
		// The error of encoding/json may quote what it read, which is secret.
		return nil, fmt.Errorf("credentials file %s is not a JSON list of {\"id\", \"name\", \"type\", \"data\"}", file)
	}
	return s, nil
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
