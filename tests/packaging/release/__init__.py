"""What a release is made of: lock files, licences, wheel, sdist, chart, SBOM."""
