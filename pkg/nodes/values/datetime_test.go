package values

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// noon is the clock of the tests.
func noon() time.Time { return time.Date(2024, 3, 5, 12, 0, 0, 0, time.UTC) }

// run gives the JSON of the first item, or the failure of the node.
func run(t *testing.T, nodeType *node.Type, parameters, item string, change func(*node.Call)) (string, *engine.NodeError) {
	t.Helper()
	call := nodestest.Call(nodeType, parameters, nodestest.Items(item))
	call.Now, call.Workflow.Timezone = noon, "Europe/Berlin"
	if change != nil {
		change(call)
	}
	result, err := nodeType.Execute(context.Background(), call)
	if err != nil {
		var failure *engine.NodeError
		require.True(t, errors.As(err, &failure), "%v is a failure of the node", err)
		return "", failure
	}
	require.Len(t, result.Outputs[0], 1)
	require.Equal(t, workflow.Paired(0), result.Outputs[0][0].PairedItem)
	return string(result.Outputs[0][0].JSON), nil
}

func TestDateTime(t *testing.T) {
	for _, row := range []struct{ name, parameters, item, want string }{
		{"now", `{}`, `{}`, `{"currentDate":"2024-03-05T13:00:00.000+01:00"}`},
		{"today in another zone", `{"includeTime":false,"options":{"timezone":"Asia/Tokyo"}}`, `{}`, `{"currentDate":"2024-03-05T00:00:00.000+09:00"}`},
		{"today in GMT", `{"includeTime":false,"outputFieldName":"today","options":{"timezone":"GMT"}}`, `{}`, `{"today":"2024-03-05T00:00:00.000Z"}`},
		{"fields kept", `{"operation":"addToDate","magnitude":"={{ $json.d }}","duration":1,"options":{"includeInputFields":true}}`, `{"d":"2024-03-30T12:00:00Z"}`, `{"d":"2024-03-30T12:00:00Z","newDate":"2024-03-31T13:00:00.000+02:00"}`},
		{"a day is a calendar day", `{"operation":"addToDate","magnitude":"2024-03-30T12:00:00+01:00","duration":"1","timeUnit":"days"}`, `{}`, `{"newDate":"2024-03-31T12:00:00.000+02:00"}`},
		{"an hour is not", `{"operation":"addToDate","magnitude":"2024-03-30T12:00:00+01:00","duration":24,"timeUnit":"hours"}`, `{}`, `{"newDate":"2024-03-31T13:00:00.000+02:00"}`},
		{"end of month", `{"operation":"addToDate","magnitude":"2024-01-31T10:00:00Z","duration":1,"timeUnit":"months"}`, `{}`, `{"newDate":"2024-02-29T11:00:00.000+01:00"}`},
		{"milliseconds in", `{"operation":"subtractFromDate","magnitude":1709640000000,"duration":2,"timeUnit":"quarters"}`, `{}`, `{"newDate":"2023-09-05T13:00:00.000+02:00"}`},
		{"input zone is not kept", `{"operation":"formatDate","date":"2024-03-05T01:00:00+05:00","format":"yyyy-MM-dd"}`, `{}`, `{"formattedDate":"2024-03-04"}`},
		{"default format", `{"operation":"formatDate","date":"March 5, 2024"}`, `{}`, `{"formattedDate":"03/05/2024"}`},
		{"custom format", `{"operation":"formatDate","date":"2024-03-05","format":"custom","customFormat":"EEEE, d MMMM","outputFieldName":"x.y"}`, `{}`, `{"x.y":"Tuesday, 5 March"}`},
		{"from a format with a zone", `{"operation":"formatDate","date":"05.03.2024 09:00 +0300","format":"x","options":{"fromFormat":"dd.MM.yyyy HH:mm ZZZ"}}`, `{}`, `{"formattedDate":"1709618400000"}`},
		{"from seconds", `{"operation":"formatDate","date":1709618400,"format":"yyyy-MM-dd","options":{"fromFormat":"X"}}`, `{}`, `{"formattedDate":"2024-03-05"}`},
		{"units as text", `{"operation":"getTimeBetweenDates","startDate":"2020-01-01T00:00:00Z","endDate":"2021-04-14T00:00:00Z","units":"[\"year\",\"month\",\"day\"]"}`, `{}`, `{"timeDifference":{"years":1,"months":3,"days":13.041666666666666}}`},
		{"backwards", `{"operation":"getTimeBetweenDates","startDate":"2024-03-05T12:00:00Z","endDate":"2024-03-05T10:30:00Z","units":["hour","minute"]}`, `{}`, `{"timeDifference":{"hours":-1,"minutes":-30}}`},
		{"nothing between", `{"operation":"getTimeBetweenDates","startDate":"2024-03-05","endDate":"2024-03-05","options":{"isoString":true}}`, `{}`, `{"timeDifference":"PT0S"}`},
		{"extract in the workflow's zone", `{"operation":"extractDate","date":"2024-12-31T23:30:00Z","part":"year"}`, `{}`, `{"datePart":2025}`},
		{"extract month", `{"operation":"extractDate","date":"2024-12-01T00:00:00Z"}`, `{}`, `{"datePart":12}`},
		{"round to the week", `{"operation":"roundDate","date":"2024-03-05T14:30:15Z","toNearest":"week"}`, `{}`, `{"roundedDate":"2024-03-04T00:00:00.000+01:00"}`},
		{"round up to the hour", `{"operation":"roundDate","date":"2024-03-05T14:30:15Z","mode":"roundUp","to":"hour"}`, `{}`, `{"roundedDate":"2024-03-05T16:00:00.000+01:00"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, DateTime(), row.parameters, row.item, nil)
			require.Nil(t, failure)
			require.Equal(t, row.want, got)
		})
	}
}

func TestDateTimeOld(t *testing.T) {
	for _, row := range []struct{ name, parameters, item, want string }{
		{"default format", `{"value":"2024-03-05T23:30:00Z"}`, `{"a":1}`, `{"a":1,"data":"03/06/2024"}`},
		{"to a zone", `{"value":"2024-03-05T23:30:00Z","toFormat":"YYYY-MM-DD HH:mm Z","options":{"toTimezone":"America/New_York"}}`, `{}`, `{"data":"2024-03-05 18:30 -05:00"}`},
		{"from a zone", `{"value":"2024-03-05 12:00","toFormat":"HH:mm","options":{"fromTimezone":"America/New_York"}}`, `{}`, `{"data":"18:00"}`},
		{"from a format", `{"value":"29-06-2020","toFormat":"YYYY-MM-DD","options":{"fromFormat":"DD-MM-YYYY"}}`, `{}`, `{"data":"2020-06-29"}`},
		{"tokens", `{"value":"2024-03-05T14:30:15.123Z","toFormat":"dddd, MMMM Do YYYY, h:mm:ss a [at] w D"}`, `{}`, `{"data":"Tuesday, March 5th 2024, 3:30:15 pm at 10 5"}`},
		{"localised", `{"value":"2024-03-05T14:30:15.123Z","toFormat":"LLLL"}`, `{}`, `{"data":"Tuesday, March 5, 2024 3:30 PM"}`},
		{"subtract", `{"action":"calculate","operation":"subtract","value":"2024-03-31T12:00:00Z","duration":1,"timeUnit":"months","dataPropertyName":"then"}`, `{}`, `{"then":"2024-02-29T13:00:00.000Z"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, DateTimeOld(), row.parameters, row.item, nil)
			require.Nil(t, failure)
			require.Equal(t, row.want, got)
		})
	}
}

func TestDateTimeFailures(t *testing.T) {
	for _, row := range []struct {
		name, parameters, message, description string
		nodeType                               *node.Type
	}{
		{"no date", `{"operation":"formatDate","date":"soon"}`, "Invalid date format", `parameter date: "soon" is no date`, DateTime()},
		{"no date at all", `{"operation":"formatDate"}`, "Invalid date format", "parameter date: ", DateTime()},
		{"no such day", `{"operation":"formatDate","date":"2024-02-30"}`, "Invalid date format", "there is no day 2024-02-30", DateTime()},
		{"another format", `{"operation":"formatDate","date":"2024-02-03","options":{"fromFormat":"dd.MM.yyyy"}}`, "Invalid date format", "format dd.MM.yyyy", DateTime()},
		{"operation", `{"operation":"guess"}`, `"guess" is not supported`, "parameter operation", DateTime()},
		{"unit", `{"operation":"addToDate","magnitude":"2024-02-03","timeUnit":"moons"}`, `"moons" is not supported`, "parameter timeUnit", DateTime()},
		{"duration", `{"operation":"addToDate","magnitude":"2024-02-03","duration":"some"}`, `"some" is no number`, "parameter duration", DateTime()},
		{"duration too long", `{"operation":"addToDate","magnitude":"2024-02-03","duration":1e300,"timeUnit":"years"}`, "The date is out of range", "", DateTime()},
		{"zone", `{"options":{"timezone":"Moon/Base"}}`, `the time zone "Moon/Base" is unknown; use a name such as Europe/Berlin, or GMT`, "parameter options.timezone", DateTime()},
		{"version 1", `{"value":"soon"}`, `The date input format could not be recognized. Please set the "From Format" field`, "parameter value", DateTimeOld()},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, row.nodeType, row.parameters, `{}`, nil)
			require.NotNil(t, failure, got)
			require.Equal(t, row.message, failure.Message)
			require.Contains(t, failure.Description, row.description)
			require.Equal(t, 0, *failure.ItemIndex)
			// A node that continues has the failure as an item.
			got, failure = run(t, row.nodeType, row.parameters, `{}`, func(c *node.Call) { c.Node.OnError = workflow.OnErrorContinue })
			require.Nil(t, failure)
			want, err := json.Marshal(map[string]string{"error": row.message})
			require.NoError(t, err)
			require.JSONEq(t, string(want), got)
		})
	}
}

func TestNotationsOfDates(t *testing.T) {
	want := time.Date(2024, 3, 5, 14, 30, 15, 0, time.UTC)
	for _, text := range []string{
		"2024-03-05T14:30:15Z", "2024-03-05T16:30:15.000+02:00", "2024-03-05 14:30:15", "20240305T143015Z", "2024-03-05T14:30:15+00:00[UTC]",
		"Tue, 05 Mar 2024 14:30:15 GMT", "Tue, 5 Mar 2024 09:30:15 -0500", "Tue Mar 05 2024 15:30:15 GMT+0100 (Central European Standard Time)",
		"2024/03/05 14:30:15", "3/5/2024 2:30:15 PM", "3/5/2024, 2:30:15\u202fPM", "March 5, 2024 14:30:15", "5 March 2024 14:30:15", "1709649015000", "Tue Mar 05 14:30:15 2024",
	} {
		got, err := readDateText(text, time.UTC)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s gives %s", text, got)
	}
	for _, text := range []string{"", "tomorrow", "2024-13-01", "24:61", "99999999999999999", "5"} {
		got, err := readDateText(text, time.UTC)
		require.Error(t, err, "%s gives %s", text, got)
	}
}

func TestAmericanWeeks(t *testing.T) {
	for text, want := range map[string]string{"2024-12-28": "52 2024", "2024-12-29": "1 2025", "2025-01-01": "1 2025", "2025-01-05": "2 2025", "2023-01-01": "1 2023"} {
		require.Equal(t, want, luxonLayout("n iiii").format(at(t, text+"T12:00:00Z", "UTC")), text)
	}
}
