# FROM, COPY, RUN, USER and ENTRYPOINT alone: `make image-check` carries out these lines, as they
# are, on a clean Debian of this release, and starts Tutti there. Build it with any builder:
#   docker build -t registry.example.com/tutti:0.1.0 .

FROM debian:trixie-20261005-slim@sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3-venv
# What will run is installed to /usr/local, so that `python` is on every PATH; what builds is not.
RUN python3 -m venv /build \
 && python3 -m venv --without-pip /usr/local
COPY locks /source/locks/
RUN /build/bin/pip install --no-deps --only-binary=:all: --require-hashes -r /source/locks/build.txt
RUN /build/bin/pip --python /usr/local/bin/python install --no-deps --only-binary=:all: --require-hashes -r /source/locks/run.txt
COPY pyproject.toml README.md LICENSE CHANGELOG.md /source/
COPY charts/tutti/crds /source/charts/tutti/crds/
COPY operator /source/operator/
RUN /build/bin/pip wheel --no-deps --no-index --no-build-isolation --wheel-dir /wheels /source
# pip checks that nothing is missing; the engines that PuLP brings for other systems are left out.
RUN /build/bin/pip --python /usr/local/bin/python install --no-deps --no-index /wheels/*.whl \
 && /build/bin/pip --python /usr/local/bin/python check \
 && cd /usr/local/lib/python3*/site-packages/pulp/solverdir/cbc \
 && rm -r osx win linux/i32

FROM debian:trixie-20261005-slim@sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY --from=build /usr/local /usr/local/
# The chart's user; no line in /etc/passwd is needed for it.
USER 65532:65532
ENTRYPOINT ["python", "-m", "tutti"]
