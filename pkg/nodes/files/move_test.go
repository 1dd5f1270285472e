package files

import (
	"crypto/md5"
	"crypto/rc4"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestMoveBinaryToJSON(t *testing.T) {
	for _, tt := range []struct{ parameters, content, want string }{
		{`{}`, `{"a":1}`, `{"a":1}`},
		{`{"setAllData":false}`, "hi", `{"k":1,"data":"hi"}`},
		{`{"setAllData":false,"destinationKey":"x.y","options":{"jsonParse":true}}`, "\ufeff[1]", `{"k":1,"x":{"y":[1]}}`},
		{`{"setAllData":false,"options":{"keepAsBase64":true}}`, "hi", `{"k":1,"data":"aGk="}`},
		{`{"setAllData":false,"options":{"encoding":"latin1"}}`, "caf\xe9", `{"k":1,"data":"café"}`},
	} {
		items := nodestest.Run(t, MoveBinaryData(), tt.parameters, withFile(`{"k":1}`, tt.content))[0]
		require.Equal(t, []string{tt.want}, objects(items), tt.parameters)
		require.Nil(t, items[0].Binary, "the file is moved")
	}
	require.Empty(t, nodestest.Run(t, MoveBinaryData(), `{"sourceKey":"other"}`, withFile(`{}`, "x"))[0])
	kept := nodestest.Run(t, MoveBinaryData(), `{"options":{"keepSource":true}}`, withFile(`{}`, "{}"))[0]
	require.Contains(t, kept[0].Binary, "data")
	for parameters, want := range map[string]string{
		`{}`: "does not hold valid JSON", `{"setAllData":false,"options":{"encoding":"what"}}`: "not known", `{"mode":"x"}`: `mode "x" is not known`,
	} {
		call := nodestest.Call(MoveBinaryData(), parameters, withFile(`{}`, "{broken"))
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, want)
	}
	call := nodestest.Call(MoveBinaryData(), `{}`, withFile(`{}`, "[1]"))
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, "does not hold a JSON object")
}

func TestMoveJSONToBinary(t *testing.T) {
	for _, tt := range []struct {
		version                           float64
		parameters, object, json, content string
		file                              workflow.Binary
	}{
		{1, `{}`, `{"a":"x"}`, `{}`, `{"a":"x"}`, workflow.Binary{MimeType: "application/json"}},
		{1.1, `{}`, `{"a":"x"}`, `{}`, `{"a":"x"}`, workflow.Binary{MimeType: "application/json", FileName: "file.json"}},
		{1, `{"convertAllData":false,"sourceKey":"a"}`, `{"a":"x","b":1}`, `{"b":1}`, `"x"`, workflow.Binary{MimeType: "application/json"}},
		{1, `{"convertAllData":false,"sourceKey":"a.b","options":{"useRawData":true,"fileName":"f.html","mimeType":"text/html","keepSource":true}}`, `{"a":{"b":"x"}}`, `{"a":{"b":"x"}}`, `x`, workflow.Binary{MimeType: "text/html", FileName: "f.html"}},
		{1.1, `{"convertAllData":false,"sourceKey":"a","options":{"useRawData":true}}`, `{"a":"x"}`, `{}`, `x`, workflow.Binary{MimeType: "text/plain", FileName: "file.txt"}},
		{1, `{"convertAllData":false,"sourceKey":"a","options":{"dataIsBase64":true,"mimeType":"image/png"}}`, `{"a":"aGk="}`, `{}`, `hi`, workflow.Binary{MimeType: "image/png"}},
		{1, `{"convertAllData":false,"sourceKey":"a","options":{"useRawData":true,"encoding":"latin1"}}`, `{"a":"é"}`, `{}`, "\xe9", workflow.Binary{MimeType: "application/json"}},
		{1, `{"options":{"addBOM":true}}`, `{}`, `{}`, "\ufeff{}", workflow.Binary{MimeType: "application/json"}},
	} {
		call := nodestest.Call(MoveBinaryData(), strings.Replace(tt.parameters, "{", `{"mode":"jsonToBinary","destinationKey":"out"`+map[bool]string{true: "", false: ","}[tt.parameters == "{}"], 1), nodestest.Items(tt.object))
		call.Node.TypeVersion = tt.version
		result, err := call.Type.Execute(t.Context(), call)
		require.NoError(t, err, tt.parameters)
		item := result.Outputs[0][0]
		require.JSONEq(t, tt.json, string(item.JSON), tt.parameters)
		file := item.Binary["out"]
		data, err := base64.StdEncoding.DecodeString(file.Data)
		require.NoError(t, err)
		require.Equal(t, tt.content, string(data), tt.parameters)
		require.Equal(t, tt.file, workflow.Binary{MimeType: file.MimeType, FileName: file.FileName}, tt.parameters)
	}
	require.Empty(t, nodestest.Run(t, MoveBinaryData(), `{"mode":"jsonToBinary","convertAllData":false,"sourceKey":"no"}`, nodestest.Items(`{"a":1}`))[0])
}

func TestReadPDF(t *testing.T) {
	items := nodestest.Run(t, ReadPDF(), `{}`, withFile(`{"k":1}`, document("First page", "Second")))[0]
	require.Equal(t, []string{`{"numpages":2,"numrender":2,"text":"First page\n\nSecond"}`}, objects(items))
	require.Contains(t, items[0].Binary, "data")
	secret := encrypted("Sesame text", "sesame")
	for parameters, want := range map[string]string{`{}`: "give its password", `{"encrypted":true,"password":"x"}`: "password is wrong", `{"binaryPropertyName":"no"}`: "binary file 'no'"} {
		call := nodestest.Call(ReadPDF(), parameters, withFile(`{}`, secret))
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, want)
	}
	items = nodestest.Run(t, ReadPDF(), `{"encrypted":true,"password":"sesame"}`, withFile(`{}`, secret))[0]
	require.Equal(t, []string{`{"numpages":1,"numrender":1,"text":"Sesame text"}`}, objects(items))
	items = nodestest.Run(t, Extract(), `{"operation":"pdf","options":{"password":"sesame"}}`, withFile(`{}`, secret))[0]
	require.Len(t, items, 1)
}

// encrypted is a PDF of one page under a password, with one of the standard's security handlers (RC4, 128 bits).
func encrypted(line, password string) string {
	const pad = "\x28\xbf\x4e\x5e\x4e\x75\x8a\x41\x64\x00\x4e\x56\xff\xfa\x01\x08\x2e\x2e\x00\xb6\xd0\x68\x3e\x80\x2f\x0c\xa9\xfe\x64\x53\x69\x7a"
	cipher := func(key []byte, text string) string {
		c, err := rc4.NewCipher(key)
		if err != nil {
			panic(err)
		}
		out := make([]byte, len(text))
		c.XORKeyStream(out, []byte(text))
		return string(out)
	}
	padded, id, owner := (password + pad)[:32], strings.Repeat("i", 16), strings.Repeat("o", 32)
	key := md5.Sum([]byte(padded + owner + "\xfc\xff\xff\xff" + id))
	for range 50 {
		key = md5.Sum(key[:])
	}
	object := md5.Sum(append(append([]byte{}, key[:]...), 5, 0, 0, 0, 0))
	check := md5.Sum([]byte(pad + id))
	user := string(check[:])
	for round := range 20 {
		turned := make([]byte, len(key))
		for i, b := range key {
			turned[i] = b ^ byte(round)
		}
		user = cipher(turned, user)
	}
	trailer := fmt.Sprintf("/ID [<%x> <%x>] /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /O <%x> /U <%x> /P -4 >>",
		id, id, owner, user+strings.Repeat("\x00", 16))
	return writePDF([]string{line}, trailer, func(content string) string { return cipher(object[:], content) })
}
