package dev.interlock.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** A call without an answer. Branch on {@link #kind} and {@link #reason}; the text is for people. */
public final class InterlockException extends RuntimeException {
  /** What sort of refusal it is. The names are those of the Python client's classes. */
  public enum Kind {
    /** The request is malformed, or too large. */
    BadRequest,
    /** The key, the token or the grant is missing, forged, expired or someone else's. */
    Unauthenticated,
    /** A policy was relaxed, a limit was reached, or the agent may not do this. */
    Forbidden,
    /** This caller has no such resource. */
    NotFound,
    /** A race was lost, or a token was used before. */
    Conflict,
    /** The answer was halted or is held, or the budget is spent. */
    SafetyHalt,
    /** A resource for the answer is not available now. */
    Unavailable;

    private static Kind of(Status.Code code) {
      return switch (code) {
        case INVALID_ARGUMENT -> BadRequest;
        case UNAUTHENTICATED -> Unauthenticated;
        case PERMISSION_DENIED -> Forbidden;
        case NOT_FOUND -> NotFound;
        case ABORTED -> Conflict;
        case FAILED_PRECONDITION -> SafetyHalt;
        default -> Unavailable;
      };
    }
  }

  private static final long serialVersionUID = 1L;

  private final Kind kind;
  private final String reason;
  private final transient Map<String, String> metadata;
  private final transient Map<String, String> headers;
  private final Duration retryAfter;

  private InterlockException(
      StatusRuntimeException cause, String reason, Map<String, String> metadata, Map<String, String> headers, Duration retryAfter) {
    super(reason + ": " + cause.getStatus().getDescription(), cause);
    this.kind = Kind.of(cause.getStatus().getCode());
    this.reason = reason;
    this.metadata = Map.copyOf(metadata);
    this.headers = Map.copyOf(headers);
    this.retryAfter = retryAfter;
  }

  /** Returns the typed error of a failed call, whose trailers have the response headers. */
  static InterlockException of(StatusRuntimeException failed) {
    String reason = "GRPC_" + failed.getStatus().getCode();
    Map<String, String> metadata = new HashMap<>();
    Duration retryAfter = Duration.ZERO;
    com.google.rpc.Status status = StatusProto.fromThrowable(failed);
    for (Any detail : status == null ? java.util.List.<Any>of() : status.getDetailsList()) {
      try {
        if (detail.is(ErrorInfo.class)) {
          ErrorInfo info = detail.unpack(ErrorInfo.class);
          reason = info.getReason();
          metadata.putAll(info.getMetadataMap());
        } else if (detail.is(RetryInfo.class)) {
          com.google.protobuf.Duration delay = detail.unpack(RetryInfo.class).getRetryDelay();
          retryAfter = Duration.ofSeconds(delay.getSeconds(), delay.getNanos());
        }
      } catch (InvalidProtocolBufferException unreadable) {
        continue; // the code alone then says what it is
      }
    }
    return new InterlockException(failed, reason, metadata, headersOf(failed.getTrailers()), retryAfter);
  }

  private static Map<String, String> headersOf(Metadata trailers) {
    Map<String, String> headers = new HashMap<>();
    if (trailers != null) {
      for (String name : trailers.keys()) {
        if (!name.endsWith(Metadata.BINARY_HEADER_SUFFIX)) {
          headers.put(name, trailers.get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER)));
        }
      }
    }
    return headers;
  }

  public Kind kind() {
    return kind;
  }

  /** A constant name in capitals, part of the API, such as SAFETY_HALT; the code's name where the server gave none. */
  public String reason() {
    return reason;
  }

  /** Detail for programs, such as the limit that was reached. */
  public Map<String, String> metadata() {
    return metadata;
  }

  /** The CRP response headers of the refusal, names in lower case. */
  public Map<String, String> headers() {
    return headers;
  }

  /** The time after which a retry may help; zero: none does. */
  public Duration retryAfter() {
    return retryAfter;
  }
}
