# SeaweedFS as an unprivileged user. The base image's own data folder belongs to root.
FROM chrislusf/seaweedfs:4.48
USER root
RUN mkdir -p /objects && chown 10001:10001 /objects
USER 10001:10001
ENTRYPOINT ["/usr/bin/weed"]
