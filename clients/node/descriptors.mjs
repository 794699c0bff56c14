// The published descriptors. The package carries them; in the repository they are those of the Python package.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadFileDescriptorSetFromBuffer } from "@grpc/proto-loader";

const packed = new URL("./descriptors.binpb", import.meta.url);
const inRepository = new URL("../../services/interlock/api/descriptors.binpb", import.meta.url);
const read = readFileSync(fileURLToPath(existsSync(packed) ? packed : inRepository));

export const definitions = loadFileDescriptorSetFromBuffer(read, { longs: Number, enums: String, defaults: true });
