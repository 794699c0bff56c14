// What every channel takes, and the published descriptors. The package carries them; in the repository they are those of the Python package.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadFileDescriptorSetFromBuffer } from "@grpc/proto-loader";

const packed = new URL("./descriptors.binpb", import.meta.url);
const inRepository = new URL("../../services/interlock/api/descriptors.binpb", import.meta.url);
const read = readFileSync(fileURLToPath(existsSync(packed) ? packed : inRepository));

export const definitions = loadFileDescriptorSetFromBuffer(read, { longs: Number, enums: String, defaults: true });

/** Of a channel: a line that died in silence is noticed within 15 seconds. Servers let a client ping twice as often. */
export const CHANNEL = {
  "grpc.max_receive_message_length": 64 << 20,
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.keepalive_permit_without_calls": 1,
};
