# Takes the place of postgres:18, with the PostgreSQL that Debian has.
FROM localhost/debian
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql && rm -r /var/lib/postgresql/* && \
  chmod 1777 /var/lib/postgresql
COPY postgres-entrypoint /usr/local/bin/
VOLUME /var/lib/postgresql
ENTRYPOINT ["postgres-entrypoint"]
