package ctstudy

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/big"

	"github.com/suyashkumar/dicom"
	"github.com/suyashkumar/dicom/pkg/tag"
	"github.com/suyashkumar/dicom/pkg/uid"
)

const ctImageStorage = "1.2.840.10008.5.1.4.1.1.2" // PS3.4 B.5

// uids are the identifiers shared by the instances of a study.
type uids struct {
	seed                 uint64
	study, series, frame string
}

func newUIDs(seed uint64) uids {
	return uids{
		seed:   seed,
		study:  derivedUID("study", seed, 0),
		series: derivedUID("series", seed, 0),
		frame:  derivedUID("frame of reference", seed, 0),
	}
}

func (u uids) instance(number int) string { return derivedUID("instance", u.seed, number) }

// derivedUID makes a UID under 2.25 (PS3.5 B.2) from a custom UUID (RFC 9562
// version 8) hashed from what it names.
func derivedUID(kind string, seed uint64, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "fastpacs ctstudy %s %d %d", kind, seed, number))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return "2.25." + new(big.Int).SetBytes(sum[:16]).String()
}

func patientID(seed uint64) string { return fmt.Sprintf("SYN%d", seed) }

// field is one element of the header: a tag and what dicom.NewElement takes.
type field struct {
	tag   tag.Tag
	value any
}

// header lists the elements of an instance but its pixels, in tag order: the
// mandatory ones of the CT Image IOD (PS3.3 A.3) and what viewers sort by.
func (s *Study) header(number int, sopInstanceUID string) []field {
	size := s.cfg.Size
	z := fmt.Sprintf("%.1f", sliceThickness*float64(number-1))
	spacing := fmt.Sprintf("%.6f", fieldOfView/float64(size))
	str := func(v ...string) []string { return v }
	return []field{
		{tag.FileMetaInformationVersion, []byte{0, 1}},
		{tag.MediaStorageSOPClassUID, str(ctImageStorage)},
		{tag.MediaStorageSOPInstanceUID, str(sopInstanceUID)},
		{tag.TransferSyntaxUID, str(uid.ExplicitVRLittleEndian)},
		{tag.ImplementationClassUID, str(derivedUID("implementation", 0, 0))},
		{tag.ImplementationVersionName, str("FASTPACS_LAB")},

		{tag.SpecificCharacterSet, str("ISO_IR 192")},
		{tag.ImageType, str("ORIGINAL", "PRIMARY", "AXIAL")},
		{tag.SOPClassUID, str(ctImageStorage)},
		{tag.SOPInstanceUID, str(sopInstanceUID)},
		{tag.StudyDate, str("20240102")},
		{tag.SeriesDate, str("20240102")},
		{tag.AcquisitionDate, str("20240102")},
		{tag.ContentDate, str("20240102")},
		{tag.StudyTime, str("101112")},
		{tag.SeriesTime, str("101112")},
		{tag.AcquisitionTime, str("101112")},
		{tag.ContentTime, str("101112")},
		{tag.AccessionNumber, str(fmt.Sprintf("A%d", s.cfg.Seed%1e15))},
		{tag.Modality, str("CT")},
		{tag.Manufacturer, str("synthetic")},
		{tag.ReferringPhysicianName, str("")},
		{tag.StudyDescription, str("SYNTHETIC CHEST")},
		{tag.SeriesDescription, str("AXIAL 1.0")},

		{tag.PatientName, str(fmt.Sprintf("SYNTHETIC^PATIENT %d", s.cfg.Seed))},
		{tag.PatientID, str(patientID(s.cfg.Seed))},
		{tag.PatientBirthDate, str("19600101")},
		{tag.PatientSex, str("O")},

		{tag.SliceThickness, str(fmt.Sprintf("%.1f", sliceThickness))},
		{tag.KVP, str("120")},
		{tag.PatientPosition, str("HFS")},

		{tag.StudyInstanceUID, str(s.uids.study)},
		{tag.SeriesInstanceUID, str(s.uids.series)},
		{tag.StudyID, str("1")},
		{tag.SeriesNumber, str("1")},
		{tag.AcquisitionNumber, str("1")},
		{tag.InstanceNumber, str(fmt.Sprint(number))},
		{tag.ImagePositionPatient, str(fmt.Sprint(-fieldOfView/2), fmt.Sprint(-fieldOfView/2), z)},
		{tag.ImageOrientationPatient, str("1", "0", "0", "0", "1", "0")},
		{tag.FrameOfReferenceUID, str(s.uids.frame)},
		{tag.PositionReferenceIndicator, str("")},
		{tag.SliceLocation, str(z)},

		{tag.SamplesPerPixel, []int{1}},
		{tag.PhotometricInterpretation, str("MONOCHROME2")},
		{tag.Rows, []int{size}},
		{tag.Columns, []int{size}},
		{tag.PixelSpacing, str(spacing, spacing)},
		{tag.BitsAllocated, []int{16}},
		{tag.BitsStored, []int{16}},
		{tag.HighBit, []int{15}},
		{tag.PixelRepresentation, []int{1}},
		{tag.WindowCenter, str("40")},
		{tag.WindowWidth, str("400")},
		{tag.RescaleIntercept, str("0")},
		{tag.RescaleSlope, str("1")},
		{tag.RescaleType, str("HU")},
	}
}

// writeFile writes a DICOM file of header and little-endian pixels.
func writeFile(w io.Writer, header []field, pixels []byte) error {
	var ds dicom.Dataset
	add := func(t tag.Tag, v any) error {
		e, err := dicom.NewElement(t, v)
		if err != nil {
			return fmt.Errorf("element %v: %w", t, err)
		}
		ds.Elements = append(ds.Elements, e)
		return nil
	}
	for _, f := range header {
		if err := add(f.tag, f.value); err != nil {
			return err
		}
	}
	// The library writes pixels it need not process in one piece; as a frame of
	// integers it takes them one by one, 60 times slower.
	err := add(tag.PixelData, dicom.PixelDataInfo{IntentionallyUnprocessed: true, UnprocessedValueData: pixels})
	if err != nil {
		return err
	}
	return dicom.Write(w, ds)
}
