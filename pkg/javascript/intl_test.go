package javascript

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIntl compares with what node 20 answers (ICU 78), as far as it is the same:
// some rare patterns are not.
func TestIntl(t *testing.T) {
	image := evalImage(t)
	vm, _, err := image.Acquire(t.Context(), nil)
	require.NoError(t, err)
	defer image.Release(vm)
	f, err := os.Open("testdata/intl.jsonl")
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row [2]string
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		got, _, err := vm.Call(t.Context(), time.Second, nil, row[0])
		require.NoError(t, err, row[0])
		require.Equal(t, row[1], strings.ReplaceAll(got, "\u202f", " "), row[0])
	}
}

func TestLuxonZonesAroundDST(t *testing.T) {
	image := evalImage(t)
	vm, _, err := image.Acquire(t.Context(), nil)
	require.NoError(t, err)
	defer image.Release(vm)
	for _, row := range [][2]string{
		{"luxon.DateTime.fromISO('2024-03-31T00:59:59Z', {zone: 'Europe/Berlin'}).toISO()", "2024-03-31T01:59:59.000+01:00"},
		{"luxon.DateTime.fromISO('2024-03-31T01:00:00Z', {zone: 'Europe/Berlin'}).toISO()", "2024-03-31T03:00:00.000+02:00"},
		{"luxon.DateTime.fromISO('2024-03-31T02:30', {zone: 'Europe/Berlin'}).toISO()", "2024-03-31T03:30:00.000+02:00"},
		{"luxon.DateTime.fromISO('2024-11-03T01:30', {zone: 'America/New_York'}).minus({hours: 1}).toISO()", "2024-11-03T01:30:00.000-04:00"},
		{"luxon.DateTime.fromISO('2024-06-01T00:00Z', {zone: 'Asia/Kolkata'}).toISO()", "2024-06-01T05:30:00.000+05:30"},
		{"luxon.DateTime.fromISO('2024-10-05T16:00Z', {zone: 'Australia/Lord_Howe'}).toISO()", "2024-10-06T03:00:00.000+11:00"},
		{"luxon.DateTime.fromISO('2024-10-05T15:00Z', {zone: 'Australia/Lord_Howe'}).toISO()", "2024-10-06T01:30:00.000+10:30"},
		{"luxon.DateTime.fromISO('2024-06-01', {zone: 'Europe/London'}).toFormat('ZZZZ z')", "GMT+1 Europe/London"},
		{"luxon.DateTime.fromISO('2024-06-01', {zone: 'America/New_York'}).toFormat('ZZZZ')", "EDT"},
		{"luxon.DateTime.fromISO('2024-06-01', {zone: 'Nowhere/City'}).isValid", "false"},
		{"luxon.DateTime.fromISO('2024-06-01T12:00', {zone: 'utc', locale: 'fr'}).toLocaleString(luxon.DateTime.DATETIME_FULL)", "1 juin 2024 à 12:00 UTC"},
		{"luxon.DateTime.fromISO('2024-06-01T12:00').minus({days: 2}).toRelative({base: luxon.DateTime.fromISO('2024-06-01T12:00')})", "2 days ago"},
	} {
		got, _, err := vm.Call(t.Context(), time.Second, nil, row[0])
		require.NoError(t, err, row[0])
		require.Equal(t, row[1], got, row[0])
	}
}
