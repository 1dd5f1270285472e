package core

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// customers are those of n8n's tutorials, with the first two as its documentation shows them; the others
// are ours, with the same fields.
var customers = []json.RawMessage{
	json.RawMessage(`{"id":"23423532","name":"Jay Gatsby","email":"gatsby@west-egg.com","notes":"Gives large parties and looks across the bay","country":"US","created":"1925-04-10"}`),
	json.RawMessage(`{"id":"23423533","name":"José Arcadio Buendía","email":"jab@macondo.co","notes":"Half of his family has the same name","country":"CO","created":"1967-05-05"}`),
	json.RawMessage(`{"id":"23423534","name":"Elizabeth Bennet","email":"lizzy@longbourn.example","notes":"Please do not write on behalf of Mr. Collins","country":"GB","created":"1813-01-28"}`),
	json.RawMessage(`{"id":"23423535","name":"Captain Nemo","email":"nemo@nautilus.example","notes":"Has left dry land; no country is known","country":null,"created":"1870-06-20"}`),
	json.RawMessage(`{"id":"23423536","name":"Effi Briest","email":"effi@kessin.example","notes":"Would rather have a swing than a discount","country":"DE","created":"1895-10-01"}`),
}

// CustomerDatastore gives out the customers of n8n's tutorials, for each item.
func CustomerDatastore() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "n8nTrainingCustomerDatastore", Versions: []float64{1}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return call.ByItem(ctx, func(i int) (workflow.Items, error) {
				count, err := customerCount(ctx, call, i)
				if err != nil {
					return nil, err
				}
				items := make(workflow.Items, count)
				for n := range items {
					items[n].JSON = customers[n]
				}
				return items, nil
			})
		},
	}
}

func customerCount(ctx context.Context, call *node.Call, item int) (int, error) {
	operation, err := choice(ctx, call, item, "operation", "getOnePerson")
	if err != nil {
		return 0, err
	}
	switch operation {
	case "getOnePerson":
		return 1, nil
	case "getAllPeople":
	default:
		return 0, node.OperationError(item, fmt.Sprintf("The operation %q is unknown", operation), "It must be getAllPeople or getOnePerson.")
	}
	all, err := flag(ctx, call, item, "returnAll", false)
	if err != nil || all {
		return len(customers), err
	}
	limit, err := call.Int(ctx, item, "limit", len(customers))
	if err == nil && limit < 1 {
		err = node.OperationError(item, fmt.Sprintf("A limit of %d is not possible", limit), "It must be 1 or more.")
	}
	return min(limit, len(customers)), err
}

// CustomerMessenger is said to send a message to a customer of n8n's tutorials, for each item.
func CustomerMessenger() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "n8nTrainingCustomerMessenger", Versions: []float64{1}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return call.ByItem(ctx, func(i int) (workflow.Items, error) {
				id, err := choice(ctx, call, i, "customerId", "")
				if err != nil {
					return nil, err
				}
				// The message goes nowhere, but a mistake in it is one that its author is to see.
				if _, err := choice(ctx, call, i, "message", ""); err != nil {
					return nil, err
				}
				data, err := json.Marshal(map[string]string{"output": "Sent message to customer ID: " + id})
				if err != nil {
					return nil, fmt.Errorf("write the output of item %d: %w", i, err)
				}
				return workflow.Items{{JSON: data}}, nil
			})
		},
	}
}
