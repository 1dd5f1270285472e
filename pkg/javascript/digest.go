package javascript

import (
	"crypto/hmac"
	"crypto/md5"  //nolint:gosec // offered to scripts, not used for security
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"strings"
)

// hashes by the names that node and n8n give them.
var hashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	"sha3":     func() hash.Hash { return sha3.New512() },
	"sha3-224": func() hash.Hash { return sha3.New224() }, "sha3-256": func() hash.Hash { return sha3.New256() },
	"sha3-384": func() hash.Hash { return sha3.New384() }, "sha3-512": func() hash.Hash { return sha3.New512() },
}

func newHash(name string) func() hash.Hash {
	name = strings.ToLower(name)
	if h := hashes[name]; h != nil {
		return h
	}
	return hashes[strings.ReplaceAll(strings.TrimPrefix(name, "rsa-"), "-", "")]
}

// digest takes "<algorithm>:<text>" and answers hexadecimal digits.
func digest(arg string) (string, bool) {
	algorithm, text, _ := strings.Cut(arg, ":")
	h := newHash(algorithm)
	if h == nil {
		return "", false
	}
	return sum(h(), []byte(text)), true
}

func sum(h hash.Hash, data []byte) string {
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// digestBytes takes [algorithm, base64 of the data] and answers hexadecimal
// digits; hmacBytes takes the base64 of the key as well.
func digestBytes(arg string) (string, bool) { return sumBytes(arg, false) }

func hmacBytes(arg string) (string, bool) { return sumBytes(arg, true) }

func sumBytes(arg string, keyed bool) (string, bool) {
	var list []string
	if json.Unmarshal([]byte(arg), &list) != nil || len(list) < 2 || keyed && len(list) < 3 {
		return "", false
	}
	h := newHash(list[0])
	data, err := base64.StdEncoding.DecodeString(list[1])
	if h == nil || err != nil {
		return "", false
	}
	if !keyed {
		return sum(h(), data), true
	}
	key, err := base64.StdEncoding.DecodeString(list[2])
	if err != nil {
		return "", false
	}
	return sum(hmac.New(h, key), data), true
}
