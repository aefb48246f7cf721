package dicomweb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
)

// StoreResult is what a server says it did with the instances sent to it.
type StoreResult struct {
	Stored []Stored // Referenced SOP Sequence (0008,1199)
	Failed []Failed // Failed SOP Sequence (0008,1198)
}

// Stored is an instance that the server has.
type Stored struct {
	SOPClassUID    string
	SOPInstanceUID string
	RetrieveURL    string
	Warning        uint16 // Warning Reason (0008,1196); 0: none
}

// Failed is an instance that the server refused.
type Failed struct {
	SOPClassUID    string
	SOPInstanceUID string
	Reason         uint16 // Failure Reason (0008,1197), PS3.18 10.5.3
}

// Store sends instances (DICOM files, PS3.10) in one request, in order, as the
// iterator yields them; the iterator's error aborts the request and is
// returned. Each reader is read before the next is asked for.
//
// The server's verdict on each instance is in the result, on failure too: a
// caller that sent n instances has stored them when len(Stored) is n.
func (c *Client) Store(ctx context.Context, instances iter.Seq2[io.Reader, error]) (StoreResult, error) {
	op := c.operation("STOW-RS store", nil, "studies")

	body, w := io.Pipe()
	mw := multipart.NewWriter(w)
	contentType := mime.FormatMediaType("multipart/related", map[string]string{
		"type":     "application/dicom",
		"boundary": mw.Boundary(),
	})
	sent := make(chan error, 1)
	go func() {
		err := writeParts(mw, instances)
		w.CloseWithError(err) // nil: a clean end
		sent <- err
	}()

	resp, err := c.do(ctx, op, http.MethodPost, acceptJSON, contentType, body)
	if err != nil {
		body.CloseWithError(errStopped)
		// What the iterator said explains more than what the transport made of it.
		if cause := <-sent; cause != nil && !errors.Is(cause, errStopped) && !errors.Is(cause, io.ErrClosedPipe) {
			return StoreResult{}, op.wrap(cause)
		}
		return StoreResult{}, err
	}
	// A server may answer before it has read everything, and the transport then
	// goes on sending; the answer's end is what ends both.
	defer func() {
		resp.Body.Close()
		body.CloseWithError(errStopped)
		<-sent
	}()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusConflict: // all, some, none stored
	default:
		return StoreResult{}, op.statusError(resp)
	}
	var payload Dataset
	if err := c.readJSON(resp, &payload); err != nil {
		if resp.StatusCode == http.StatusConflict {
			return StoreResult{}, &StatusError{Op: op.name, URL: op.where(), Status: resp.StatusCode}
		}
		return StoreResult{}, op.wrap(err)
	}
	result, err := storeResult(payload)
	if err != nil {
		return StoreResult{}, op.wrap(err)
	}
	return result, nil
}

// errStopped ends a body that is no longer wanted.
var errStopped = errors.New("the request is over")

func writeParts(mw *multipart.Writer, instances iter.Seq2[io.Reader, error]) error {
	header := textproto.MIMEHeader{"Content-Type": {"application/dicom"}}
	n := 0
	for r, err := range instances {
		if err != nil {
			return err
		}
		n++
		part, err := mw.CreatePart(header)
		if err != nil {
			return err
		}
		if _, err := io.Copy(part, r); err != nil {
			return fmt.Errorf("sending instance %d: %w", n, err)
		}
	}
	return mw.Close()
}

func storeResult(payload Dataset) (StoreResult, error) {
	var result StoreResult
	items, err := payload.Items(referencedSOPs)
	if err != nil {
		return StoreResult{}, err
	}
	for _, item := range items {
		result.Stored = append(result.Stored, Stored{
			SOPClassUID:    item.String(referencedClass),
			SOPInstanceUID: item.String(referencedInstance),
			RetrieveURL:    item.String(retrieveURL),
			Warning:        reason(item, warningReason),
		})
	}
	if items, err = payload.Items(failedSOPs); err != nil {
		return StoreResult{}, err
	}
	for _, item := range items {
		result.Failed = append(result.Failed, Failed{
			SOPClassUID:    item.String(referencedClass),
			SOPInstanceUID: item.String(referencedInstance),
			Reason:         reason(item, failureReason),
		})
	}
	return result, nil
}

// reason returns a status code; one outside 16 bits is as good as unknown.
func reason(item Dataset, t Tag) uint16 {
	n, ok := item.Int(t)
	if !ok || n < 0 || n > 0xffff {
		return 0
	}
	return uint16(n)
}
