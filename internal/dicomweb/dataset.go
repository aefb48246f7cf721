package dicomweb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Tag is an attribute as the DICOM JSON Model names it: eight upper-case
// hexadecimal digits (PS3.18 F.2.2).
type Tag string

// Attributes of search and store responses.
const (
	SOPClassUID        Tag = "00080016"
	SOPInstanceUID     Tag = "00080018"
	StudyDate          Tag = "00080020"
	PatientName        Tag = "00100010"
	PatientID          Tag = "00100020"
	StudyInstanceUID   Tag = "0020000D"
	SeriesInstanceUID  Tag = "0020000E"
	InstanceNumber     Tag = "00200013"
	NumberOfInstances  Tag = "00201208" // Number of Study Related Instances
	retrieveURL        Tag = "00081190"
	warningReason      Tag = "00081196"
	failureReason      Tag = "00081197"
	failedSOPs         Tag = "00081198" // Failed SOP Sequence
	referencedSOPs     Tag = "00081199" // Referenced SOP Sequence
	referencedClass    Tag = "00081150"
	referencedInstance Tag = "00081155"
)

// Dataset is a data set in the DICOM JSON Model (PS3.18 annex F). Its values
// are decoded when they are asked for.
type Dataset map[Tag]Attribute

// Attribute is one element of a Dataset.
type Attribute struct {
	VR    string            `json:"vr"`
	Value []json.RawMessage `json:"Value,omitempty"`
}

// String returns the first value of an attribute as text, a person name in its
// alphabetic form, or "" if there is none.
func (d Dataset) String(t Tag) string {
	values := d[t].Value
	if len(values) == 0 {
		return ""
	}
	raw := values[0]
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String()
	}
	var name struct{ Alphabetic string }
	if json.Unmarshal(raw, &name) == nil {
		return name.Alphabetic
	}
	return ""
}

// Int returns the first value of an attribute as a number, which servers write
// as a JSON number or as a string.
func (d Dataset) Int(t Tag) (int, bool) {
	n, err := strconv.Atoi(d.String(t))
	return n, err == nil
}

// Items returns the items of a sequence.
func (d Dataset) Items(t Tag) ([]Dataset, error) {
	items := make([]Dataset, 0, len(d[t].Value))
	for i, raw := range d[t].Value {
		var item Dataset
		if err := json.Unmarshal(raw, &item); err != nil {
			return nil, fmt.Errorf("item %d of sequence %s: %w", i+1, t, err)
		}
		items = append(items, item)
	}
	return items, nil
}

// readJSON decodes the body of a response into v.
func (c *Client) readJSON(resp *http.Response, v any) error {
	limit := c.MaxJSON
	if limit <= 0 {
		limit = defaultMaxJSON
	}
	mediaType, _, err := parseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/dicom+json" && mediaType != "application/json" {
		return fmt.Errorf("the response is %q, not application/dicom+json", resp.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return fmt.Errorf("reading the response: %w", err)
	}
	if int64(len(body)) > limit {
		return fmt.Errorf("the response is longer than %d bytes", limit)
	}
	return decodeJSON(body, v)
}

func decodeJSON(body []byte, v any) error {
	if err := json.Unmarshal(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), v); err != nil {
		return fmt.Errorf("decoding the response: %w", err)
	}
	return nil
}
