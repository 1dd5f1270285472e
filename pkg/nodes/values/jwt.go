package values

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// JWT signs, verifies and decodes JSON web tokens with a credential (jwtAuth):
// {"keyType": "passphrase" | "pemKey", "secret", "privateKey", "publicKey", "algorithm"}.
func JWT() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "jwt", Versions: []float64{1}},
		Execute: oneByOne(jwtItem),
	}
}

func jwtItem(ctx context.Context, call *node.Call, i int) (workflow.Item, error) {
	var none workflow.Item
	operation, err := call.String(ctx, i, "operation", "sign")
	if err != nil {
		return none, err
	}
	var object jsonobject.Object
	switch operation {
	case "sign":
		var token string
		token, err = signToken(ctx, call, i)
		object.Set("token", jsonobject.Quote(token))
	case "decode", "verify":
		object, err = readToken(ctx, call, i, operation == "verify")
	default:
		err = node.Unknown(i, "operation", operation, "decode", "sign", "verify")
	}
	if err != nil {
		return none, err
	}
	return workflow.Item{JSON: object.JSON()}, nil
}

// signToken builds the token by hand and leaves only the signature to the library, whose
// claims would lose their order and long numbers their digits.
func signToken(ctx context.Context, call *node.Call, i int) (string, error) {
	secret, method, err := signing(ctx, call, i)
	if err != nil {
		return "", err
	}
	claims, err := claimsOf(ctx, call, i)
	if err != nil {
		return "", err
	}
	key, err := signingKey(secret, method)
	if err != nil {
		return "", node.OperationError(i, fmt.Sprintf("Credential %s has no key that can sign with %s", secret.name, method.Alg()), err.Error())
	}
	var header jsonobject.Object
	header.Set("alg", jsonobject.Quote(method.Alg()))
	header.Set("typ", `"JWT"`)
	kid, err := call.String(ctx, i, "options.kid", "")
	if err != nil {
		return "", err
	}
	if kid != "" {
		header.Set("kid", jsonobject.Quote(kid))
	}
	encoding := new(jwt.Token)
	text := encoding.EncodeSegment(header.JSON()) + "." + encoding.EncodeSegment(claims)
	signed, err := method.Sign(text, key)
	if err != nil {
		return "", node.OperationError(i, fmt.Sprintf("Credential %s has no key that can sign with %s", secret.name, method.Alg()), "")
	}
	return text + "." + encoding.EncodeSegment(signed), nil
}

// signing reads the credential and the algorithm, which the option overrides.
func signing(ctx context.Context, call *node.Call, i int) (*secrets, jwt.SigningMethod, error) {
	secret, err := credential(ctx, call, i, "jwtAuth")
	if err != nil {
		return nil, nil, err
	}
	algorithm, err := call.String(ctx, i, "options.algorithm", "")
	if err != nil {
		return nil, nil, err
	}
	if algorithm == "" {
		algorithm = secret.text("algorithm")
	}
	if algorithm == "" {
		algorithm = "HS256"
	}
	method := jwt.GetSigningMethod(algorithm)
	if method == nil {
		return nil, nil, node.Unknown(i, "options.algorithm", algorithm, "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "none")
	}
	return secret, method, nil
}

func signingKey(secret *secrets, method jwt.SigningMethod) (any, error) {
	switch {
	case method == jwt.SigningMethodNone:
		return jwt.UnsafeAllowNoneSignatureType, nil
	case strings.HasPrefix(method.Alg(), "HS"):
		return passphrase(secret)
	}
	return privateKey(secret.text("privateKey"))
}

func passphrase(secret *secrets) ([]byte, error) {
	text := secret.text("secret")
	if text == "" {
		return nil, fmt.Errorf("its secret is empty")
	}
	return []byte(text), nil
}

// claimsOf is the payload: the claims as a text, or the fields of the node's form. Like
// every token of jsonwebtoken it tells when it was issued.
func claimsOf(ctx context.Context, call *node.Call, i int) (json.RawMessage, error) {
	asJSON, err := call.Bool(ctx, i, "useJson", false)
	if err != nil {
		return nil, err
	}
	now := call.Now().Unix()
	var claims jsonobject.Object
	if asJSON {
		value, err := call.Param(ctx, i, "claimsJson")
		if err != nil {
			return nil, err
		}
		parsed := gjson.ParseBytes(value)
		if parsed.Type == gjson.String {
			if !gjson.Valid(parsed.Str) {
				return nil, node.OperationError(i, "The claims are not valid JSON", "parameter claimsJson")
			}
			parsed = gjson.Parse(parsed.Str)
		}
		if !parsed.IsObject() {
			return nil, node.OperationError(i, "The claims have to be a JSON object", "parameter claimsJson")
		}
		claims = jsonobject.Parse(parsed.Raw)
		if !claims.Has("iat") {
			claims.Set("iat", fmt.Sprint(now))
		}
		return claims.JSON(), nil
	}
	value, err := call.Param(ctx, i, "claims")
	if err != nil {
		return nil, err
	}
	form := gjson.ParseBytes(value)
	claims.Set("iat", fmt.Sprint(now))
	for _, field := range []struct{ parameter, claim string }{{"expiresIn", "exp"}, {"notBefore", "nbf"}} {
		after := form.Get(field.parameter)
		if !after.Exists() || after.String() == "" {
			continue
		}
		if after.Type != gjson.Number && !isNumber(after.String()) {
			return nil, node.OperationError(i, fmt.Sprintf("%q is no number of seconds", after.String()), "parameter claims."+field.parameter)
		}
		claims.Set(field.claim, fmt.Sprint(now+int64(after.Float())))
	}
	for _, field := range []struct{ parameter, claim string }{{"audience", "aud"}, {"issuer", "iss"}, {"subject", "sub"}, {"jwtid", "jti"}} {
		if text := form.Get(field.parameter).String(); text != "" {
			claims.Set(field.claim, jsonobject.Quote(text))
		}
	}
	return claims.JSON(), nil
}
