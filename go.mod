module fastpacs

go 1.26.0

replace github.com/quic-go/quic-go/quichook => ./cc/quichook

require github.com/quic-go/quic-go/quichook v0.0.0

require (
	github.com/caarlos0/env/v11 v11.4.2 // indirect
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/prometheus/common v0.74.0 // indirect
	github.com/quic-go/quic-go v0.65.0 // indirect
	github.com/suyashkumar/dicom v1.1.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/exp v0.0.0-20240525044651-4c93da0ed11d // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
