package node

import "encoding/json"

// ModelCall is one question to a language model, as it is shown to those who observe the
// process (Services.ObserveModel). Whoever asks fills in the answer before the observation ends.
type ModelCall struct {
	// Provider is whose API is spoken ("openai"), Model the model that was asked for, Server where
	// ("api.openai.com:443").
	Provider, Model, Server string
	// Input and Output are what is asked and what is answered, as JSON lists. They are called by those who may see
	// them only; nil is none.
	Input, Output func() json.RawMessage

	// AnsweredBy is the model that answered, "" when it is not told; Finish its reason to stop.
	AnsweredBy, Finish        string
	InputTokens, OutputTokens int
	// Err is why there is no answer.
	Err error
}
