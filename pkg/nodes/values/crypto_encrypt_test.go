package values

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

var sesame = with("crypto", map[string]any{"encryptionPassphrase": "correct horse battery"})

// The texts were encrypted by node:crypto (OpenSSL) with the salt 7… and the nonce 9….
func TestDecryptWithPassphrase(t *testing.T) {
	for cipher, text := range map[string]string{
		"aes-256-gcm":       "AQcHBwcHBwcHBwcHBwcHBwcJCQkJCQkJCQkJCQkWdBE8k8LZy1XYkj0lBMI5HP2sV1ZQFg==",
		"aes-192-gcm":       "AQcHBwcHBwcHBwcHBwcHBwcJCQkJCQkJCQkJCQkmxvoadV3NeZyqMAh8j6C52qLcSDfdQA==",
		"aes-128-gcm":       "AQcHBwcHBwcHBwcHBwcHBwcJCQkJCQkJCQkJCQn71z8DVY62fdk4vk11JmB9K6mDCYRwXw==",
		"chacha20-poly1305": "AQcHBwcHBwcHBwcHBwcHBwcJCQkJCQkJCQkJCQn5gDOYK+c59J4gSsC+6jxN8QFFRI4/vw==",
	} {
		got, failure := run(t, Crypto(), fmt.Sprintf(`{"action":"decrypt","cipher":%q,"value":%q,"dataPropertyName":"p"}`, cipher, text), `{}`, sesame)
		require.Nil(t, failure, cipher)
		require.Equal(t, `{"p":"Grüße"}`, got, cipher)
	}
}

func TestPassphraseThereAndBack(t *testing.T) {
	for _, parameters := range []string{`{"action":%q,"value":%q}`, `{"action":%q,"value":%q,"cipher":"chacha20-poly1305","mode":"symmetric"}`} {
		encrypt := fmt.Sprintf(parameters, "encrypt", "Grüße")
		first, failure := run(t, Crypto(), encrypt, `{}`, sesame)
		require.Nil(t, failure)
		second, failure := run(t, Crypto(), encrypt, `{}`, sesame)
		require.Nil(t, failure)
		require.NotEqual(t, first, second, "each has a salt of its own")
		text := gjson.Get(first, "data").Str
		got, failure := run(t, Crypto(), fmt.Sprintf(parameters, "decrypt", text), `{}`, sesame)
		require.Nil(t, failure)
		require.Equal(t, `{"data":"Grüße"}`, got)

		_, failure = run(t, Crypto(), fmt.Sprintf(parameters, "decrypt", text), `{}`, with("crypto", map[string]any{"encryptionPassphrase": "another"}))
		require.Equal(t, "The value cannot be decrypted", failure.Message)
		sealed, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		for _, at := range []int{1, saltBytes + 1, saltBytes + nonceBytes + 1, len(sealed) - 1} { // salt, nonce, tag, text
			sealed[at] ^= 1
			_, failure = run(t, Crypto(), fmt.Sprintf(parameters, "decrypt", base64.StdEncoding.EncodeToString(sealed)), `{}`, sesame)
			require.Equal(t, "The value cannot be decrypted", failure.Message, at)
			sealed[at] ^= 1
		}
	}
}

func TestRSAThereAndBack(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	pair := with("crypto", map[string]any{
		"encryptionPrivateKey": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"encryptionPublicKey":  strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), "\n", " "),
	})
	encrypted, failure := run(t, Crypto(), `{"action":"encrypt","mode":"asymmetric","value":"Grüße"}`, `{}`, pair)
	require.Nil(t, failure)
	text := gjson.Get(encrypted, "data").Str
	sealed, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	plain, err := rsa.DecryptOAEP(sha256.New(), nil, key, sealed, nil)
	require.NoError(t, err)
	require.Equal(t, "Grüße", string(plain))
	got, failure := run(t, Crypto(), fmt.Sprintf(`{"action":"decrypt","mode":"asymmetric","value":%q}`, text), `{}`, pair)
	require.Nil(t, failure)
	require.Equal(t, `{"data":"Grüße"}`, got)

	for parameters, want := range map[string]string{
		fmt.Sprintf(`{"action":"encrypt","value":%q}`, strings.Repeat("x", 300)): "too long for the key",
		`{"action":"decrypt","value":"AAAA"}`:                                    "cannot be decrypted",
	} {
		_, failure := run(t, Crypto(), strings.Replace(parameters, "{", `{"mode":"asymmetric",`, 1), `{}`, pair)
		require.Contains(t, failure.Message, want)
	}
	for action, want := range map[string]string{"encrypt": "The public key", "decrypt": "The private key"} {
		_, failure := run(t, Crypto(), fmt.Sprintf(`{"action":%q,"mode":"asymmetric","value":"AAAA"}`, action), `{}`,
			with("crypto", map[string]any{"encryptionPublicKey": "topsecret", "encryptionPrivateKey": "topsecret"}))
		require.Contains(t, failure.Message, want)
		require.NotContains(t, failure.Error()+failure.Description, "topsecret")
	}
}

func TestEncryptionFailures(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"action":"decrypt","value":"%"}`:               "it is no base64",
		`{"action":"decrypt","value":"AgME"}`:            "was not made by the action encrypt",
		`{"action":"encrypt","mode":"both"}`:             `"both" is not supported`,
		`{"action":"encrypt","cipher":"rot13"}`:          `"rot13" is not supported`,
		`{"action":"encrypt","mode":"asymmetric"}`:       "has no encryptionPublicKey",
		`{"action":"decrypt","mode":"asymmetric"}`:       "has no encryptionPrivateKey",
		`{"action":"decrypt","value":"` + oldText + `"}`: "was not made by the action encrypt",
	} {
		_, failure := run(t, Crypto(), parameters, `{}`, sesame)
		require.Contains(t, failure.Message, want, parameters)
	}
	_, failure := run(t, Crypto(), `{"action":"encrypt","value":"x"}`, `{}`, nil)
	require.Equal(t, `Node does not have any credentials set for "crypto"`, failure.Message)
}

// oldText is long enough, and of another version.
var oldText = base64.StdEncoding.EncodeToString(append([]byte{envelopeVersion + 1}, make([]byte, headBytes)...))

// An attempt that waits for its turn to make a key ends when it is cancelled.
func TestEncryptionEnds(t *testing.T) {
	for range cap(derivations) {
		derivations <- struct{}{}
	}
	defer func() {
		for range cap(derivations) {
			<-derivations
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	call := nodestest.Call(Crypto(), `{"action":"encrypt","value":"x"}`, nodestest.Items(`{}`))
	sesame(call)
	done := make(chan error)
	go func() {
		_, err := call.Type.Execute(ctx, call)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
