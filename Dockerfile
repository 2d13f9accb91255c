# syntax=docker/dockerfile:1
# Two images from one file: `docker build --target cpu .` and `docker build --target cuda .`

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY . .
# Binaries of ONNX Runtime for other platforms are five sixths of its size.
RUN npm run build \
 && npm prune --omit=dev --no-audit --no-fund \
 && find node_modules/onnxruntime-node/bin/napi-v6 -mindepth 2 -maxdepth 2 ! -path "*/linux/$(node -p process.arch)" -exec rm -rf {} + \
 && rm -rf src web clients scripts

# ONNX Runtime's library for CUDA, CUDA and cuDNN, all from PyPI. CUDA 13 runs on driver 580 and newer; for older ones, from 525 on,
# `--build-arg CUDA=12`, whose library for ONNX Runtime comes from NuGet.
FROM build AS build-cuda
ARG CUDA=13
ARG PIP_INDEX_URL
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-pip \
 && rm -rf /var/lib/apt/lists/* \
 && node dist/cli/main.js gpu install --cuda "$CUDA" --libraries all

FROM node:24-bookworm-slim AS runtime
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 10001 gantry \
 && useradd --system --uid 10001 --gid gantry --home-dir /nonexistent --shell /usr/sbin/nologin gantry \
 && install -d -o gantry -g gantry /data /run/gantry
WORKDIR /data
ENV NODE_ENV=production XDG_DATA_HOME=/data
VOLUME /data
EXPOSE 8000 8001 8002

FROM runtime AS cpu
COPY --from=build /app /app
USER 10001:10001
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "/app/dist/cli/main.js", "health"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["--help"]

# Run it with `--gpus all`: NVIDIA's container toolkit puts the driver in, with the parts of it that are named here, and refuses a
# driver that is too old for the CUDA inside.
FROM runtime AS cuda
ARG CUDA=13
COPY --from=build-cuda /app /app
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility,video NVIDIA_REQUIRE_CUDA="cuda>=${CUDA}.0"
USER 10001:10001
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "/app/dist/cli/main.js", "health"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["--help"]
