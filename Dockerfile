# syntax=docker/dockerfile:1
# Two images from one file: `docker build --target cpu .` and `docker build --target cuda .`

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY . .
# Binaries of ONNX Runtime for other platforms are four fifths of its size.
RUN npm run build \
 && npm prune --omit=dev --no-audit --no-fund \
 && rm -rf src web node_modules/onnxruntime-node/bin/napi-v6/darwin node_modules/onnxruntime-node/bin/napi-v6/win32

# The CUDA provider is not in the npm package: its own script fetches it.
FROM build AS build-cuda
RUN ONNXRUNTIME_NODE_INSTALL=cuda12 node node_modules/onnxruntime-node/script/install.js

FROM node:24-bookworm-slim AS cpu
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 10001 gantry \
 && useradd --system --uid 10001 --gid gantry --home-dir /nonexistent --shell /usr/sbin/nologin gantry \
 && install -d -o gantry -g gantry /data
COPY --from=build /app /app
WORKDIR /data
ENV NODE_ENV=production
USER 10001:10001
VOLUME /data
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8002/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["--help"]

# CUDA 12 with cuDNN 9, as ONNX Runtime's CUDA provider wants them. Run it with `--gpus all`.
FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04 AS cuda
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 10001 gantry \
 && useradd --system --uid 10001 --gid gantry --home-dir /nonexistent --shell /usr/sbin/nologin gantry \
 && install -d -o gantry -g gantry /data
COPY --from=build-cuda /usr/local/bin/node /usr/local/bin/node
COPY --from=build-cuda /app /app
WORKDIR /data
ENV NODE_ENV=production
USER 10001:10001
VOLUME /data
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8002/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["--help"]
