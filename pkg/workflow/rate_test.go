package workflow

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"": {}, "5/second": {5, time.Second}, "100/minute": {100, time.Minute}, " 3 / Hour ": {3, time.Hour},
		"1/day": {1, 24 * time.Hour}, "20/10s": {20, 10 * time.Second}, "2/m": {2, time.Minute}, "7/500ms": {7, 500 * time.Millisecond},
	} {
		got, err := ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"5", "0/second", "-1/second", "x/minute", "5/fortnight", "5/", "5/1ms", "1000000/second", "5/-2s"} {
		_, err := ParseRate(text)
		require.ErrorContains(t, err, text)
	}
}

func TestLimitsAreValidated(t *testing.T) {
	w, err := Parse([]byte(`{"name": "x", "settings": {"priority": "urgent", "rateLimit": "many"},
		"nodes": [{"name": "A", "type": "t", "rateLimit": "5/parsec"}, {"name": "B", "type": "t", "rateLimit": "5/second"}], "connections": {}}`))
	require.NoError(t, err)
	require.Equal(t, "5/second", w.Node("B").RateLimit)
	v := &validator{w: w}
	v.limits()
	v.nodeLimits(w.Node("A"))
	v.nodeLimits(w.Node("B"))
	var texts []string
	for _, p := range v.problems {
		texts = append(texts, p.String())
	}
	require.Len(t, texts, 3)
	all := strings.Join(texts, "\n")
	for _, word := range []string{"settings.priority", "urgent", "settings.rateLimit", "many", "parsec", "100/minute"} {
		require.Contains(t, all, word)
	}
}
