// Refusals as typed errors: branch on the class and on `reason`; the text is for people.
import grpc from "@grpc/grpc-js";

export class InterlockError extends Error {
  constructor(reason, message, { metadata = {}, headers = {}, retryAfterMs = 0, code } = {}) {
    super(message ? `${reason}: ${message}` : reason);
    this.name = new.target.name;
    Object.assign(this, { reason, metadata, headers, retryAfterMs, code });
  }
}
export class BadRequest extends InterlockError {}
export class Unauthenticated extends InterlockError {}
export class Forbidden extends InterlockError {}
export class NotFound extends InterlockError {}
export class Conflict extends InterlockError {}
export class SafetyHalt extends InterlockError {}
export class Unavailable extends InterlockError {}

const CLASSES = {
  [grpc.status.INVALID_ARGUMENT]: BadRequest,
  [grpc.status.UNAUTHENTICATED]: Unauthenticated,
  [grpc.status.PERMISSION_DENIED]: Forbidden,
  [grpc.status.NOT_FOUND]: NotFound,
  [grpc.status.ABORTED]: Conflict,
  [grpc.status.FAILED_PRECONDITION]: SafetyHalt,
};

/** Returns the error of a failed call. A refusal's details are a google.rpc.Status in the trailing metadata. */
export function errorOf(failed) {
  const Kind = CLASSES[failed.code] ?? Unavailable;
  const headers = {};
  for (const [name, value] of Object.entries(failed.metadata?.getMap() ?? {})) {
    if (typeof value === "string") headers[name] = value;
  }
  const found = details(failed.metadata?.get("grpc-status-details-bin")?.[0]);
  const reason = found.reason || `GRPC_${grpc.status[failed.code] ?? "UNKNOWN"}`;
  return new Kind(reason, failed.details, { ...found, headers, code: failed.code });
}

// google.rpc.Status{3: Any{1: type_url, 2: value}}; ErrorInfo{1: reason, 3: map}; RetryInfo{1: Duration{1: s, 2: ns}}. Three small
// messages of a fixed shape: reading them here spares a second set of descriptors.
function details(bytes) {
  const found = { reason: "", metadata: {}, retryAfterMs: 0 };
  if (!bytes) return found;
  for (const any of fields(bytes).filter((f) => f.number === 3)) {
    const parts = fields(any.value);
    const type = text(parts, 1);
    const value = fields(parts.find((f) => f.number === 2)?.value ?? new Uint8Array());
    if (type.endsWith("/google.rpc.ErrorInfo")) {
      found.reason = text(value, 1);
      for (const entry of value.filter((f) => f.number === 3)) {
        const pair = fields(entry.value);
        found.metadata[text(pair, 1)] = text(pair, 2);
      }
    } else if (type.endsWith("/google.rpc.RetryInfo")) {
      const delay = fields(value.find((f) => f.number === 1)?.value ?? new Uint8Array());
      const number = (n) => Number(delay.find((f) => f.number === n)?.value ?? 0);
      found.retryAfterMs = number(1) * 1000 + Math.round(number(2) / 1e6);
    }
  }
  return found;
}

function fields(bytes) {
  const found = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (at >= bytes.length || shift > 63n) throw new RangeError("status details end in the middle of a number");
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    if (tag % 8 === 0) found.push({ number: tag >> 3, value: varint() });
    else if (tag % 8 === 2) {
      const length = Number(varint());
      found.push({ number: tag >> 3, value: bytes.subarray(at, (at += length)) });
    } else throw new RangeError("status details have a field of another kind");
  }
  return found;
}

function text(parts, number) {
  const found = parts.find((f) => f.number === number);
  return found ? Buffer.from(found.value).toString("utf8") : "";
}
