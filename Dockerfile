# The service and its commands. Node runs the sources, so there is nothing to build.
#
#   docker run IMAGE                 serves
#   docker run IMAGE keys list       any command; IMAGE --help lists them
#
# It runs as an account without rights, and writes nothing: docker run --read-only.
FROM node:24.21-slim

LABEL org.opencontainers.image.title="commodity-prices" \
  org.opencontainers.image.description="A self-hosted, read-only API for assessed commodity prices" \
  org.opencontainers.image.version="1.0.0" \
  org.opencontainers.image.licenses="MIT"

ENV NODE_ENV=production
WORKDIR /app

# Without the embedded PostgreSQL: in a container the database is DATABASE_URL.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force

COPY migrations ./migrations
COPY seeds ./seeds
COPY src ./src
# The pages of the help.
COPY docs/explorer.md docs/formats.md docs/conversion.md ./docs/
# Help and messages name the command line by this script: docker compose exec service ./prices …
COPY prices ./

USER node
ENV HOST=0.0.0.0 PORT=3000
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

ENTRYPOINT ["node", "--max-semi-space-size=8", "--no-allocation-site-pretenuring", "--v8-pool-size=1", "/app/src/cli/main.ts"]
CMD ["serve"]
