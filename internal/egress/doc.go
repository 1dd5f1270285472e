// Package egress decides which addresses the HTTP requests of workflows may reach.
//
// A workflow's author, a model that fills in a tool's arguments, and a server that
// redirects all choose addresses, and a worker stands inside a network that none of them
// should see (server-side request forgery). A Policy refuses what is not public: loopback,
// private, link-local (where clouds keep their metadata), shared, multicast and reserved
// addresses, in IPv4, in IPv6, and in every form of IPv6 that stands for an IPv4 address.
//
// The check is made on the address that a connection is about to be opened to, after the name
// was resolved and for every attempt. So it does not matter how a URL spells the address, what
// a redirect says, or that a name resolves to something else the second time.
//
// # Proxies
//
// When the process has a proxy (HTTP_PROXY, HTTPS_PROXY), the proxy opens the connections. It
// is the operator's, so it may be private. Names are then resolved and checked before the proxy is
// asked. What only the proxy can resolve is left to its own rules: let it refuse private
// addresses too. A proxy that a workflow names is an address like any other.
package egress
