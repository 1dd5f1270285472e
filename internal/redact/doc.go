// Package redact takes secrets out of what leaves a worker: results, errors, logs.
//
// Servers echo what they were sent, and error texts quote it, so a secret can turn up anywhere in
// a node's result, and not as it was: inside JSON or HTML, in a URL, in base64 (Basic
// authentication, or a file in an item). A Set knows these forms of the secrets that a job has
// been given and replaces them. A job that was given none costs nothing.
//
// What is not found: a secret that a server or a script transforms in another way (reversed, encrypted,
// cut in pieces), and one shorter than MinBytes, as replacing such would spoil data by chance.
package redact
