package values

import (
	"context"
	"crypto/hmac"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// TOTP gives the one-time password of the moment (RFC 6238) and the seconds that it
// stays valid: {"token", "secondsRemaining"}.
func TOTP() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "totp", Versions: []float64{1}},
		Execute: oneByOne(totp),
	}
}

func totp(ctx context.Context, call *node.Call, i int) (workflow.Item, error) {
	var none workflow.Item
	operation, err := call.String(ctx, i, "operation", "generateSecret")
	if err != nil {
		return none, err
	}
	if operation != "generateSecret" {
		return none, node.Unknown(i, "operation", operation, "generateSecret")
	}
	algorithm, err := call.String(ctx, i, "options.algorithm", "SHA1")
	if err != nil {
		return none, err
	}
	newHash := hashOf(algorithm)
	if newHash == nil {
		return none, node.Unknown(i, "options.algorithm", algorithm, hashNames()...)
	}
	digits, err := call.Int(ctx, i, "options.digits", 6)
	if err != nil {
		return none, err
	}
	if digits < 1 || digits > 10 {
		return none, node.OperationError(i, fmt.Sprintf("a password of %d digits is not possible", digits), "parameter options.digits: choose 1 to 10")
	}
	period, err := call.Int(ctx, i, "options.period", 30)
	if err != nil {
		return none, err
	}
	if period < 1 {
		return none, node.OperationError(i, "the period of a password has to be a second or more", "parameter options.period")
	}
	secret, err := credential(ctx, call, i, "totpApi")
	if err != nil {
		return none, err
	}
	key, ok := base32Key(secret.text("secret"))
	if !ok {
		// The decoder's error would quote the secret.
		return none, node.OperationError(i, "Credential "+secret.name+" has no valid secret", "The secret has to be base32: the letters A to Z and the digits 2 to 7.")
	}
	now := call.Now().Unix()
	var object jsonobject.Object
	object.Set("token", jsonobject.Quote(oneTimePassword(newHash, key, now/int64(period), digits)))
	object.Set("secondsRemaining", fmt.Sprint(int64(period)-now%int64(period)))
	return workflow.Item{JSON: object.JSON()}, nil
}

var base32Encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// base32Key reads a secret as people copy it: in groups, in lower case, padded or not.
func base32Key(text string) ([]byte, bool) {
	text = strings.ToUpper(strings.TrimRight(strings.NewReplacer(" ", "", "-", "").Replace(strings.TrimSpace(text)), "="))
	key, err := base32Encoding.DecodeString(text)
	return key, err == nil && len(key) > 0
}

// oneTimePassword is HOTP (RFC 4226, section 5.3). The libraries for it know three hashes
// of the nine that the node has, and bring a barcode writer along.
func oneTimePassword(newHash func() hash.Hash, key []byte, counter int64, digits int) string {
	mac := hmac.New(newHash, key)
	_ = binary.Write(mac, binary.BigEndian, counter)
	sum := mac.Sum(nil)
	offset := int(sum[len(sum)-1] & 0xf)
	// MD5's sum is too short for the greatest offsets.
	offset = min(offset, len(sum)-4)
	code := uint64(binary.BigEndian.Uint32(sum[offset:]) & 0x7fffffff)
	modulus := uint64(1)
	for range digits {
		modulus *= 10
	}
	return fmt.Sprintf("%0*d", digits, code%modulus)
}
