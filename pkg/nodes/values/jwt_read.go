package values

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// readToken gives {"payload"} of a token, or all of it ("header", "payload", "signature").
// The words of the failures are those of jsonwebtoken.
func readToken(ctx context.Context, call *node.Call, i int, verify bool) (jsonobject.Object, error) {
	var object jsonobject.Object
	token, err := call.String(ctx, i, "token", "")
	if err != nil {
		return object, err
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return object, node.OperationError(i, "The JWT token was not found", "parameter token is empty")
	}
	complete, err := call.Bool(ctx, i, "options.complete", false)
	if err != nil {
		return object, err
	}
	parser := jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithJSONNumber())
	if _, _, err := parser.ParseUnverified(token, jwt.MapClaims{}); err != nil && !errors.Is(err, jwt.ErrTokenUnverifiable) {
		return object, node.OperationError(i, "jwt malformed", "parameter token: "+shape(token))
	}
	parts := strings.Split(token, ".")
	header, _ := parser.DecodeSegment(parts[0])
	payload, _ := parser.DecodeSegment(parts[1])
	if verify {
		if err := verifyToken(ctx, call, i, token, gjson.ParseBytes(payload)); err != nil {
			return object, err
		}
	}
	if complete {
		object.Set("header", string(header))
	}
	object.Set("payload", string(payload))
	if complete {
		object.Set("signature", jsonobject.Quote(parts[2]))
	}
	return object, nil
}

// shape says what is wrong with the form of a token, without quoting it.
func shape(token string) string {
	if n := strings.Count(token, ".") + 1; n != 3 {
		return fmt.Sprintf("a token has 3 parts, this text has %d", n)
	}
	return "its parts are not base64url-encoded JSON"
}

func verifyToken(ctx context.Context, call *node.Call, i int, token string, payload gjson.Result) error {
	secret, method, err := signing(ctx, call, i)
	if err != nil {
		return err
	}
	if method == jwt.SigningMethodNone {
		return node.OperationError(i, "Tokens without a signature cannot be verified", "Choose the algorithm that the token was signed with.")
	}
	var key any
	if strings.HasPrefix(method.Alg(), "HS") {
		key, err = passphrase(secret)
	} else {
		text := secret.text("publicKey", "privateKey")
		key, err = publicKey(text)
	}
	if err != nil {
		return node.OperationError(i, fmt.Sprintf("Credential %s has no key that can verify %s", secret.name, method.Alg()), err.Error())
	}
	// Only the chosen algorithm is accepted: the token's own header is its maker's word.
	parser := jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithValidMethods([]string{method.Alg()}))
	_, err = parser.Parse(token, func(t *jwt.Token) (any, error) {
		if t.Method.Alg() != method.Alg() {
			return nil, jwt.ErrTokenUnverifiable
		}
		return key, nil
	})
	if err != nil {
		header, _, _ := strings.Cut(token, ".")
		raw, _ := parser.DecodeSegment(header)
		if found := gjson.GetBytes(raw, "alg").String(); found != method.Alg() {
			return node.OperationError(i, "invalid algorithm", fmt.Sprintf("the token names %q, the credential or the option %q", found, method.Alg()))
		}
		return node.OperationError(i, "invalid signature", "")
	}
	return validNow(ctx, call, i, payload)
}

// validNow checks the claims of time.
func validNow(ctx context.Context, call *node.Call, i int, payload gjson.Result) error {
	tolerance, err := call.Int(ctx, i, "options.clockTolerance", 0)
	if err != nil {
		return err
	}
	now := float64(call.Now().Unix())
	for _, check := range []struct {
		claim, option, message string
		fails                  func(at float64) bool
	}{
		{"nbf", "options.ignoreNotBefore", "jwt not active", func(at float64) bool { return at > now+float64(tolerance) }},
		{"exp", "options.ignoreExpiration", "jwt expired", func(at float64) bool { return now >= at+float64(tolerance) }},
	} {
		at := payload.Get(check.claim)
		ignore, err := call.Bool(ctx, i, check.option, false)
		if err != nil {
			return err
		}
		if !at.Exists() || ignore {
			continue
		}
		if at.Type != gjson.Number {
			return node.OperationError(i, "invalid "+check.claim+" value", "the claim is no number")
		}
		if check.fails(at.Num) {
			return node.OperationError(i, check.message, fmt.Sprintf("the claim %s is %s", check.claim, at.Raw))
		}
	}
	return nil
}
