package values

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Crypto hashes, signs, encrypts and makes random texts. Version 2 takes its secrets from a
// credential (crypto) instead of its parameters.
func Crypto() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "crypto", Versions: []float64{1, 2}},
		Execute: oneByOne(cryptoItem),
	}
}

func cryptoItem(ctx context.Context, call *node.Call, i int) (workflow.Item, error) {
	var none workflow.Item
	action, err := call.String(ctx, i, "action", "hash")
	if err != nil {
		return none, err
	}
	property, err := call.String(ctx, i, "dataPropertyName", "data")
	if err != nil {
		return none, err
	}
	var value string
	switch action {
	case "generate":
		value, err = randomText(ctx, call, i)
	case "hash", "hmac":
		value, err = digest(ctx, call, i, action)
	case "sign":
		value, err = signature(ctx, call, i)
	case "encrypt", "decrypt":
		value, err = encryption(ctx, call, i, action)
	default:
		err = node.Unknown(i, "action", action, "decrypt", "encrypt", "generate", "hash", "hmac", "sign")
	}
	if err != nil {
		return none, err
	}
	return withField(call.Input(0)[i], property, jsonobject.Quote(value)), nil
}

// digest is the hash of a text or a file, with a secret for action hmac.
func digest(ctx context.Context, call *node.Call, i int, action string) (string, error) {
	kind, err := call.String(ctx, i, "type", "MD5")
	if err != nil {
		return "", err
	}
	newHash := hashOf(kind)
	var sum hash.Hash
	switch {
	case newHash == nil && action == "hmac":
		return "", node.OperationError(i, "Invalid digest: "+kind, "parameter type")
	case newHash == nil:
		return "", node.OperationError(i, "Digest method not supported", fmt.Sprintf("parameter type: there is no hash %q", kind))
	case action == "hmac":
		secret, err := secretOf(ctx, call, i, "secret", "hmacSecret")
		if err != nil {
			return "", err
		}
		sum = keyed(newHash, secret)
	default:
		sum = newHash()
	}
	binary, err := call.Bool(ctx, i, "binaryData", false)
	if err != nil {
		return "", err
	}
	if binary {
		err = hashFile(ctx, call, i, sum)
	} else {
		var value string
		value, err = call.String(ctx, i, "value", "")
		_, _ = io.WriteString(sum, value)
	}
	if err != nil {
		return "", err
	}
	return encoded(ctx, call, i, sum.Sum(nil))
}

// hashFile reads a file into a hash, piece by piece.
func hashFile(ctx context.Context, call *node.Call, i int, sum io.Writer) error {
	name, err := call.String(ctx, i, "binaryPropertyName", "data")
	if err != nil {
		return err
	}
	file, err := openFile(ctx, call, i, name)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(sum, file); err != nil {
		return node.ParameterError(fmt.Errorf("read file %q: %w", name, err), i, "binaryPropertyName")
	}
	return nil
}

func encoded(ctx context.Context, call *node.Call, i int, data []byte) (string, error) {
	encoding, err := call.String(ctx, i, "encoding", "hex")
	if err != nil {
		return "", err
	}
	text, ok := encode(data, encoding)
	if !ok {
		return "", node.Unknown(i, "encoding", encoding, "hex", "base64")
	}
	return text, nil
}

// secretOf is a secret: version 1 has it in a parameter, later ones in a credential.
func secretOf(ctx context.Context, call *node.Call, i int, parameter string, fields ...string) (string, error) {
	if call.Node.TypeVersion < 2 {
		return call.String(ctx, i, parameter, "")
	}
	return credentialText(ctx, call, i, fields...)
}

// credentialText is the first of the credential's fields that is set.
func credentialText(ctx context.Context, call *node.Call, i int, fields ...string) (string, error) {
	secret, err := credential(ctx, call, i, "crypto")
	if err != nil {
		return "", err
	}
	text := secret.text(fields...)
	if text == "" {
		return "", node.OperationError(i, fmt.Sprintf("Credential %s has no %s", secret.name, fields[0]), "")
	}
	return text, nil
}

// signature signs a text with an RSA or an EC key.
func signature(ctx context.Context, call *node.Call, i int) (string, error) {
	value, err := call.String(ctx, i, "value", "")
	if err != nil {
		return "", err
	}
	algorithm, err := call.String(ctx, i, "algorithm", "")
	if err != nil {
		return "", err
	}
	id, ok := signatureHash(algorithm)
	if !ok {
		return "", node.OperationError(i, "Invalid digest: "+algorithm, "parameter algorithm: choose one such as RSA-SHA256")
	}
	text, err := secretOf(ctx, call, i, "privateKey", "signPrivateKey", "privateKey")
	if err != nil {
		return "", err
	}
	key, err := privateKey(text)
	if err != nil {
		return "", node.OperationError(i, "The private key cannot be read", err.Error())
	}
	sum := id.New()
	_, _ = io.WriteString(sum, value)
	var signed []byte
	switch key := key.(type) {
	case *rsa.PrivateKey:
		signed, err = rsa.SignPKCS1v15(rand.Reader, key, id, sum.Sum(nil))
	case *ecdsa.PrivateKey:
		signed, err = key.Sign(rand.Reader, sum.Sum(nil), id)
	default:
		return "", node.OperationError(i, fmt.Sprintf("A key of type %T cannot sign with %s", key, algorithm), "Use an RSA or an EC key.")
	}
	if err != nil {
		return "", node.OperationError(i, "The text cannot be signed", err.Error())
	}
	return encoded(ctx, call, i, signed)
}

// maxRandomLength bounds a random text.
const maxRandomLength = 1 << 20

// randomText makes a UUID, or a text of stringLength characters.
func randomText(ctx context.Context, call *node.Call, i int) (string, error) {
	encoding, err := call.String(ctx, i, "encodingType", "uuid")
	if err != nil {
		return "", err
	}
	if encoding == "uuid" {
		id, err := uuid.NewRandom()
		if err != nil {
			return "", fmt.Errorf("make a UUID: %w", err)
		}
		return id.String(), nil
	}
	length, err := call.Int(ctx, i, "stringLength", 32)
	if err != nil {
		return "", err
	}
	if length < 1 || length > maxRandomLength {
		return "", node.OperationError(i, fmt.Sprintf("A random text cannot have the length %d", length), fmt.Sprintf("parameter stringLength: choose 1 to %d", maxRandomLength))
	}
	random := make([]byte, length) // enough for each encoding
	_, _ = rand.Read(random)       // it does not fail
	switch encoding {
	case "hex":
		return hex.EncodeToString(random)[:length], nil
	case "base64":
		return base64.StdEncoding.EncodeToString(random)[:length], nil
	case "ascii":
		return asciiText(random), nil
	}
	return "", node.Unknown(i, "encodingType", encoding, "ascii", "base64", "hex", "uuid")
}

// asciiText makes each byte a printable character. There are 94; the bytes beyond the
// last multiple of it are drawn again, so that all are equally likely.
func asciiText(random []byte) string {
	const printable = '~' - '!' + 1
	for i, b := range random {
		for b >= 256/printable*printable {
			var again [1]byte
			_, _ = rand.Read(again[:])
			b = again[0]
		}
		random[i] = '!' + b%printable
	}
	return string(random)
}
