package credentials

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/reprise-engine/reprise/internal/config"
)

// The environment variables with the keys. EnvKeyFile names a file that holds what EnvKey
// would.
const (
	EnvKey     = "REPRISE_CREDENTIALS_KEY"
	EnvKeyFile = "REPRISE_CREDENTIALS_KEY_FILE"
)

const keyBytes = 32

// Key encrypts credentials.
type Key struct {
	// ID tells keys apart. It is made of the key's hash, so that it cannot be given to a wrong one.
	ID   string
	text string
	aead cipher.AEAD
}

// Keys are the keys of a worker or of a person: the first encrypts, all decrypt.
type Keys []*Key

// NewKey draws a key.
func NewKey() (*Key, error) {
	secret := make([]byte, keyBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("draw a key: %w", err)
	}
	return makeKey(secret)
}

// Text is the key as ParseKeys reads it.
func (k *Key) Text() string { return k.text }

func makeKey(secret []byte) (*Key, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(append([]byte("reprise credentials key\x00"), secret...))
	return &Key{ID: hex.EncodeToString(hash[:4]), text: base64.StdEncoding.EncodeToString(secret), aead: aead}, nil
}

// ParseKeys reads keys: 32 bytes each, in base64 or hex, separated by commas, spaces or lines. What
// follows a # in a line is a comment. No error shows a key.
func ParseKeys(text string) (Keys, error) {
	var keys Keys
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }) {
			secret, err := decodeKey(word)
			if err != nil {
				return nil, fmt.Errorf("credentials key %d %w", len(keys)+1, err)
			}
			key, err := makeKey(secret)
			if err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func decodeKey(word string) ([]byte, error) {
	if len(word) == 2*keyBytes {
		if secret, err := hex.DecodeString(word); err == nil {
			return secret, nil
		}
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if secret, err := encoding.DecodeString(strings.TrimRight(word, "=")); err == nil && len(secret) == keyBytes {
			return secret, nil
		}
	}
	return nil, errors.New("is not 32 bytes in base64 or hex; make one with: reprise credentials keygen")
}

// ReadKeys reads keys from a file.
func ReadKeys(file string) (Keys, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read credentials keys: %w", err)
	}
	keys, err := ParseKeys(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no key; make one with: reprise credentials keygen", file)
	}
	return keys, nil
}

// EnvironmentKeys are the keys that the environment names, none when it names none.
func EnvironmentKeys() (Keys, error) {
	text, err := config.Secret(EnvKey, map[string]string{EnvKey: os.Getenv(EnvKey), EnvKeyFile: os.Getenv(EnvKeyFile)})
	if err != nil {
		return nil, err
	}
	keys, err := ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvKey, err)
	}
	return keys, nil
}

// find returns the key with an id, nil when it is not there.
func (k Keys) find(id string) *Key {
	for _, key := range k {
		if key.ID == id {
			return key
		}
	}
	return nil
}
