// Package httpstatus has n8n's words for what a service answered, which every
// node that calls one uses.
package httpstatus

// Messages by HTTP status; others have none of their own.
var Messages = map[int]string{
	400: "Bad request - please check your parameters",
	401: "Authorization failed - please check your credentials",
	402: "Payment required - perhaps check your payment details?",
	403: "Forbidden - perhaps check your credentials?",
	404: "The resource you are requesting could not be found",
	405: "Method not allowed - please check you are using the right HTTP method",
	429: "The service is receiving too many requests from you",
	500: "The service was not able to process your request",
	502: "Bad gateway - the service failed to handle your request",
	503: "Service unavailable - try again later or consider setting this node to retry automatically (in the node settings)",
	504: "Gateway timed out - perhaps try again later?",
}
