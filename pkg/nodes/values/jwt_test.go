package values

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// passphraseOf is a credential with the secret of jwt.io's example.
var passphraseOf = map[string]any{"keyType": "passphrase", "secret": "your-256-bit-secret", "algorithm": "HS256"}

// example is the token of jwt.io.
const example = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"

func TestSignToken(t *testing.T) {
	for _, row := range []struct{ name, parameters, header, payload string }{
		{"claims as text", `{"useJson":true,"claimsJson":"{\"sub\":\"1234567890\",\"name\":\"John Doe\",\"iat\":1516239022}"}`, `{"alg":"HS256","typ":"JWT"}`, `{"sub":"1234567890","name":"John Doe","iat":1516239022}`},
		{"claims as an object, long numbers", `{"useJson":true,"claimsJson":{"z":12345678901234567890,"a":1}}`, `{"alg":"HS256","typ":"JWT"}`, `{"z":12345678901234567890,"a":1,"iat":1709640000}`},
		{"form", `{"claims":{"expiresIn":3600,"issuer":"me","audience":"you","notBefore":"-5","subject":"s","jwtid":"j"},"options":{"algorithm":"HS512","kid":"7"}}`, `{"alg":"HS512","typ":"JWT","kid":"7"}`, `{"iat":1709640000,"exp":1709643600,"nbf":1709639995,"aud":"you","iss":"me","sub":"s","jti":"j"}`},
		{"nothing", `{}`, `{"alg":"HS256","typ":"JWT"}`, `{"iat":1709640000}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, JWT(), row.parameters, `{"a":1}`, with("jwtAuth", passphraseOf))
			require.Nil(t, failure)
			token := gjson.Get(got, "token").String()
			require.Equal(t, `{"token":"`+token+`"}`, got)
			parts := strings.Split(token, ".")
			for i, want := range []string{row.header, row.payload} {
				text, err := base64.RawURLEncoding.DecodeString(parts[i])
				require.NoError(t, err)
				require.Equal(t, want, string(text))
			}
			if strings.Contains(row.payload, "John") {
				require.Equal(t, example, token)
			}
		})
	}
}

func TestReadToken(t *testing.T) {
	payload, header := `{"sub":"1234567890","name":"John Doe","iat":1516239022}`, `{"alg":"HS256","typ":"JWT"}`
	for _, row := range []struct{ parameters, want string }{
		{`{"operation":"decode","token":"` + example + `"}`, `{"payload":` + payload + `}`},
		{`{"operation":"verify","token":" ` + example + `\n"}`, `{"payload":` + payload + `}`},
		{`{"operation":"verify","token":"` + example + `","options":{"complete":true}}`, `{"header":` + header + `,"payload":` + payload + `,"signature":"SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"}`},
	} {
		got, failure := run(t, JWT(), row.parameters, `{}`, with("jwtAuth", passphraseOf))
		require.Nil(t, failure)
		require.Equal(t, row.want, got)
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	sign := func(claims string) string {
		got, failure := run(t, JWT(), `{"useJson":true,"claimsJson":`+claims+`}`, `{}`, with("jwtAuth", passphraseOf))
		require.Nil(t, failure)
		return gjson.Get(got, "token").String()
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + strings.Split(example, ".")[1] + "."
	expired, early := sign(`{"exp":1709639990}`), sign(`{"nbf":1709640010}`)
	for _, row := range []struct{ name, token, options, message string }{
		{"empty", "", `{}`, "The JWT token was not found"},
		{"no token", "abc", `{}`, "jwt malformed"},
		{"changed", example[:len(example)-2] + "AA", `{}`, "invalid signature"},
		{"no signature", none, `{}`, "invalid algorithm"},
		{"none asked for", none, `{"algorithm":"none"}`, "Tokens without a signature cannot be verified"},
		{"another algorithm", example, `{"algorithm":"HS512"}`, "invalid algorithm"},
		{"expired", expired, `{}`, "jwt expired"},
		{"expired, tolerance too small", expired, `{"clockTolerance":10}`, "jwt expired"},
		{"expired, tolerated", expired, `{"clockTolerance":11}`, ""},
		{"expired, ignored", expired, `{"ignoreExpiration":true}`, ""},
		{"early", early, `{}`, "jwt not active"},
		{"early, ignored", early, `{"ignoreNotBefore":true}`, ""},
		{"early, tolerated", early, `{"clockTolerance":10}`, ""},
		{"strange claim", sign(`{"exp":"tomorrow"}`), `{}`, "invalid exp value"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, JWT(), fmt.Sprintf(`{"operation":"verify","token":%q,"options":%s}`, row.token, row.options), `{}`, with("jwtAuth", passphraseOf))
			if row.message == "" {
				require.Nil(t, failure)
				require.NotEmpty(t, gjson.Get(got, "payload").Raw)
				return
			}
			require.NotNil(t, failure, got)
			require.Equal(t, row.message, failure.Message)
			require.NotContains(t, failure.Description, "your-256-bit-secret")
		})
	}
}

func TestTokensWithKeyPairs(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	forms := keys(t, rsaKey, ecKey)
	public := func(key any) string {
		der, err := x509.MarshalPKIXPublicKey(key)
		require.NoError(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	for _, row := range []struct{ algorithm, private, public string }{
		{"RS256", forms["rsa PKCS 8"], public(&rsaKey.PublicKey)}, {"PS384", forms["rsa PKCS 1"], public(&rsaKey.PublicKey)},
		{"ES256", forms["ec SEC 1"], public(&ecKey.PublicKey)}, {"RS512", forms["rsa, in one line"], forms["rsa PKCS 8"]},
	} {
		t.Run(row.algorithm, func(t *testing.T) {
			credential := with("jwtAuth", map[string]any{"keyType": "pemKey", "privateKey": row.private, "publicKey": row.public, "algorithm": row.algorithm})
			got, failure := run(t, JWT(), `{"useJson":true,"claimsJson":"{\"user_id\":5}"}`, `{}`, credential)
			require.Nil(t, failure)
			token := gjson.Get(got, "token").String()
			got, failure = run(t, JWT(), fmt.Sprintf(`{"operation":"verify","token":%q}`, token), `{}`, credential)
			require.Nil(t, failure)
			require.Equal(t, int64(5), gjson.Get(got, "payload.user_id").Int())
			// A public key is no passphrase: who knows it must not be able to sign with it.
			forged, failure := run(t, JWT(), `{"useJson":true,"claimsJson":{"user_id":6}}`, `{}`, with("jwtAuth", map[string]any{"secret": row.public}))
			require.Nil(t, failure)
			_, failure = run(t, JWT(), `{"operation":"verify","token":`+jsonobject.Quote(gjson.Get(forged, "token").String())+`}`, `{}`, credential)
			require.NotNil(t, failure)
			require.Equal(t, "invalid algorithm", failure.Message)
		})
	}
}

func TestSigningFailures(t *testing.T) {
	for _, row := range []struct {
		name, parameters string
		credential       map[string]any
		message          string
	}{
		{"no JSON", `{"useJson":true,"claimsJson":"{nope"}`, passphraseOf, "The claims are not valid JSON"},
		{"no object", `{"useJson":true,"claimsJson":"[1]"}`, passphraseOf, "The claims have to be a JSON object"},
		{"no number", `{"claims":{"expiresIn":"soon"}}`, passphraseOf, `"soon" is no number of seconds`},
		{"no secret", `{}`, map[string]any{"algorithm": "HS256"}, `Credential "Mine" (jwtAuth) has no key that can sign with HS256`},
		{"no key", `{}`, map[string]any{"algorithm": "RS256", "privateKey": "topsecret"}, `Credential "Mine" (jwtAuth) has no key that can sign with RS256`},
		{"algorithm", `{"options":{"algorithm":"XX1"}}`, passphraseOf, `"XX1" is not supported`},
		{"operation", `{"operation":"forge"}`, passphraseOf, `"forge" is not supported`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, failure := run(t, JWT(), row.parameters, `{}`, with("jwtAuth", row.credential))
			require.NotNil(t, failure)
			require.Equal(t, row.message, failure.Message)
			require.NotContains(t, failure.Description, "topsecret")
		})
	}
}
