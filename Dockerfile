# The service as it is: Node runs the sources, so there is nothing to build.
FROM node:24-slim

ENV NODE_ENV=production
WORKDIR /app

# Without the embedded PostgreSQL: in a container the database is DATABASE_URL.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force

COPY migrations ./migrations
COPY seeds ./seeds
COPY src ./src

USER node
ENV HOST=0.0.0.0 PORT=3000
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

CMD ["node", "--max-semi-space-size=16", "src/server.ts"]
