package node

import "context"

type refusedToken struct{}

// WithRefusedToken returns a context in which Services.Credentials does not give the access token
// again that a service has refused (with status 401), if there is a way to a new one.
func WithRefusedToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, refusedToken{}, token)
}

// RefusedToken is the token of WithRefusedToken, "" when there is none.
func RefusedToken(ctx context.Context) string {
	token, _ := ctx.Value(refusedToken{}).(string)
	return token
}
