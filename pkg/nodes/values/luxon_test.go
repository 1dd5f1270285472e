package values

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/javascript"
)

// luxon evaluates JavaScript with the real Luxon, which expressions have too.
func luxon(t *testing.T) func(code string) string {
	t.Helper()
	runtime := javascript.New(javascript.Config{})
	t.Cleanup(func() { require.NoError(t, runtime.Close()) })
	image := runtime.NewImage(javascript.ImageConfig{
		Sources: []javascript.Source{{Name: "test.js", Code: `globalThis.__entry = ((e, std) => { globalThis.luxon = std.luxon; return (code) => String((0, e)(code)) })(eval, __standard)`}},
		Entry:   "__entry",
	})
	vm, _, err := image.Acquire(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { image.Release(vm) })
	return func(code string) string {
		t.Helper()
		result, _, err := vm.Call(t.Context(), 10*time.Second, nil, code)
		require.NoError(t, err, code)
		return result
	}
}

// moments are times at which calendars and zones are hard.
var moments = []struct{ at, zone string }{
	{"2024-03-05T14:30:15.123Z", "Europe/Berlin"},
	{"2024-02-29T23:59:59.999Z", "UTC"},
	{"2024-12-30T00:00:00.000Z", "America/New_York"},
	{"2024-07-04T12:00:00.000Z", "America/Los_Angeles"},
	{"2021-01-03T05:06:07.008Z", "Asia/Kolkata"},
	{"2027-01-01T00:30:00.050Z", "Europe/London"},
	{"1999-12-31T12:00:00.000Z", "Asia/Tokyo"},
	{"2024-10-27T00:30:00.000Z", "Europe/Berlin"},
}

func at(t *testing.T, text, zone string) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	require.NoError(t, err)
	moment, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return moment.In(location)
}

func TestFormatsAreLuxons(t *testing.T) {
	eval := luxon(t)
	tokens := make([]string, 0, len(luxonTokens))
	for token := range luxonTokens {
		// The weeks of a locale come from an Intl that tells them, which this one does not.
		if token[0] != 'n' && token[0] != 'i' {
			tokens = append(tokens, token)
		}
	}
	sort.Strings(tokens)
	tokens = append(tokens, "yyyy-MM-dd'T'HH:mm:ss.SSSZZ", "'day' d 'of' MMMM", "EEEE, dd. LLL yy", "h 'o''clock' a", "yyyy''MM", "Q b", "YYYY-DD")
	list, err := json.Marshal(tokens)
	require.NoError(t, err)
	for _, m := range moments {
		var want []string
		answer := eval(fmt.Sprintf(`(() => { const d = luxon.DateTime.fromISO(%q, {zone: %q, locale: "en-US"}); return JSON.stringify(%s.map(f => d.toFormat(f))) })()`, m.at, m.zone, list))
		require.NoError(t, json.Unmarshal([]byte(answer), &want))
		moment := at(t, m.at, m.zone)
		for i, token := range tokens {
			got := luxonLayout(token).format(moment)
			if m.zone == "UTC" && strings.HasSuffix(want[i], "UTC") && strings.HasSuffix(got, "Coordinated Universal Time") {
				continue // this Intl has no long name of UTC
			}
			// The space before AM and PM differs between versions of ICU.
			require.Equal(t, strings.ReplaceAll(want[i], "\u202f", " "), strings.ReplaceAll(got, "\u202f", " "), "%s at %s in %s", token, m.at, m.zone)
		}
	}
}

func TestArithmeticIsLuxons(t *testing.T) {
	eval := luxon(t)
	for _, m := range moments {
		moment := at(t, m.at, m.zone)
		type step struct {
			Unit   string
			Amount float64
		}
		var steps []step
		for _, unit := range units {
			for _, amount := range []float64{0, 1, -1, 3, 13, -25, 1.5, -0.25} {
				steps = append(steps, step{unit, amount})
			}
		}
		list, err := json.Marshal(steps)
		require.NoError(t, err)
		var want struct{ Plus, Start []float64 }
		answer := eval(fmt.Sprintf(`(() => { const d = luxon.DateTime.fromISO(%q, {zone: %q}), steps = %s
			return JSON.stringify({plus: steps.map(s => Math.trunc(d.plus({[s.Unit]: s.Amount}).toMillis())), start: steps.map(s => d.startOf(s.Unit).toMillis())}) })()`, m.at, m.zone, list))
		require.NoError(t, json.Unmarshal([]byte(answer), &want))
		for i, s := range steps {
			require.Equal(t, int64(want.Plus[i]), addUnits(moment, s.Amount, s.Unit).UnixMilli(), "%s in %s plus %v %s", m.at, m.zone, s.Amount, s.Unit)
			require.Equal(t, int64(want.Start[i]), startOf(moment, s.Unit).UnixMilli(), "start of the %s of %s in %s", s.Unit, m.at, m.zone)
		}
	}
}

func TestDifferencesAreLuxons(t *testing.T) {
	eval := luxon(t)
	asked := [][]string{
		{"day"}, {"year"}, {"month"}, {"week"}, {"quarter"}, {"hour"}, {"second"}, {"millisecond"}, {"year", "month", "day"}, {"month", "day", "hour"}, {"week", "day", "minute"},
		{"year", "month", "week", "day", "hour", "minute", "second", "millisecond"}, {"hour", "minute", "second"},
	}
	type pair struct {
		Zone, From, To string
		Units          []string
	}
	var pairs []pair
	for _, from := range moments {
		for _, to := range moments {
			for _, list := range asked {
				pairs = append(pairs, pair{from.zone, from.at, to.at, list})
			}
		}
	}
	list, err := json.Marshal(pairs)
	require.NoError(t, err)
	var want []map[string]float64
	answer := eval(fmt.Sprintf(`JSON.stringify(%s.map(p => { const z = {zone: p.Zone}; return luxon.DateTime.fromISO(p.To, z).diff(luxon.DateTime.fromISO(p.From, z), p.Units).toObject() }))`, list))
	require.NoError(t, json.Unmarshal([]byte(answer), &want))
	for i, p := range pairs {
		got := between(at(t, p.From, p.Zone), at(t, p.To, p.Zone), p.Units)
		require.Len(t, got, len(want[i]), "%v", p)
		for _, a := range got {
			// The last digits depend on the order of operations.
			require.InDelta(t, want[i][a.unit+"s"], a.n, 1e-7, "%v: %s, want %v", p, amountsObject(got), want[i])
		}
	}
}

func TestDurationsAreLuxons(t *testing.T) {
	eval := luxon(t)
	for _, list := range [][]amount{
		{{"year", 1}, {"month", 3}, {"day", 13}}, {{"day", 64.60434170138889}}, {{"second", 0}}, {{"hour", 2}, {"minute", 0}, {"second", 7}, {"millisecond", 12}},
		{{"week", -2}}, {{"minute", 1.5}}, {{"month", 0}, {"millisecond", 2.1}},
	} {
		require.Equal(t, eval(fmt.Sprintf(`luxon.Duration.fromObject(%s).toISO()`, amountsObject(list))), amountsISO(list), amountsObject(list))
	}
}

func TestReadingIsLuxons(t *testing.T) {
	eval := luxon(t)
	for _, row := range []struct{ text, format string }{
		{"05.03.2024", "dd.MM.yyyy"}, {"5/3/24 7:05 pm", "d/M/yy h:mm a"}, {"March 5 2024", "MMMM d yyyy"}, {"Mar 5, 2024", "MMM d, yyyy"},
		{"2024-03-05 14:30:15.123", "yyyy-MM-dd HH:mm:ss.SSS"}, {"2024-03-05T14:30:15+02:00", "yyyy-MM-dd'T'HH:mm:ssZZ"},
		{"Tue 05 Mar 2024", "EEE dd MMM yyyy"}, {"2024-065", "yyyy-ooo"}, {"2024-W10-2", "kkkk-'W'WW-E"}, {"12:00 AM 2024-03-05", "hh:mm a yyyy-MM-dd"},
		{"2024-03-31 02:30", "yyyy-MM-dd HH:mm"}, {"20240305", "yyyyMMdd"}, {"2024-02-30", "yyyy-MM-dd"}, {"05.13.2024", "dd.MM.yyyy"}, {"x", "yyyy"}, {"2024-03-05 America/New_York", "yyyy-MM-dd z"},
	} {
		want := eval(fmt.Sprintf(`luxon.DateTime.fromFormat(%q, %q, {zone: "Europe/Berlin", locale: "en-US"}).toMillis()`, row.text, row.format))
		berlin, err := time.LoadLocation("Europe/Berlin")
		require.NoError(t, err)
		got, err := luxonLayout(row.format).parse(row.text, berlin, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
		if want == "NaN" {
			require.Error(t, err, "%s as %s gives %s", row.text, row.format, got)
			continue
		}
		require.NoError(t, err, row.text)
		require.Equal(t, want, fmt.Sprint(got.UnixMilli()), "%s as %s", row.text, row.format)
	}
}
