package http

import _ "github.com/nats-io/nats.go"
