package values

import (
	"crypto"
	"crypto/hmac"
	"crypto/md5"  //nolint:gosec // the author of the workflow chooses the hash
	"crypto/sha1" //nolint:gosec // the same
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"sort"
	"strings"
)

// hashes by the names that nodes have for them, in upper case.
var hashes = map[string]struct {
	id  crypto.Hash
	new func() hash.Hash
}{
	"MD5":      {crypto.MD5, md5.New},
	"SHA1":     {crypto.SHA1, sha1.New},
	"SHA224":   {crypto.SHA224, sha256.New224},
	"SHA256":   {crypto.SHA256, sha256.New},
	"SHA384":   {crypto.SHA384, sha512.New384},
	"SHA512":   {crypto.SHA512, sha512.New},
	"SHA3-224": {crypto.SHA3_224, func() hash.Hash { return sha3.New224() }},
	"SHA3-256": {crypto.SHA3_256, func() hash.Hash { return sha3.New256() }},
	"SHA3-384": {crypto.SHA3_384, func() hash.Hash { return sha3.New384() }},
	"SHA3-512": {crypto.SHA3_512, func() hash.Hash { return sha3.New512() }},
}

// hashOf finds a hash by its name in any case; nil when there is none.
func hashOf(name string) func() hash.Hash { return hashes[strings.ToUpper(name)].new }

// signatureHash finds the hash in OpenSSL's name of a signature algorithm, such as
// RSA-SHA256, sha256WithRSAEncryption, RSA-SHA1-2 or id-rsassa-pkcs1-v1_5-with-sha3-256.
func signatureHash(algorithm string) (crypto.Hash, bool) {
	name := strings.ToUpper(algorithm)
	name = strings.TrimPrefix(name, "ID-RSASSA-PKCS1-V1_5-WITH-")
	name = strings.TrimPrefix(name, "RSA-")
	name = strings.TrimSuffix(name, "WITHRSAENCRYPTION")
	name = strings.TrimSuffix(name, "WITHRSA")
	if name == "SHA1-2" || name == "SSL3-SHA1" {
		name = "SHA1"
	}
	if name == "SSL3-MD5" {
		name = "MD5"
	}
	found, ok := hashes[name]
	return found.id, ok
}

func hashNames() []string {
	names := make([]string, 0, len(hashes))
	for name := range hashes {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// keyed is a hash with a secret.
func keyed(newHash func() hash.Hash, secret string) hash.Hash {
	return hmac.New(newHash, []byte(secret))
}

// encode writes bytes in one of Node.js' encodings; ok is false for one that it does not know.
func encode(data []byte, encoding string) (text string, ok bool) {
	switch encoding {
	case "hex":
		return hex.EncodeToString(data), true
	case "base64":
		return base64.StdEncoding.EncodeToString(data), true
	case "base64url":
		return base64.RawURLEncoding.EncodeToString(data), true
	}
	return "", false
}
