package ai

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/openai/openai-go/v3"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/httpstatus"
)

// badAnswer is what a model's server sent that is no answer.
type badAnswer struct{ what string }

func (e *badAnswer) Error() string { return e.what }

// failure describes a failed model call without any secret.
func (m *openAI) failure(err error) *engine.NodeError {
	failure := &engine.NodeError{Name: "NodeOperationError", Reason: engine.ReasonModel}
	var api *openai.Error
	var bad *badAnswer
	var network net.Error
	var refused *node.AddressRefusedError
	var large *answerTooLargeError
	switch {
	case errors.As(err, &refused):
		failure.Message = "The model cannot be reached: " + refused.Error()
		failure.Description = refused.Hint
		failure.NotRetryable = true
	case errors.As(err, &large):
		failure.Message = "The model's server sent an answer that cannot be used"
		failure.Description = large.Error()
		failure.Reason = engine.ReasonTooLarge
	case errors.As(err, &api):
		failure.HTTPCode = strconv.Itoa(api.StatusCode)
		failure.Message = httpstatus.Messages[api.StatusCode]
		if failure.Message == "" {
			failure.Message = fmt.Sprintf("The model's server answered with status %d", api.StatusCode)
		}
		if failure.Description = api.Message; failure.Description == "" {
			failure.Description = shortened(strings.TrimSpace(api.RawJSON()), 200)
		}
	case errors.As(err, &bad):
		failure.Message = "The model's server sent an answer that cannot be used"
		failure.Description = bad.what
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		failure.Message = "Request timed out."
		failure.Description = "The model did not answer in time. The node's option Timeout sets how long it may take."
	case errors.Is(err, syscall.ECONNREFUSED):
		failure.Message = "The service refused the connection - perhaps it is offline"
		failure.Description = withoutURL(err)
	default:
		failure.Message = "Connection error."
		failure.Description = withoutURL(err)
	}
	for _, secret := range m.secrets {
		failure.Message = strings.ReplaceAll(failure.Message, secret, "***")
		failure.Description = strings.ReplaceAll(failure.Description, secret, "***")
	}
	return failure
}

// withoutURL is err's text without the URL, which may hold a password.
func withoutURL(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}
