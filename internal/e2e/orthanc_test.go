package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fastpacs/internal/dicomweb"
	"fastpacs/internal/orthanc"
)

// TestStudy stores a study over HTTP/3, and finds and retrieves it over every
// protocol, byte for byte.
func TestStudy(t *testing.T) {
	a := theArchive(t)
	f := startFastpacs(t, a.URL())
	ctx := within(t, time.Minute)
	s := newStudy(t, 20, 101)

	result, err := s.store(ctx, service(t, f.url(""), f.client(t, "h3")), s.uids...)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range result.Stored {
		// W01: not the archive's own address, nor plain http.
		if want := f.url(s.path(i.SOPInstanceUID)); i.RetrieveURL != want {
			t.Errorf("STOW-RS: RetrieveURL is %q, want %q", i.RetrieveURL, want)
		}
	}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			hc := f.client(t, protocol)
			c := service(t, f.url(""), hc)
			studies, err := c.Studies(ctx, url.Values{"PatientID": {s.PatientID()}})
			if err != nil || len(studies) != 1 {
				t.Fatalf("QIDO-RS found %d studies of the patient, %v", len(studies), err)
			}
			if got := studies[0].String(dicomweb.StudyInstanceUID); got != s.StudyInstanceUID() {
				t.Errorf("QIDO-RS found study %q, want %q", got, s.StudyInstanceUID())
			}
			instances, err := c.Instances(ctx, dicomweb.Ref{Study: s.StudyInstanceUID()}, nil)
			if err != nil || len(instances) != s.Len() {
				t.Fatalf("QIDO-RS found %d instances of %d, %v", len(instances), s.Len(), err)
			}
			const retrieveURL dicomweb.Tag = "00081190"
			for _, i := range instances {
				want := f.url(s.path(i.String(dicomweb.SOPInstanceUID)))
				if got := i.String(retrieveURL); got != want {
					t.Errorf("QIDO-RS: RetrieveURL is %q, want %q", got, want)
				}
			}
			if err := s.verify(ctx, c, dicomweb.Ref{Study: s.StudyInstanceUID()}, s.Len()); err != nil {
				t.Errorf("WADO-RS study: %v", err)
			}
			if err := s.verify(ctx, c, s.ref(s.uids[7]), 1); err != nil {
				t.Errorf("WADO-RS instance: %v", err)
			}
			checkMetadata(ctx, t, f, hc, s)
			if n := f.metric(t, "fastpacs_http_requests_total", "protocol="+protocol); n < 5 {
				t.Errorf("fastpacs counted %v requests over %s", n, protocol)
			}
		})
	}
}

// checkMetadata holds the BulkDataURIs of the metadata to the public origin.
func checkMetadata(ctx context.Context, t *testing.T, f *fastpacs, hc *http.Client, s study) {
	t.Helper()
	got, err := fetch(ctx, hc, http.MethodGet, f.url(orthanc.DICOMwebPath+"/studies/"+s.StudyInstanceUID()+"/metadata"),
		http.Header{"Accept": {"application/dicom+json"}}, nil)
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("metadata: status %d, %v", got.status, err)
	}
	var instances []map[string]struct{ BulkDataURI string }
	if err := json.Unmarshal(got.body, &instances); err != nil || len(instances) != s.Len() {
		t.Fatalf("metadata of %d instances, want %d, %v", len(instances), s.Len(), err)
	}
	const pixelData = "7FE00010"
	for _, i := range instances {
		if uri := i[pixelData].BulkDataURI; !strings.HasPrefix(uri, f.url(orthanc.DICOMwebPath+"/")) {
			t.Fatalf("metadata: BulkDataURI of the pixels is %q", uri)
		}
	}
}

// TestKeepAlive makes many requests in every rhythm: Orthanc closes a connection
// one second after its last request, and no client may notice.
func TestKeepAlive(t *testing.T) {
	a := theArchive(t)
	f := startFastpacs(t, a.URL())
	s := newStudy(t, 4, 102)
	if _, err := s.store(within(t, time.Minute), service(t, a.URL(), plainClient(t)), s.uids...); err != nil {
		t.Fatal(err)
	}
	t.Run("rhythms", func(t *testing.T) {
		t.Run("pauses", func(t *testing.T) {
			t.Parallel()
			pauses(t, f, s)
		})
		for _, protocol := range []string{"h2", "h3"} {
			t.Run("sequential "+protocol, func(t *testing.T) {
				t.Parallel()
				sequential(t, f, protocol, s)
			})
			t.Run("parallel "+protocol, func(t *testing.T) {
				t.Parallel()
				parallel(t, f, protocol, s)
			})
		}
	})
	for _, class := range []string{"5xx", "4xx"} {
		if n := f.metric(t, "fastpacs_http_requests_total", "code="+class); n != 0 {
			t.Errorf("fastpacs answered %v requests with %s", n, class)
		}
	}
}

// fetchSame retrieves something once and returns a function that does it again
// and compares.
func fetchSame(ctx context.Context, c *http.Client, url string, wantBytes int) func() error {
	return func() error {
		got, err := get(ctx, c, url)
		switch {
		case err != nil:
			return err
		case got.status != http.StatusOK:
			return fmt.Errorf("GET %s: status %d: %.200s", url, got.status, got.body)
		case len(got.body) < wantBytes:
			return fmt.Errorf("GET %s: %d bytes, want at least %d", url, len(got.body), wantBytes)
		}
		return nil
	}
}

func sequential(t *testing.T, f *fastpacs, protocol string, s study) {
	const requests = 1000
	ctx := within(t, 2*time.Minute)
	c := f.client(t, protocol)
	search := fetchSame(ctx, c, f.url(orthanc.DICOMwebPath+"/studies?PatientID="+url.QueryEscape(s.PatientID())), 100)
	instance := fetchSame(ctx, c, f.url(s.path(s.uids[0])), len(s.files[s.uids[0]]))
	start := time.Now()
	for i := range requests {
		ask := search
		if i%50 == 0 {
			ask = instance
		}
		if err := ask(); err != nil {
			t.Fatalf("request %d of %d: %v", i+1, requests, err)
		}
	}
	t.Logf("%d requests in %v", requests, time.Since(start).Round(time.Millisecond))
}

func parallel(t *testing.T, f *fastpacs, protocol string, s study) {
	const clients, rounds = 64, 4
	ctx := within(t, 2*time.Minute)
	c := f.client(t, protocol)
	var done atomic.Int64
	for range rounds {
		errs := make([]error, clients)
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				uid := s.uids[i%len(s.uids)]
				if errs[i] = fetchSame(ctx, c, f.url(s.path(uid)), len(s.files[uid]))(); errs[i] == nil {
					done.Add(1)
				}
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%d requests went well, then: %v", done.Load(), err)
		}
	}
}

// pauses lets the upstream connection grow just as old as Orthanc allows, the
// one thing in these tests that has to take time.
func pauses(t *testing.T, f *fastpacs, s study) {
	ctx := within(t, time.Minute)
	var both sync.WaitGroup
	errs := make(map[string]error)
	var mu sync.Mutex
	for _, protocol := range []string{"h2", "h3"} {
		hc := f.client(t, protocol)
		c := service(t, f.url(""), hc)
		both.Go(func() {
			err := pausing(ctx, f, hc, c, s)
			mu.Lock()
			defer mu.Unlock()
			errs[protocol] = err
		})
	}
	both.Wait()
	for protocol, err := range errs {
		if err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

func pausing(ctx context.Context, f *fastpacs, hc *http.Client, c *dicomweb.Client, s study) error {
	search := fetchSame(ctx, hc, f.url(orthanc.DICOMwebPath+"/studies?limit=1"), 100)
	for _, pause := range []time.Duration{880, 960, 995, 1000, 1005, 1040, 1300} {
		if err := search(); err != nil {
			return err
		}
		select {
		case <-time.After(pause * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		// Both kinds: a request that may be repeated and one that may not.
		if err := search(); err != nil {
			return fmt.Errorf("search after a pause of %d ms: %w", pause, err)
		}
		if _, err := s.store(ctx, c, s.uids[1]); err != nil {
			return fmt.Errorf("STOW-RS after a pause of %d ms: %w", pause, err)
		}
	}
	return nil
}

// plainClient speaks HTTP/1.1 to upstreams.
func plainClient(tb testing.TB) *http.Client {
	t := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8}
	tb.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}
