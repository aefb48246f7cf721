package dicomweb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
)

// acceptInstances asks for instances as they are stored, in whatever transfer
// syntax that is (PS3.18 8.7.3.5.2).
const acceptInstances = `multipart/related; type="application/dicom"; transfer-syntax=*`

// Part is one instance of a response.
type Part struct {
	// ContentType is the part's own, application/dicom as a rule.
	ContentType string
	// Reader yields the instance. It is good until the loop asks for the next
	// part; what is left unread then is skipped.
	io.Reader
}

// Retrieve yields the instances of a study, a series or a single one (PS3.18
// 10.4), each a DICOM file, in the server's order, while they arrive. The last
// pair holds the error if the response failed or was cut short. Leaving the
// loop ends the transfer.
func (c *Client) Retrieve(ctx context.Context, ref Ref) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		const name = "WADO-RS retrieve"
		segments, err := ref.path()
		op := c.operation(name, nil, segments...)
		if err != nil {
			yield(Part{}, op.wrap(err))
			return
		}
		// An unfinished body is given up at once.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		resp, err := c.do(ctx, op, http.MethodGet, acceptInstances, "", nil)
		if err != nil {
			yield(Part{}, err)
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			yield(Part{}, op.statusError(resp))
			return
		}
		for part, err := range parts(resp.Header.Get("Content-Type"), resp.Body) {
			if err != nil {
				yield(Part{}, op.wrap(err))
				return
			}
			if !yield(part, nil) {
				return
			}
		}
	}
}

// parts splits a response body: multipart/related, or one bare instance from
// servers that answer so for a single one.
func parts(contentType string, body io.Reader) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		mediaType, params, err := parseMediaType(contentType)
		switch {
		case err != nil:
			yield(Part{}, fmt.Errorf("the response's %w", err))
			return
		case mediaType == "application/dicom":
			yield(Part{ContentType: contentType, Reader: body}, nil)
			return
		case mediaType != "multipart/related":
			yield(Part{}, fmt.Errorf("the response is %q, not multipart/related", contentType))
			return
		case params["boundary"] == "":
			yield(Part{}, fmt.Errorf("the response's Content-Type %q has no boundary", contentType))
			return
		}
		r := multipart.NewReader(body, params["boundary"])
		for n := 1; ; n++ {
			part, err := r.NextRawPart()
			if err == io.EOF { // the bare value: the closing boundary was read
				// What may follow is to be ignored; read to its end, so that the
				// connection can be used again.
				_, _ = io.CopyN(io.Discard, body, 64<<10)
				return
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				yield(Part{}, fmt.Errorf("part %d: %w", n, err))
				return
			}
			if !yield(Part{ContentType: part.Header.Get("Content-Type"), Reader: part}, nil) {
				return
			}
		}
	}
}
