package core

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestCustomerDatastore(t *testing.T) {
	for name, row := range map[string]struct {
		parameters string
		want       string // the ends of the ids, and the item that each came from
	}{
		"one by default":    {`{}`, "2<0 2<1"},
		"one":               {`{"operation":"getOnePerson","returnAll":true}`, "2<0 2<1"},
		"all":               {`{"operation":"getAllPeople","returnAll":true,"limit":1}`, "2<0 3<0 4<0 5<0 6<0 2<1 3<1 4<1 5<1 6<1"},
		"without a limit":   {`{"operation":"getAllPeople"}`, "2<0 3<0 4<0 5<0 6<0 2<1 3<1 4<1 5<1 6<1"},
		"limit of the item": {`{"operation":"getAllPeople","limit":"={{ $json.n }}"}`, "2<0 2<1 3<1"},
		"more than are":     {`{"operation":"getAllPeople","limit":50}`, "2<0 3<0 4<0 5<0 6<0 2<1 3<1 4<1 5<1 6<1"},
	} {
		t.Run(name, func(t *testing.T) {
			out := nodestest.Run(t, CustomerDatastore(), row.parameters, nodestest.Items(`{"n":1}`, `{"n":2}`))
			var got []string
			for _, item := range out[0] {
				var customer struct{ ID string }
				require.NoError(t, json.Unmarshal(item.JSON, &customer))
				from, err := json.Marshal(item.PairedItem[0].Item)
				require.NoError(t, err)
				got = append(got, strings.TrimPrefix(customer.ID, "2342353")+"<"+string(from))
			}
			require.Equal(t, row.want, strings.Join(got, " "))
		})
	}
}

func TestCustomers(t *testing.T) {
	for _, raw := range customers {
		var customer map[string]any
		require.NoError(t, json.Unmarshal(raw, &customer))
		for _, field := range []string{"id", "name", "email", "notes", "country", "created"} {
			require.Contains(t, customer, field, string(raw))
		}
		require.Len(t, customer, 6)
		_, err := time.Parse(time.DateOnly, customer["created"].(string))
		require.NoError(t, err)
	}
}

func TestCustomerDatastoreRefuses(t *testing.T) {
	for parameters, text := range map[string]string{
		`{"operation":"deletePerson"}`:            `The operation "deletePerson" is unknown`,
		`{"operation":"getAllPeople","limit":-1}`: "A limit of -1 is not possible",
	} {
		call := nodestest.Call(CustomerDatastore(), parameters, nodestest.Items(`{}`))
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, text)

		call.Node.OnError = workflow.OnErrorContinue
		result, err := call.Type.Execute(t.Context(), call)
		require.NoError(t, err)
		require.Contains(t, nodestest.Render(result.Outputs), `{"error":"`+strings.ReplaceAll(text, `"`, `\"`))
	}
}

func TestCustomerMessenger(t *testing.T) {
	out := nodestest.Run(t, CustomerMessenger(), `{"customerId":"={{ $json.id }}","message":"=Hello {{ $json.name }}"}`,
		nodestest.Items(`{"id":"23423532","name":"Jay"}`, `{"id":23423533}`, `{}`))
	require.Equal(t, "\n  output 0"+
		"\n    {\"output\":\"Sent message to customer ID: 23423532\"} {\"item\":0}"+
		"\n    {\"output\":\"Sent message to customer ID: 23423533\"} {\"item\":1}"+
		"\n    {\"output\":\"Sent message to customer ID: \"} {\"item\":2}", nodestest.Render(out))

	call := nodestest.Call(CustomerMessenger(), `{"customerId":"1","message":"={{ broken }}"}`, nodestest.Items(`{}`))
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, "broken")
}
