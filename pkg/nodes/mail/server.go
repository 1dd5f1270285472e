package mail

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
)

const credentialType = "smtp"

// server is a mail server and how to talk to it.
type server struct {
	host           string
	port           int
	user, password string
	// secure: the connection is encrypted from the start. Else STARTTLS is used when
	// the server has it and plain is not set.
	secure, plain bool
	// trustAny accepts any certificate.
	trustAny bool
	// name is how this client introduces itself.
	name string
}

func (s *server) address() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }

// findServer reads the node's credential, {"host", "port", "secure", "disableStartTls",
// "user", "password", "hostName"}.
func findServer(ctx context.Context, call *node.Call) (*server, error) {
	ref, ok := call.Node.Credentials[credentialType]
	if !ok {
		return nil, operationError(fmt.Sprintf("%q has no mail server", call.Node.Name), "Set a credential of type smtp on the node.")
	}
	if call.Credentials == nil {
		return nil, operationError("credentials are not available here", "")
	}
	data, err := call.Credentials(ctx, credentialType, ref)
	if err != nil {
		return nil, fmt.Errorf("credential %q of type %s: %w", ref.Name, credentialType, err)
	}
	return serverOf(ref.Name, data)
}

// CheckLogin connects to the server of a credential's data and logs in, as for a mail, and sends none.
// name is the credential's, for errors, which show no secret.
func CheckLogin(ctx context.Context, name string, data map[string]any) error {
	s, err := serverOf(name, data)
	if err != nil {
		return err
	}
	c, err := connect(ctx, s)
	if err != nil {
		return err
	}
	c.close()
	return nil
}

func serverOf(name string, data map[string]any) (_ *server, err error) {
	text := func(name string) string {
		if v, ok := data[name]; ok && v != nil {
			return strings.TrimSpace(fmt.Sprint(v))
		}
		return ""
	}
	s := &server{
		host: text("host"), user: text("user"), name: text("hostName"),
		secure: text("secure") != "false", // n8n's default
		plain:  text("disableStartTls") == "true",
	}
	s.password, _ = data["password"].(string)
	if s.host == "" {
		return nil, operationError(fmt.Sprintf("Credential %q (smtp) names no host", name), "")
	}
	switch port := text("port"); {
	case port != "":
		if s.port, err = strconv.Atoi(port); err != nil || s.port < 1 || s.port > 65535 {
			return nil, operationError(fmt.Sprintf("Credential %q (smtp) has the port %q; want a number from 1 to 65535", name, port), "")
		}
	case s.secure:
		s.port = 465
	default:
		s.port = 587
	}
	if s.name == "" {
		if s.name, err = os.Hostname(); err != nil || s.name == "" {
			s.name = "localhost"
		}
	}
	return s, nil
}

// redact blanks out the password in what a server said.
func (s *server) redact(text string) string {
	if len(s.password) < 4 {
		return text
	}
	return strings.ReplaceAll(text, s.password, "[secret]")
}
