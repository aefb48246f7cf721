package dicomweb

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

const acceptJSON = "application/dicom+json"

// Studies searches for studies (PS3.18 10.6). The query holds attributes to
// match by keyword or tag, includefield, limit and offset; a server may return
// fewer than match, and then expects the next offset. Nothing found is no error.
func (c *Client) Studies(ctx context.Context, query url.Values) ([]Dataset, error) {
	return c.search(ctx, c.operation("QIDO-RS search for studies", query, "studies"))
}

// Series searches for the series of a study.
func (c *Client) Series(ctx context.Context, study string, query url.Values) ([]Dataset, error) {
	return c.searchBelow(ctx, "QIDO-RS search for series", Ref{Study: study}, query, "series")
}

// Instances searches for the instances of a study, or of a series in it.
func (c *Client) Instances(ctx context.Context, parent Ref, query url.Values) ([]Dataset, error) {
	const name = "QIDO-RS search for instances"
	if parent.Instance != "" {
		op := c.operation(name, nil)
		return nil, op.wrap(errors.New("the parent is an instance: must be a study or a series"))
	}
	return c.searchBelow(ctx, name, parent, query, "instances")
}

func (c *Client) searchBelow(ctx context.Context, name string, parent Ref, query url.Values, what string) ([]Dataset, error) {
	segments, err := parent.path()
	if err != nil {
		op := c.operation(name, nil)
		return nil, op.wrap(err)
	}
	return c.search(ctx, c.operation(name, query, append(segments, what)...))
}

func (c *Client) search(ctx context.Context, op operation) ([]Dataset, error) {
	resp, err := c.do(ctx, op, http.MethodGet, acceptJSON, "", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent: // 206: more matches than returned
	case http.StatusNoContent:
		return nil, nil
	default:
		return nil, op.statusError(resp)
	}
	var found []Dataset
	if err := c.readJSON(resp, &found); err != nil {
		return nil, op.wrap(err)
	}
	return found, nil
}
