package credentials

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
)

// algorithm is the only one there is.
const algorithm = "AES-256-GCM"

// Envelope is the encrypted data of a credential.
type Envelope struct {
	Algorithm string `json:"alg"`
	// KeyID of the key that opens it.
	KeyID string `json:"kid"`
	Nonce []byte `json:"nonce"`
	// Ciphertext of the data's JSON, with its tag.
	Ciphertext []byte `json:"ciphertext"`
}

var (
	// ErrNoKey is returned when no key opens an envelope.
	ErrNoKey = errors.New("credentials: the key that opens it is not there")
	// ErrAltered is returned for an envelope that is damaged, or was made for another credential.
	ErrAltered = errors.New("credentials: it was altered, or belongs to another credential")
)

// bound is what an envelope is valid for: with any other id, name or type it cannot be opened.
// So nobody without a key can have one credential stand in for another.
func (e *Entry) bound() ([]byte, error) {
	names, err := json.Marshal([]string{"reprise credential 1", algorithm, e.ID, e.Name, e.Type})
	if err != nil {
		return nil, fmt.Errorf("credential %q: %w", e.Name, err)
	}
	return names, nil
}

// seal encrypts an entry's data.
func (e *Entry) seal(key *Key) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Data); err != nil {
		return fmt.Errorf("credential %q has no data that is JSON", e.Name)
	}
	bound, err := e.bound()
	if err != nil {
		return err
	}
	nonce := make([]byte, key.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return fmt.Errorf("draw a nonce: %w", err)
	}
	e.Encrypted = &Envelope{
		Algorithm: algorithm, KeyID: key.ID, Nonce: nonce,
		Ciphertext: key.aead.Seal(nil, nonce, compact.Bytes(), bound),
	}
	e.Data = nil
	return nil
}

// open returns an entry's data, decrypted where it is not in plain text. Errors show no
// part of it.
func (e *Entry) open(keys Keys) (json.RawMessage, error) {
	sealed := e.Encrypted
	if sealed == nil {
		return e.Data, nil
	}
	if sealed.Algorithm != algorithm {
		return nil, fmt.Errorf("credential %q (type %s) is encrypted with %q; this version knows %s", e.Name, e.Type, sealed.Algorithm, algorithm)
	}
	key := keys.find(sealed.KeyID)
	if key == nil {
		return nil, fmt.Errorf("credential %q (type %s) is encrypted with key %s, which is not in %s or %s: %w", e.Name, e.Type, sealed.KeyID, EnvKey, EnvKeyFile, ErrNoKey)
	}
	bound, err := e.bound()
	if err != nil {
		return nil, err
	}
	if len(sealed.Nonce) != key.aead.NonceSize() { // Open would panic
		return nil, fmt.Errorf("credential %q (type %s): %w", e.Name, e.Type, ErrAltered)
	}
	data, err := key.aead.Open(nil, sealed.Nonce, sealed.Ciphertext, bound)
	if err != nil {
		return nil, fmt.Errorf("credential %q (type %s): %w", e.Name, e.Type, ErrAltered)
	}
	return data, nil
}

// Status says in a word whether an entry can be used with keys: "plain text", "ok", "no key" or
// "altered".
func (e *Entry) Status(keys Keys) string {
	if e.Encrypted == nil {
		return "plain text"
	}
	switch _, err := e.open(keys); {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrNoKey):
		return "no key"
	}
	return "altered"
}
