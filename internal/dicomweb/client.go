package dicomweb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client talks to one DICOMweb service. It is safe for concurrent use; its
// fields may be set before the first use.
type Client struct {
	// Header is added to every request, for example an Authorization.
	Header http.Header
	// MaxJSON bounds a JSON response, in bytes; 0 means 64 MiB.
	MaxJSON int64

	base *url.URL
	http *http.Client
}

const defaultMaxJSON = 64 << 20

// New returns a client of the service at base (https://host/dicom-web) that
// sends by hc. No time limit is set here: a large study takes as long as it
// takes. Use contexts, and the header and idle timeouts of the transport.
func New(base string, hc *http.Client) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("dicomweb: service URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("dicomweb: service URL %q: must be http(s)://host[:port][/path]", u.Redacted())
	}
	return &Client{base: u, http: hc}, nil
}

// Ref names a study, a series in it or an instance in that by their UIDs. What
// lies below the named level is empty.
type Ref struct{ Study, Series, Instance string }

// path returns the segments of the resource (PS3.18 10.1).
func (r Ref) path() ([]string, error) {
	if r.Study == "" || r.Series == "" && r.Instance != "" {
		return nil, errors.New("a reference names a study, or a study and a series, or all three")
	}
	segments := []string{"studies", r.Study}
	if r.Series != "" {
		segments = append(segments, "series", r.Series)
	}
	if r.Instance != "" {
		segments = append(segments, "instances", r.Instance)
	}
	for i := 1; i < len(segments); i += 2 {
		if !validUID(segments[i]) {
			return nil, fmt.Errorf("%q is not a UID: must be 1 to 64 digits and dots", segments[i])
		}
	}
	return segments, nil
}

// validUID holds a UID to its characters and length (PS3.5 9.1), which keeps it
// from being anything but one path segment. It is lenient on leading zeros,
// which exist in the field.
func validUID(uid string) bool {
	if uid == "" || len(uid) > 64 || uid[0] == '.' {
		return false
	}
	for _, c := range []byte(uid) {
		if c != '.' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// StatusError is a response whose status says that the operation failed.
type StatusError struct {
	Op     string // for example "QIDO-RS search for studies"
	URL    string // without the query
	Status int
	Body   string // its start, at most 512 bytes
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("dicomweb: %s at %s: %d %s", e.Op, e.URL, e.Status, http.StatusText(e.Status))
	if e.Body != "" {
		s += fmt.Sprintf(": %q", e.Body)
	}
	return s
}

// operation is one request; its fields are what an error about it says.
type operation struct {
	name string
	url  *url.URL
}

// operation returns an operation on the resource of those path segments.
func (c *Client) operation(name string, query url.Values, segments ...string) operation {
	u := c.base.JoinPath(segments...)
	u.RawQuery = query.Encode()
	return operation{name: name, url: u}
}

// where is the URL without what may name a patient.
func (o operation) where() string {
	u := *o.url
	u.RawQuery = ""
	return u.Redacted()
}

// wrap says which operation err belongs to.
func (o operation) wrap(err error) error {
	// A url.Error repeats the method and the whole URL.
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return fmt.Errorf("dicomweb: %s at %s: %w", o.name, o.where(), err)
}

// do sends a request and returns its response, whatever its status.
func (c *Client) do(ctx context.Context, op operation, method, accept, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, op.url.String(), body)
	if err != nil {
		return nil, op.wrap(err)
	}
	for name, values := range c.Header {
		req.Header[name] = append([]string(nil), values...)
	}
	req.Header.Set("Accept", accept)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, op.wrap(err)
	}
	return resp, nil
}

// statusError reads the start of the body of a failed operation.
func (o operation) statusError(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // the status says more than a read error
	return &StatusError{Op: o.name, URL: o.where(), Status: resp.StatusCode, Body: strings.TrimSpace(string(b))}
}
