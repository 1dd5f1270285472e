package links_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
)

var key = []byte("0123456789abcdef0123456789abcdef")

func signatureOf(t testing.TB, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	signature := u.Query().Get(links.Parameter)
	require.NotEmpty(t, signature)
	return signature
}

func TestFormURL(t *testing.T) {
	s := links.New(key, "https://flows.example.com")
	own, linked := s.FormURL("e"), s.ResumeFormURL("e", 7)
	link, ok := s.CheckForm("e", signatureOf(t, own))
	require.True(t, ok)
	require.Nil(t, link, "the person who began it has no link")
	link, ok = s.CheckForm("e", signatureOf(t, linked))
	require.True(t, ok)
	require.Equal(t, 7, *link)
	for name, signature := range map[string]string{
		"resume URL": signatureOf(t, s.ResumeURL("e", 7)), "another execution": signatureOf(t, s.ResumeFormURL("f", 7)),
		"another number": strings.Replace(signatureOf(t, linked), "7.", "8.", 1), "no number": strings.Replace(signatureOf(t, linked), "7.", "f.", 1), "none": "",
	} {
		_, ok = s.CheckForm("e", signature)
		require.False(t, ok, name)
	}
	_, ok = s.CheckResume("e", signatureOf(t, linked))
	require.False(t, ok, "the link of a form resumes no wait for a call")
	require.Empty(t, links.New(key, "").ResumeFormURL("e", 7))
}

func TestResumeURL(t *testing.T) {
	for _, public := range []string{"https://example.com", "https://example.com/", "https://example.com/base/path//"} {
		s := links.New(key, public)
		link := s.ResumeURL("order-4711", 12)
		require.Equal(t, strings.TrimRight(public, "/")+"/webhook-waiting/order-4711", strings.Split(link, "?")[0])

		number, ok := s.CheckResume("order-4711", signatureOf(t, link))
		require.True(t, ok)
		require.Equal(t, 12, number)
		// What users add to a link does not touch its signature.
		number, ok = s.CheckResume("order-4711", signatureOf(t, strings.Replace(link, "?", "/suffix?", 1)+"&name=Ada"))
		require.True(t, ok)
		require.Equal(t, 12, number)
	}
}

func TestApprovalURL(t *testing.T) {
	s := links.New(key, "https://example.com/flows/")
	bind := links.Bind("order-4711", "Ask first", 1, "call_1", []byte(`{"to":"Ada"}`))
	link := s.ApprovalURL("order-4711_12", bind)
	require.Equal(t, "https://example.com/flows/approval/order-4711_12", strings.Split(link, "?")[0])
	require.Less(t, len(link), 200, "a mail breaks longer lines")

	got, ok := s.CheckApproval("order-4711_12", signatureOf(t, link))
	require.True(t, ok)
	require.Equal(t, bind, got)
}

func TestNoPublicURL(t *testing.T) {
	s := links.New(key, "")
	require.Empty(t, s.ResumeURL("e", 1))
	require.Empty(t, s.ApprovalURL("e_1", "bind"))
	require.Empty(t, links.New(key, "https://example.com").ResumeURL("e", -1))

	_, ok := s.CheckResume("e", signatureOf(t, links.New(key, "http://x").ResumeURL("e", 1)))
	require.True(t, ok, "a link from before the setting was removed")
}

func TestShortKey(t *testing.T) {
	require.PanicsWithValue(t, "links: the signing key has 31 bytes, at least 32 are needed", func() { links.New(key[:31], "") })
}

func TestKeyIsCopied(t *testing.T) {
	mine := append([]byte(nil), key...)
	s := links.New(mine, "http://x")
	before := s.ResumeURL("e", 1)
	clear(mine)
	require.Equal(t, before, s.ResumeURL("e", 1))
}

// Every character of a signature counts, whatever it is replaced by, and so
// does its length.
func TestAlteredSignature(t *testing.T) {
	s := links.New(key, "http://x")
	resume := signatureOf(t, s.ResumeURL("e", 10))
	approval := signatureOf(t, s.ApprovalURL("e_10", links.Bind("e", "n", 0, "", nil)))
	checks := map[string]struct {
		signature string
		check     func(string) bool
	}{
		"resume":   {resume, func(x string) bool { _, ok := s.CheckResume("e", x); return ok }},
		"approval": {approval, func(x string) bool { _, ok := s.CheckApproval("e_10", x); return ok }},
	}
	for name, c := range checks {
		t.Run(name, func(t *testing.T) {
			require.True(t, c.check(c.signature))
			for i := range c.signature {
				for b := range 256 {
					if byte(b) != c.signature[i] {
						altered := c.signature[:i] + string([]byte{byte(b)}) + c.signature[i+1:]
						require.False(t, c.check(altered), "%q instead of %q", altered, c.signature)
					}
				}
				require.False(t, c.check(c.signature[:i]), "cut after %d", i)
				require.False(t, c.check(c.signature[:i]+c.signature[i+1:]), "without character %d", i)
			}
			for _, altered := range []string{"", ".", c.signature + "0", c.signature + ".", "0" + c.signature, "+" + c.signature, " " + c.signature, c.signature + " ", strings.ToUpper(c.signature)} {
				require.False(t, c.check(altered), altered)
			}
		})
	}
}

// A link of one thing is no link of another.
func TestForeignSignature(t *testing.T) {
	s := links.New(key, "http://x")
	resume := signatureOf(t, s.ResumeURL("e", 1))
	for _, execution := range []engine.ExecutionID{"", "e1", "E", "f"} {
		_, ok := s.CheckResume(execution, resume)
		require.False(t, ok, execution)
	}
	_, ok := s.CheckApproval("e", resume)
	require.False(t, ok, "a resume link approves nothing")
	_, ok = s.CheckResume("e", signatureOf(t, s.ApprovalURL("e", "1")))
	require.False(t, ok, "an approval link resumes nothing")
	_, ok = links.New([]byte("another key of thirty-two bytes!"), "http://x").CheckResume("e", resume)
	require.False(t, ok, "another key")

	// Fields that read the same when they are put together.
	require.NotEqual(t, signatureOf(t, s.ResumeURL("e1", 2)), signatureOf(t, s.ResumeURL("e", 12)))
	one, two := signatureOf(t, s.ApprovalURL("e", "xbind")), signatureOf(t, s.ApprovalURL("ex", "bind"))
	require.NotEqual(t, one[strings.Index(one, "."):], two[strings.Index(two, "."):])
}

func TestBind(t *testing.T) {
	binds := map[string]string{
		"the question":     links.Bind("e", "node", 1, "call_1", []byte(`{"a":1}`)),
		"other execution":  links.Bind("f", "node", 1, "call_1", []byte(`{"a":1}`)),
		"other node":       links.Bind("e", "node ", 1, "call_1", []byte(`{"a":1}`)),
		"other run":        links.Bind("e", "node", 2, "call_1", []byte(`{"a":1}`)),
		"other call":       links.Bind("e", "node", 1, "call_2", []byte(`{"a":1}`)),
		"other arguments":  links.Bind("e", "node", 1, "call_1", []byte(`{"a":2}`)),
		"other spelling":   links.Bind("e", "node", 1, "call_1", []byte(`{"a": 1}`)),
		"no arguments":     links.Bind("e", "node", 1, "call_1", nil),
		"moved boundary":   links.Bind("en", "ode", 1, "call_1", []byte(`{"a":1}`)),
		"moved boundary 2": links.Bind("e", "node", 1, "call_", []byte(`1{"a":1}`)),
		"moved boundary 3": links.Bind("e", "node1", 1, "call_1", []byte(`{"a":1}`)),
	}
	seen := map[string]string{}
	for name, bind := range binds {
		require.Len(t, bind, 64)
		require.Empty(t, seen[bind], "%s is like %s", name, seen[bind])
		seen[bind] = name
	}
	require.Equal(t, binds["the question"], links.Bind("e", "node", 1, "call_1", []byte(`{"a":1}`)))
}
