package node

// AddressRefusedError is what Services.HTTP fails with, wrapped, when a request would
// reach an address that the process does not let workflows reach. Nothing was sent, and
// another attempt ends the same way.
type AddressRefusedError struct {
	// Host is what was asked for, "name:port".
	Host string
	// Kind says what is there, such as "a loopback address".
	Kind string
	// Hint says what an operator who wants to allow it does.
	Hint string
}

// Error implements error.
func (e *AddressRefusedError) Error() string {
	return "the connection to " + e.Host + " was refused: it is " + e.Kind
}
