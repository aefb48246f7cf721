package dicomweb_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"fastpacs/internal/ctstudy"
	"fastpacs/internal/dicomweb"
	"fastpacs/internal/orthanc"
)

// readersOf yields the files of a study for Store.
func readersOf(ctx context.Context, s *ctstudy.Study) iter.Seq2[io.Reader, error] {
	return func(yield func(io.Reader, error) bool) {
		for inst, err := range s.All(ctx) {
			if !yield(bytes.NewReader(inst.File), err) {
				return
			}
		}
	}
}

// TestOrthanc stores a study in a real archive and gets the same bytes back.
func TestOrthanc(t *testing.T) {
	in, err := orthanc.Find()
	if err != nil {
		if os.Getenv("REQUIRE_PARTS") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	archive, err := orthanc.Start(t.Context(), orthanc.Config{Installation: in})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := archive.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	c, err := dicomweb.New(archive.URL()+orthanc.DICOMwebPath, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}

	study, err := ctstudy.New(ctstudy.Config{Slices: 12, Size: 512, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	result, err := c.Store(ctx, readersOf(ctx, study))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Stored) != study.Len() || len(result.Failed) != 0 {
		t.Fatalf("stored %d and failed %d of %d", len(result.Stored), len(result.Failed), study.Len())
	}
	t.Logf("STOW-RS: %d instances in %v", study.Len(), time.Since(start))

	studies, err := c.Studies(ctx, url.Values{"PatientID": {study.PatientID()}, "includefield": {"00201208"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(studies) != 1 || studies[0].String(dicomweb.StudyInstanceUID) != study.StudyInstanceUID() {
		t.Fatalf("QIDO-RS found studies %v", studies)
	}
	if n, ok := studies[0].Int(dicomweb.NumberOfInstances); !ok || n != study.Len() {
		t.Errorf("Number of Study Related Instances is %d, %v", n, ok)
	}
	found, err := c.Instances(ctx, dicomweb.Ref{Study: study.StudyInstanceUID()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != study.Len() {
		t.Fatalf("QIDO-RS found %d instances", len(found))
	}
	originals := map[string]ctstudy.Instance{}
	for inst, err := range study.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		originals[inst.SOPInstanceUID] = inst
	}
	for _, f := range found {
		ref := dicomweb.Ref{
			Study:    study.StudyInstanceUID(),
			Series:   f.String(dicomweb.SeriesInstanceUID),
			Instance: f.String(dicomweb.SOPInstanceUID),
		}
		n := 0
		for part, err := range c.Retrieve(ctx, ref) {
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(part)
			if err != nil || !bytes.Equal(b, originals[ref.Instance].File) {
				t.Errorf("instance %s came back different (%d bytes, %v)", ref.Instance, len(b), err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("instance %s: %d parts", ref.Instance, n)
		}
	}
	whole := 0
	for part, err := range c.Retrieve(ctx, dicomweb.Ref{Study: study.StudyInstanceUID()}) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		for uid, o := range originals {
			if bytes.Equal(b, o.File) {
				delete(originals, uid)
				whole++
			}
		}
	}
	if whole != study.Len() || len(originals) != 0 {
		t.Errorf("the whole study gave %d of %d originals back", whole, study.Len())
	}
}
