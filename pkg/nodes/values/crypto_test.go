package values

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// with gives a call a credential.
func with(kind string, data map[string]any) func(*node.Call) {
	return func(c *node.Call) {
		c.Node.Credentials = map[string]workflow.CredentialRef{kind: {Name: "Mine"}}
		c.Credentials = func(_ context.Context, asked string, _ workflow.CredentialRef) (map[string]any, error) {
			if asked != kind {
				return nil, fmt.Errorf("no credential of type %s", asked)
			}
			return data, nil
		}
	}
}

func TestHashes(t *testing.T) {
	for _, row := range []struct{ name, parameters, want string }{
		{"MD5 by default", `{"value":"hello"}`, "5d41402abc4b2a76b9719d911017c592"},
		{"lower case", `{"type":"sha1","value":"hello"}`, "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"},
		{"SHA256", `{"type":"SHA256","value":"hello"}`, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
		{"SHA384 of nothing", `{"type":"SHA384"}`, "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b"},
		{"SHA3-256", `{"type":"SHA3-256","value":"abc"}`, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"},
		{"UTF-8, base64", `{"type":"SHA256","value":"ü","encoding":"base64"}`, sum("ü")},
		{"a number", `{"value":12}`, "c20ad4d76fe97759aa27a0c99bff6710"},
		{"RFC 4231, case 2", `{"action":"hmac","type":"SHA256","value":"what do ya want for nothing?","secret":"Jefe"}`, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{"a file", `{"binaryData":true,"type":"SHA1","binaryPropertyName":"f"}`, "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"},
		{"hmac of a file", `{"action":"hmac","binaryData":true,"type":"SHA1","secret":"k","binaryPropertyName":"f"}`, "0b7938d1a2cdcafa94645a5c3508f7236ae457a9"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, Crypto(), row.parameters, `{"a":1}`, func(c *node.Call) {
				c.Node.TypeVersion = 1
				c.Inputs[0][0].Binary = map[string]workflow.Binary{"f": {Data: base64.StdEncoding.EncodeToString([]byte("hello"))}}
			})
			require.Nil(t, failure)
			require.Equal(t, `{"a":1,"data":"`+row.want+`"}`, got)
		})
	}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(s[:])
}

func TestSecretsOfVersion2(t *testing.T) {
	parameters := `{"action":"hmac","type":"SHA1","value":"hello","secret":"not this"}`
	got, failure := run(t, Crypto(), parameters, `{}`, with("crypto", map[string]any{"hmacSecret": "k"}))
	require.Nil(t, failure)
	require.Equal(t, `{"data":"0b7938d1a2cdcafa94645a5c3508f7236ae457a9"}`, got)
	_, failure = run(t, Crypto(), parameters, `{}`, nil)
	require.Equal(t, `Node does not have any credentials set for "crypto"`, failure.Message)
	_, failure = run(t, Crypto(), parameters, `{}`, with("crypto", map[string]any{}))
	require.Contains(t, failure.Message, "has no hmacSecret")
}

func TestSignatures(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	digest := sha256.Sum256([]byte("text"))
	for name, key := range keys(t, rsaKey, ecKey) {
		for _, algorithm := range []string{"RSA-SHA256", "sha256", "sha256WithRSAEncryption"} {
			t.Run(name+" "+algorithm, func(t *testing.T) {
				parameters := fmt.Sprintf(`{"action":"sign","value":"text","algorithm":%q,"encoding":"base64","privateKey":%s}`, algorithm, jsonobject.Quote(key))
				got, failure := run(t, Crypto(), parameters, `{}`, func(c *node.Call) { c.Node.TypeVersion = 1 })
				require.Nil(t, failure)
				signed, err := base64.StdEncoding.DecodeString(gjson.Get(got, "data").String())
				require.NoError(t, err)
				if strings.HasPrefix(name, "rsa") {
					require.NoError(t, rsa.VerifyPKCS1v15(&rsaKey.PublicKey, crypto.SHA256, digest[:], signed))
				} else {
					require.True(t, ecdsa.VerifyASN1(&ecKey.PublicKey, digest[:], signed))
				}
			})
		}
	}
}

// keys are a key in each of the forms that people have it in.
func keys(t *testing.T, rsaKey *rsa.PrivateKey, ecKey *ecdsa.PrivateKey) map[string]string {
	t.Helper()
	pkcs8, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	require.NoError(t, err)
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	require.NoError(t, err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	return map[string]string{
		"rsa PKCS 8":          text,
		"rsa, escaped breaks": strings.ReplaceAll(text, "\n", `\n`),
		"rsa, in one line":    strings.TrimSpace(strings.ReplaceAll(text, "\n", " ")),
		"rsa PKCS 1":          string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})),
		"ec SEC 1":            string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})),
	}
}

func TestRandomTexts(t *testing.T) {
	for parameters, pattern := range map[string]string{
		`{"action":"generate"}`: `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`,
		`{"action":"generate","encodingType":"hex","stringLength":31}`:      `^[0-9a-f]{31}$`,
		`{"action":"generate","encodingType":"base64"}`:                     `^[0-9A-Za-z+/=]{32}$`,
		`{"action":"generate","encodingType":"ascii","stringLength":"900"}`: `^[!-~]{900}$`,
	} {
		first, failure := run(t, Crypto(), parameters, `{}`, nil)
		require.Nil(t, failure)
		require.Regexp(t, regexp.MustCompile(pattern), gjson.Get(first, "data").String(), parameters)
		second, failure := run(t, Crypto(), parameters, `{}`, nil)
		require.Nil(t, failure)
		require.NotEqual(t, first, second)
	}
}

func TestCryptoFailures(t *testing.T) {
	for _, row := range []struct{ name, parameters, message, description string }{
		{"hash", `{"type":"NOPE","value":"x"}`, "Digest method not supported", `"NOPE"`},
		{"hmac", `{"action":"hmac","type":"NOPE","value":"x"}`, "Invalid digest: NOPE", ""},
		{"signature", `{"action":"sign","algorithm":"NOPE","value":"x"}`, "Invalid digest: NOPE", "RSA-SHA256"},
		{"key", `{"action":"sign","algorithm":"RSA-SHA256","value":"x","privateKey":"topsecret"}`, "The private key cannot be read", "it is not PEM"},
		{"action", `{"action":"shred"}`, `"shred" is not supported`, "parameter action"},
		{"encoding", `{"encoding":"rot13"}`, `"rot13" is not supported`, "parameter encoding"},
		{"file", `{"binaryData":true}`, `This operation expects the node's input data to contain a binary file "data", but none was found`, ""},
		{"length", `{"action":"generate","encodingType":"hex","stringLength":0}`, "A random text cannot have the length 0", "parameter stringLength"},
		{"encoding of a random text", `{"action":"generate","encodingType":"octal"}`, `"octal" is not supported`, "parameter encodingType"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, failure := run(t, Crypto(), row.parameters, `{}`, func(c *node.Call) { c.Node.TypeVersion = 1 })
			require.NotNil(t, failure)
			require.Equal(t, row.message, failure.Message)
			require.Contains(t, failure.Description, row.description)
			require.NotContains(t, failure.Message+failure.Description, "topsecret")
		})
	}
}

// TestTOTP has the vectors of RFC 6238, appendix B.
func TestTOTP(t *testing.T) {
	secret := func(n int) string { return base32Text(strings.Repeat("1234567890", 7)[:n]) }
	for _, row := range []struct {
		at        int64
		algorithm string
		length    int
		want      string
	}{
		{59, "SHA1", 20, "94287082"}, {1111111109, "SHA1", 20, "07081804"}, {20000000000, "SHA1", 20, "65353130"},
		{59, "SHA256", 32, "46119246"}, {1234567890, "SHA256", 32, "91819424"}, {59, "SHA512", 64, "90693936"}, {2000000000, "SHA512", 64, "38618901"},
	} {
		change := with("totpApi", map[string]any{"secret": secret(row.length), "label": "x"})
		got, failure := run(t, TOTP(), fmt.Sprintf(`{"options":{"algorithm":%q,"digits":8}}`, row.algorithm), `{"a":1}`, func(c *node.Call) {
			change(c)
			c.Now = func() time.Time { return time.Unix(row.at, 0) }
		})
		require.Nil(t, failure)
		require.Equal(t, fmt.Sprintf(`{"token":%q,"secondsRemaining":%d}`, row.want, 30-row.at%30), got)
	}
	for parameters, message := range map[string]string{
		`{"options":{"algorithm":"CRC"}}`: `"CRC" is not supported`,
		`{"options":{"digits":40}}`:       "a password of 40 digits is not possible",
		`{"options":{"period":0}}`:        "the period of a password has to be a second or more",
		`{}`:                              `Credential "Mine" (totpApi) has no valid secret`,
	} {
		_, failure := run(t, TOTP(), parameters, `{}`, with("totpApi", map[string]any{"secret": "top0secret1"}))
		require.NotNil(t, failure, parameters)
		require.Equal(t, message, failure.Message)
		require.NotContains(t, failure.Description, "top0secret1")
	}
	key, ok := base32Key(" gezd gnbv-gy3tqojq== ")
	require.True(t, ok)
	require.Equal(t, "1234567890", string(key))
}

func base32Text(text string) string {
	return base32Encoding.EncodeToString([]byte(text))
}
