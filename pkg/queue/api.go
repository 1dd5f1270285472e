package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// The endpoints of the micro service that every coordinator has.
const (
	EndpointSubmit = "submit"
	EndpointGet    = "get"
	EndpointList   = "list"
	EndpointCancel = "cancel"
)

// SubmitAnswer answers the submit endpoint.
type SubmitAnswer struct {
	ID engine.ExecutionID `json:"id"`
}

// GetRequest asks for one execution, with Data its run data too.
type GetRequest struct {
	Version int                `json:"v"`
	ID      engine.ExecutionID `json:"id"`
	Data    bool               `json:"data,omitempty"`
}

// ListRequest asks for executions, newest first. Empty fields do not restrict.
type ListRequest struct {
	Version    int           `json:"v"`
	Status     engine.Status `json:"status,omitempty"`
	WorkflowID string        `json:"workflowId,omitempty"`
	Limit      int           `json:"limit,omitempty"`  // 0 is the coordinator's default
	Cursor     string        `json:"cursor,omitempty"` // of the page before
}

// ListAnswer is one page; Cursor is empty on the last.
type ListAnswer struct {
	Executions []Execution `json:"executions"`
	Cursor     string      `json:"cursor,omitempty"`
}

// CancelRequest asks to end an execution; Reason is for the record.
type CancelRequest struct {
	Version int                `json:"v"`
	ID      engine.ExecutionID `json:"id"`
	Reason  string             `json:"reason,omitempty"`
}

// Execution is what the API tells about one.
type Execution struct {
	ID           engine.ExecutionID `json:"id"`
	Status       engine.Status      `json:"status"`
	Mode         string             `json:"mode,omitempty"`
	WorkflowID   string             `json:"workflowId,omitempty"`
	WorkflowName string             `json:"workflowName,omitempty"`
	WorkflowHash string             `json:"workflowHash,omitempty"`
	StartedAt    int64              `json:"startedAt,omitempty"` // milliseconds since 1970
	StoppedAt    int64              `json:"stoppedAt,omitempty"`
	LastNode     string             `json:"lastNode,omitempty"`
	Error        *engine.NodeError  `json:"error,omitempty"`
	// Stack, top first, of one that is not finished, and what it waits for.
	Stack   []string  `json:"stack,omitempty"`
	Waiting []Waiting `json:"waiting,omitempty"`
	// Parent is the execution that started this one, RetryOf the one that it repeats.
	Parent  engine.ExecutionID `json:"parent,omitempty"`
	RetryOf engine.ExecutionID `json:"retryOf,omitempty"`
	// QueuePosition of one that waits for its turn (status new), from 1; 0 is unknown.
	QueuePosition int `json:"queuePosition,omitempty"`
	// Data is {"resultData": …} as n8n has it, when it was asked for.
	Data json.RawMessage `json:"data,omitempty"`
}

// Waiting is one thing that an execution waits for.
type Waiting struct {
	Token string          `json:"token"` // also the id of the approval, for one
	Node  string          `json:"node"`
	Kind  engine.WaitKind `json:"kind"`
	Since int64           `json:"since"`           // milliseconds since 1970
	Until int64           `json:"until,omitempty"` // 0: no deadline
	// URL that ends the wait when it is called, or shows the question; "" when the
	// coordinators have no public URL.
	URL string `json:"url,omitempty"`
	// Form is the page to fill in, for a wait that is ended by one.
	Form json.RawMessage `json:"form,omitempty"`
	// Callers are those who may end the wait, when not everybody who has the URL may.
	Callers *engine.Callers `json:"callers,omitempty"`
}

// API are the handlers of the micro service. An error that is a *Problem, or
// wraps one, is the answer as it is; others get the code that fits them.
type API struct {
	// Version of the program, a semantic version; shown by `nats micro`.
	Version string
	// Submit must not block; answer is called once, later, from any goroutine.
	Submit func(ctx context.Context, s *Submission, answer func(engine.ExecutionID, *Problem))
	Get    func(ctx context.Context, r *GetRequest) (*Execution, error)
	List   func(ctx context.Context, r *ListRequest) (*ListAnswer, error)
	Cancel func(ctx context.Context, r *CancelRequest) error
	// MaxSubmission bounds the bytes of a submission; larger ones are refused before they
	// are read. 0 is no bound.
	MaxSubmission int
	// More endpoints by name; reprise.<name> is their subject.
	More map[string]Handler
}

// Handler answers a request with a value that is sent as JSON.
type Handler func(ctx context.Context, request []byte) (any, error)

// Handle makes a typed function a Handler.
func Handle[Request, Answer any](f func(context.Context, *Request) (Answer, error)) Handler {
	return func(ctx context.Context, data []byte) (any, error) {
		r := new(Request)
		if len(data) > 0 {
			if err := decode(data, r); err != nil {
				return nil, &Problem{Code: CodeBadRequest, Message: fmt.Sprintf("request cannot be read: %v", err)}
			}
		}
		return f(ctx, r)
	}
}

// empty is the answer of endpoints that only succeed or fail.
type empty struct{}

// maxAPIRequests bounds the requests in work, maxAPISubmits the submissions,
// which are cheap to hold and handled in groups.
const (
	maxAPIRequests = 64
	maxAPISubmits  = 1024
)

// ServeAPI runs the micro service "reprise". Each request goes to one of the
// coordinators. stop takes no more; those in work are answered as long as the connection lasts.
func (c *Conn) ServeAPI(api API) (stop func(), err error) {
	version := api.Version
	if version == "" {
		version = "0.0.0"
	}
	service, err := micro.AddService(c.nc, micro.Config{
		Name: ServiceName, Version: version, Description: "runs workflows with AI agents", QueueGroup: queueGroup,
		ErrorHandler: func(_ micro.Service, e *micro.NATSError) {
			c.log.Warn("micro service reports an error", zap.String("subject", e.Subject), zap.String("text", e.Description))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start micro service: %w", classify(err))
	}
	stop = func() {
		if err := service.Stop(); err != nil {
			c.log.Debug("micro service did not stop in order", zap.Error(err))
		}
	}
	handlers := maps.Clone(api.More)
	if handlers == nil {
		handlers = map[string]Handler{}
	}
	if api.Get != nil {
		handlers[EndpointGet] = Handle(api.Get)
	}
	if api.List != nil {
		handlers[EndpointList] = Handle(api.List)
	}
	if api.Cancel != nil {
		handlers[EndpointCancel] = Handle(func(ctx context.Context, r *CancelRequest) (empty, error) { return empty{}, api.Cancel(ctx, r) })
	}
	room := make(chan struct{}, maxAPIRequests)
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		room := room
		if name == EndpointTable {
			room = make(chan struct{}, maxAPIRequests) // the nodes of workers do not keep people waiting
		}
		if err = c.addEndpoint(service, name, c.endpoint(handlers[name], room)); err != nil {
			stop()
			return nil, err
		}
	}
	if api.Submit != nil {
		if err = c.addEndpoint(service, EndpointSubmit, c.submitEndpoint(api.Submit, api.MaxSubmission)); err != nil {
			stop()
			return nil, err
		}
	}
	c.settle()
	return stop, nil
}

func (c *Conn) addEndpoint(service micro.Service, name string, handler micro.HandlerFunc) error {
	if err := ValidToken("endpoint", name); err != nil {
		return err
	}
	err := service.AddEndpoint(name, handler, micro.WithEndpointSubject(subjectAPI+name), micro.WithEndpointPendingLimits(-1, -1))
	if err != nil {
		return fmt.Errorf("add endpoint %s: %w", name, classify(err))
	}
	return nil
}

func (c *Conn) endpoint(handler Handler, room chan struct{}) micro.HandlerFunc {
	return func(r micro.Request) {
		room <- struct{}{}
		c.inBackground(func(ctx context.Context) {
			defer func() { <-room }()
			data, err := c.unpack(ctx, nats.Header(r.Headers()), r.Data())
			if err == nil {
				err = knownVersion(data)
			}
			var answer any
			if err == nil {
				answer, err = handler(ctx, data)
			}
			c.deleteBlob(blobOf(nats.Header(r.Headers())))
			if err != nil {
				c.fail(r.Reply(), ProblemOf(err))
				return
			}
			c.respond(ctx, r.Reply(), answer)
		})
	}
}

// knownVersion refuses a request that is newer than this program. What cannot be
// read is the handler's to refuse.
func knownVersion(request []byte) error {
	if version := versionOf(request); version > Version {
		return &Problem{Code: CodeVersion, Message: fmt.Sprintf("request has version %d, this coordinator knows %d: upgrade the coordinators first", version, Version)}
	}
	return nil
}

// submitEndpoint has no goroutine per request unless its payload must be
// fetched, and lets the coordinator take submissions in groups.
func (c *Conn) submitEndpoint(submit func(context.Context, *Submission, func(engine.ExecutionID, *Problem)), most int) micro.HandlerFunc {
	room := make(chan struct{}, maxAPISubmits)
	handle := func(ctx context.Context, r micro.Request, data []byte) {
		s := &Submission{}
		if err := decode(data, s); err != nil {
			<-room
			if newer := knownVersion(data); newer != nil {
				c.fail(r.Reply(), ProblemOf(newer))
				return
			}
			c.fail(r.Reply(), &Problem{Code: CodeBadRequest, Message: fmt.Sprintf("submission cannot be read: %v", err)})
			return
		}
		s.tracedBy(nats.Header(r.Headers()))
		submit(ctx, s, func(id engine.ExecutionID, problem *Problem) {
			<-room
			c.deleteBlob(blobOf(nats.Header(r.Headers())))
			if problem != nil {
				c.fail(r.Reply(), problem)
				return
			}
			if err := c.nc.Publish(r.Reply(), fmt.Appendf(nil, `{"id":%q}`, id)); err != nil {
				c.log.Debug("answer was not sent", zap.Error(err))
			}
		})
	}
	return func(r micro.Request) {
		if size := payloadSize(nats.Header(r.Headers()), r.Data()); most > 0 && size > int64(most) {
			c.deleteBlob(blobOf(nats.Header(r.Headers())))
			c.fail(r.Reply(), SubmissionTooLarge(size, most))
			return
		}
		room <- struct{}{}
		if blobOf(nats.Header(r.Headers())) == "" {
			handle(context.Background(), r, r.Data())
			return
		}
		c.inBackground(func(ctx context.Context) {
			data, err := c.unpack(ctx, nats.Header(r.Headers()), r.Data())
			if err != nil {
				<-room
				c.fail(r.Reply(), ProblemOf(err))
				return
			}
			handle(context.WithoutCancel(ctx), r, data)
		})
	}
}

// SubmissionTooLarge is the refusal of a submission over its bound.
func SubmissionTooLarge(size int64, most int) *Problem {
	return &Problem{Code: CodeTooLarge, Message: fmt.Sprintf("the submission has %d bytes, %d are allowed: "+
		"store the workflow and submit its id, or store large input elsewhere and submit where it is (REPRISE_MAX_SUBMISSION_BYTES)", size, most)}
}

// payloadSize is the length of a payload, wherever it is, as its sender says.
func payloadSize(header nats.Header, body []byte) int64 {
	if blobOf(header) == "" {
		return int64(len(body))
	}
	size, err := strconv.ParseInt(header.Get(HeaderBlobSize), 10, 64)
	if err != nil {
		return 0 // the reader bounds what it fetches
	}
	return size
}

// fail answers a request with a problem, in the micro protocol's headers and in
// the body.
func (c *Conn) fail(to string, p *Problem) {
	text := p.Message
	if len(text) > 500 {
		text = text[:500]
	}
	m := &nats.Msg{Subject: to, Header: nats.Header{
		headerErrorCode: []string{fmt.Sprint(p.Status())}, headerError: []string{oneLine(text)},
	}}
	data, err := encode(p)
	if err != nil || len(data) > c.threshold() {
		data, err = encode(&Problem{Code: p.Code, Message: text, Details: p.Details[:min(20, len(p.Details))]})
	}
	if err == nil {
		m.Data = data
		err = c.nc.PublishMsg(m)
	}
	if err != nil {
		c.log.Debug("answer was not sent", zap.Error(err))
	}
}

// oneLine makes a text fit for a header.
func oneLine(text string) string {
	out := []rune(text)
	for i, r := range out {
		if r == '\r' || r == '\n' {
			out[i] = ' '
		}
	}
	return string(out)
}

var errNoAnswer = errors.New("the answer is empty")
