package values

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"runtime"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/crypto/scrypt"

	"github.com/reprise-engine/reprise/pkg/node"
)

// What is encrypted with a passphrase is, in base64, what decrypts it again but for the passphrase:
//
//	version (1 byte), salt (16), nonce (12), tag (16), text
//
// The key is made of passphrase and salt by scrypt with N = 65,536, r = 8, p = 1. The version stands for all of this.
const (
	envelopeVersion = 1
	saltBytes       = 16
	nonceBytes      = 12
	tagBytes        = 16
	headBytes       = 1 + saltBytes + nonceBytes + tagBytes
)

// newCipher makes a cipher with a key of keyBytes.
type newCipher struct {
	keyBytes int
	make     func(key []byte) (cipher.AEAD, error)
}

var ciphers = map[string]newCipher{
	"aes-256-gcm":       {32, newGCM},
	"aes-192-gcm":       {24, newGCM},
	"aes-128-gcm":       {16, newGCM},
	"chacha20-poly1305": {chacha20poly1305.KeySize, chacha20poly1305.New},
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// encryption encrypts a text, or decrypts one, with a passphrase (mode symmetric) or a pair of RSA keys
// (asymmetric). The secrets come from the credential in every version.
func encryption(ctx context.Context, call *node.Call, i int, action string) (string, error) {
	value, err := call.String(ctx, i, "value", "")
	if err != nil {
		return "", err
	}
	mode, err := call.String(ctx, i, "mode", "symmetric")
	if err != nil {
		return "", err
	}
	data := []byte(value)
	if action == "decrypt" {
		if data, err = base64.StdEncoding.DecodeString(strings.TrimSpace(value)); err != nil {
			return "", node.OperationError(i, "The value cannot be decrypted: it is no base64", "")
		}
	}
	var converted []byte
	switch mode {
	case "symmetric":
		converted, err = withPassphrase(ctx, call, i, action, data)
	case "asymmetric":
		converted, err = withRSA(ctx, call, i, action, data)
	default:
		err = node.Unknown(i, "mode", mode, "symmetric", "asymmetric")
	}
	if err != nil {
		return "", err
	}
	if action == "encrypt" {
		return base64.StdEncoding.EncodeToString(converted), nil
	}
	return strings.ToValidUTF8(string(converted), "\ufffd"), nil
}

// withPassphrase encrypts data, or decrypts what it made of it.
func withPassphrase(ctx context.Context, call *node.Call, i int, action string, data []byte) ([]byte, error) {
	name, err := call.String(ctx, i, "cipher", "aes-256-gcm")
	if err != nil {
		return nil, err
	}
	chosen, ok := ciphers[strings.ToLower(name)]
	if !ok {
		return nil, node.Unknown(i, "cipher", name, "aes-256-gcm", "aes-192-gcm", "aes-128-gcm", "chacha20-poly1305")
	}
	passphrase, err := credentialText(ctx, call, i, "encryptionPassphrase")
	if err != nil {
		return nil, err
	}
	if action == "encrypt" {
		head := make([]byte, 1+saltBytes+nonceBytes)
		_, _ = rand.Read(head) // it does not fail
		head[0] = envelopeVersion
		aead, err := chosen.with(ctx, passphrase, head[1:1+saltBytes])
		if err != nil {
			return nil, err
		}
		sealed := aead.Seal(nil, head[1+saltBytes:], data, nil)
		end := len(sealed) - tagBytes // Go has the tag at the end
		return append(append(head, sealed[end:]...), sealed[:end]...), nil
	}
	if len(data) < headBytes || data[0] != envelopeVersion {
		return nil, node.OperationError(i, "The value cannot be decrypted: it was not made by the action encrypt in the mode symmetric", "")
	}
	head, text := data[1:headBytes], data[headBytes:]
	salt, nonce, tag := head[:saltBytes], head[saltBytes:saltBytes+nonceBytes], head[saltBytes+nonceBytes:]
	aead, err := chosen.with(ctx, passphrase, salt)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce, append(append([]byte{}, text...), tag...), nil)
	if err != nil {
		return nil, node.OperationError(i, "The value cannot be decrypted", "The passphrase or the cipher is another one than it was encrypted with, or the value was changed.")
	}
	return plain, nil
}

// derivations bounds the keys that are made at the same time: each takes 64 MiB, and a processor for a while.
var derivations = make(chan struct{}, runtime.GOMAXPROCS(0))

// with is the cipher under a passphrase.
func (c newCipher) with(ctx context.Context, passphrase string, salt []byte) (cipher.AEAD, error) {
	select {
	case derivations <- struct{}{}:
		defer func() { <-derivations }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	key, err := scrypt.Key([]byte(passphrase), salt, 1<<16, 8, 1, c.keyBytes)
	if err != nil {
		return nil, err
	}
	return c.make(key)
}

// withRSA encrypts data with the public key, or decrypts it with the private one: OAEP with SHA-256.
func withRSA(ctx context.Context, call *node.Call, i int, action string, data []byte) ([]byte, error) {
	if action == "encrypt" {
		text, err := credentialText(ctx, call, i, "encryptionPublicKey")
		if err != nil {
			return nil, err
		}
		key, err := publicKey(text)
		if err != nil {
			return nil, node.OperationError(i, "The public key cannot be read", err.Error())
		}
		public, ok := key.(*rsa.PublicKey)
		if !ok {
			return nil, node.OperationError(i, "The public key is no RSA key", "")
		}
		sealed, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, public, data, nil)
		switch {
		case errors.Is(err, rsa.ErrMessageTooLong):
			return nil, node.OperationError(i, "The value is too long for the key", "Choose the mode symmetric, which has no limit.")
		case err != nil:
			return nil, node.OperationError(i, "The value cannot be encrypted", err.Error())
		}
		return sealed, nil
	}
	text, err := credentialText(ctx, call, i, "encryptionPrivateKey")
	if err != nil {
		return nil, err
	}
	key, err := privateKey(text)
	if err != nil {
		return nil, node.OperationError(i, "The private key cannot be read", err.Error())
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, node.OperationError(i, "The private key is no RSA key", "")
	}
	plain, err := rsa.DecryptOAEP(sha256.New(), nil, private, data, nil)
	if err != nil {
		return nil, node.OperationError(i, "The value cannot be decrypted", "It was encrypted for another key, or it was changed.")
	}
	return plain, nil
}
