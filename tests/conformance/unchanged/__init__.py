"""Plans stay what they were on a recorded revision, but for defects that are fixed on purpose.

``python -m tests.conformance.unchanged check`` plans 5,000 generated clusters and every manifest of
the tests and docs, and compares the public JSON with the record beside this file.
"""
