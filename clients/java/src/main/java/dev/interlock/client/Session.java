package dev.interlock.client;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.interlock.api.common.v1.Fact;
import dev.interlock.api.kernel.v1.ExecuteRequest;
import dev.interlock.api.kernel.v1.Verdict;
import dev.interlock.api.sidecar.v1.CallContext;
import dev.interlock.api.sidecar.v1.CheckRequest;
import dev.interlock.api.sidecar.v1.DelegateRequest;
import dev.interlock.api.sidecar.v1.DelegateResponse;
import dev.interlock.api.sidecar.v1.DispatchRequest;
import dev.interlock.api.sidecar.v1.DispatchResponse;
import dev.interlock.api.sidecar.v1.DispatchStreamRequest;
import dev.interlock.api.sidecar.v1.DispatchStreamResponse;
import dev.interlock.api.sidecar.v1.GetDagRequest;
import dev.interlock.api.sidecar.v1.Outcome;
import dev.interlock.api.sidecar.v1.SidecarServiceGrpc.SidecarServiceBlockingStub;
import dev.interlock.api.sidecar.v1.SubAgentResult;
import dev.interlock.api.sidecar.v1.TerminateRequest;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.AbstractStub;
import io.grpc.stub.MetadataUtils;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Function;

/** One agent's session. It keeps the token; its calls run one after another. */
public final class Session {
  private static final int RETRIES = 2;
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(30);

  /** A W3C trace context: what came with the request that an agent answers, and goes on with its governed calls. State may be empty. */
  public record Trace(String parent, String state) {
    /** Reads the trace of an incoming request, by a look-up of its headers; null where it has none. */
    public static Trace from(Function<String, String> header) {
      String parent = header.apply("traceparent");
      String state = header.apply("tracestate");
      return parent == null ? null : new Trace(parent, state == null ? "" : state);
    }

    /** The headers that carry it on. */
    public Map<String, String> headers() {
      return state.isEmpty() ? Map.of("traceparent", parent) : Map.of("traceparent", parent, "tracestate", state);
    }
  }

  /** The right of one sub-agent to start one child session: send its headers along, over HTTP or as gRPC metadata. */
  public record Delegation(Map<String, String> headers, String expiresAt) {}

  /**
   * A released answer.
   *
   * @param completion the chat completion as the OpenAI API has it
   * @param text the content of its first choice
   * @param outcome the decision and the report
   * @param headers the CRP response headers, names in lower case
   */
  public record Answer(JsonObject completion, String text, Outcome outcome, Map<String, String> headers) {
    /** The reference by which an orchestrator names this answer. */
    public SubAgentResult result(String subQuery) {
      String hmac = headers.getOrDefault("crp-provenance-hmac", "");
      return SubAgentResult.newBuilder().setSessionId(outcome.getSessionId()).setHmac(hmac).setSubQuery(subQuery).build();
    }
  }

  private final Client client;
  private final String policy;
  private final Map<String, String> first;
  private String token = "";
  private String id = "";
  private Trace trace;

  Session(Client client, String policy, Map<String, String> first) {
    this.client = client;
    this.policy = policy;
    this.first = first;
  }

  /** The session's id; empty before its first call. */
  public synchronized String id() {
    return id;
  }

  /** The trace that the calls from now on belong to; null: none. */
  public synchronized void trace(Trace belongsTo) {
    trace = belongsTo;
  }

  /** Makes a governed call after the latest one of the session. */
  public synchronized Answer chat(Request request) {
    DispatchResponse response;
    try {
      response = dispatch(request);
    } catch (InterlockException lost) {
      // The call before was charged, and its answer was lost on the way: go on with the newer token that the refusal brought.
      if (!lost.reason().equals("WINDOW_ALREADY_SETTLED")) {
        throw lost;
      }
      response = dispatch(request);
    }
    return answer(response);
  }

  /**
   * Makes the same call, of which each part is handed over once it was judged and put on record. It throws where there is no answer, or
   * the rest of one may not leave: what was handed over stays with the caller. What the consumer throws ends the call.
   */
  public synchronized Answer stream(Request request, Consumer<String> part) {
    boolean settled = false;
    for (int attempt = 0; ; attempt++) {
      boolean[] begun = {false};
      try {
        return answer(
            listen(
                request,
                text -> {
                  begun[0] = true;
                  part.accept(text);
                }));
      } catch (InterlockException refused) {
        boolean lost = refused.reason().equals("WINDOW_ALREADY_SETTLED") && !settled;
        boolean waits = mayWait(refused, attempt);
        if (begun[0] || !lost && !waits) { // what has left cannot be asked for again
          throw refused;
        }
        settled |= lost;
        if (waits) {
          pause(refused);
        }
      }
    }
  }

  /** Sends once and reads to the end. */
  private DispatchResponse listen(Request request, Consumer<String> part) {
    DispatchStreamRequest asked = DispatchStreamRequest.newBuilder().setDispatch(message(request)).build();
    Context.CancellableContext reading = Context.current().withCancellation();
    Context before = reading.attach();
    try {
      DispatchResponse whole = null;
      Iterator<DispatchStreamResponse> messages = with(client.sidecar(), outgoing()).dispatchStream(asked);
      while (more(messages)) {
        DispatchStreamResponse message = messages.next();
        whole = message.hasWhole() ? message.getWhole() : whole;
        if (!message.getPart().getText().isEmpty()) {
          part.accept(message.getPart().getText());
        }
      }
      if (whole == null) {
        throw InterlockException.of(Status.UNKNOWN.withDescription("the stream ended without an answer").asRuntimeException());
      }
      return whole;
    } finally {
      reading.detach(before);
      reading.cancel(null);
    }
  }

  /** Waits for the next message; only this fails with the call, so that a failure of the consumer is its own. */
  private boolean more(Iterator<DispatchStreamResponse> messages) {
    try {
      return messages.hasNext();
    } catch (StatusRuntimeException failed) {
      InterlockException refused = InterlockException.of(failed);
      learn(refused.headers());
      throw refused;
    }
  }

  private Answer answer(DispatchResponse response) {
    Outcome outcome = response.getOutcome();
    goOn(outcome);
    Map<String, String> headers = new TreeMap<>();
    outcome.getHeadersMap().forEach((name, value) -> headers.put(name.toLowerCase(Locale.ROOT), value));
    JsonObject completion = JsonParser.parseString(response.getChatResponse().toStringUtf8()).getAsJsonObject();
    return new Answer(completion, text(completion), outcome, headers);
  }

  private DispatchResponse dispatch(Request request) {
    return call(stub -> stub.dispatch(message(request)));
  }

  private DispatchRequest message(Request request) {
    return DispatchRequest.newBuilder()
        .setContext(context())
        .setChatRequest(request.body())
        .addAllFacts(request.facts())
        .addAllSubAgentResults(request.results())
        .build();
  }

  /** Governs a text that the caller already has. A halt is an answer here: read the outcome. */
  public synchronized Outcome check(String text, List<Fact> facts) {
    Outcome outcome =
        call(stub -> stub.check(CheckRequest.newBuilder().setContext(context()).setText(text).addAllFacts(facts).build()))
            .getOutcome();
    goOn(outcome);
    return outcome;
  }

  /** Asks for the delegation of one sub-agent; the type may be empty for one that is not registered. */
  public synchronized Delegation delegate(String agentType) {
    DelegateResponse given =
        call(stub -> stub.delegate(DelegateRequest.newBuilder().setContext(context()).setAgentType(agentType).build()));
    return new Delegation(Map.copyOf(given.getHeadersMap()), given.getExpiresAt());
  }

  /** Draws the window DAG as text, mermaid, dot or json, with the sessions below it where tree is set. */
  public synchronized String dag(String format, boolean tree) {
    return call(
            stub -> stub.getDag(GetDagRequest.newBuilder().setSessionToken(token).setFormat(format).setTree(tree).build()))
        .getPicture();
  }

  /** Ends the session for good; one without a call needs no end. */
  public synchronized void terminate() {
    if (!token.isEmpty()) {
      call(stub -> stub.terminate(TerminateRequest.newBuilder().setSessionToken(token).build()));
    }
  }

  /**
   * Checks, charges and commits a registered action of a kernel of this session's tree. A rejection is an answer: read the verdict. The
   * same key with the same action gets the same answer.
   */
  public synchronized Verdict execute(String kernel, String action, String key) {
    Metadata sent = outgoing();
    if (!token.isEmpty()) {
      put(sent, "crp-session-token", token);
    }
    ExecuteRequest asked = ExecuteRequest.newBuilder().setKernel(kernel).setAction(action).setKey(key).build();
    try {
      return with(client.kernels(), sent).execute(asked).getVerdict();
    } catch (StatusRuntimeException failed) {
      throw InterlockException.of(failed);
    }
  }

  /** Sends once, and again where the server says that waiting helps. A refusal's token may be newer than ours. */
  private <R> R call(Function<SidecarServiceBlockingStub, R> send) {
    for (int attempt = 0; ; attempt++) {
      try {
        return send.apply(with(client.sidecar(), outgoing()));
      } catch (StatusRuntimeException failed) {
        InterlockException refused = InterlockException.of(failed);
        learn(refused.headers());
        if (!mayWait(refused, attempt)) {
          throw refused;
        }
        pause(refused);
      }
    }
  }

  private static boolean mayWait(InterlockException refused, int attempt) {
    boolean halted = refused.kind() == InterlockException.Kind.SafetyHalt;
    return !refused.retryAfter().isZero() && attempt < RETRIES && !halted;
  }

  private static void pause(InterlockException refused) {
    Duration wanted = refused.retryAfter();
    try {
      Thread.sleep((wanted.compareTo(LONGEST_PAUSE) < 0 ? wanted : LONGEST_PAUSE).toMillis());
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw refused;
    }
  }

  private void goOn(Outcome outcome) {
    token = outcome.getSessionToken();
    id = outcome.getSessionId();
  }

  private void learn(Map<String, String> headers) {
    String set = headers.getOrDefault("crp-set-session", "").split(";", 2)[0].strip();
    if (set.startsWith("token=")) {
      token = set.substring("token=".length());
    }
    id = headers.getOrDefault("crp-context-session-id", id);
  }

  private CallContext context() {
    CallContext.Builder made = CallContext.newBuilder().setSessionToken(token);
    if (policy != null) {
      made.addSafetyPolicy(policy);
    }
    return made.build();
  }

  private Metadata outgoing() {
    Metadata sent = new Metadata();
    if (client.key() != null) {
      put(sent, "authorization", "Bearer " + client.key());
    }
    if (token.isEmpty()) {
      first.forEach(
          (name, value) -> {
            if (policy == null || !name.equalsIgnoreCase("crp-safety-policy")) {
              put(sent, name, value);
            }
          });
    }
    if (trace != null) {
      trace.headers().forEach((name, value) -> put(sent, name, value));
    }
    return sent;
  }

  private static void put(Metadata sent, String name, String value) {
    if (!value.chars().allMatch(one -> one >= ' ' && one <= '~')) { // it would be left out, and the call would be another's
      String why = "the value of " + name + " is no header: it has a line break, say";
      throw InterlockException.of(Status.INVALID_ARGUMENT.withDescription(why).asRuntimeException());
    }
    sent.put(Metadata.Key.of(name.toLowerCase(Locale.ROOT), Metadata.ASCII_STRING_MARSHALLER), value);
  }

  private static <S extends AbstractStub<S>> S with(S stub, Metadata sent) {
    return stub.withInterceptors(MetadataUtils.newAttachHeadersInterceptor(sent));
  }

  private static String text(JsonObject completion) {
    JsonArray choices = completion.getAsJsonArray("choices");
    if (choices == null || choices.isEmpty()) {
      return "";
    }
    JsonElement content = choices.get(0).getAsJsonObject().getAsJsonObject("message").get("content");
    return content == null || content.isJsonNull() ? "" : content.getAsString();
  }
}
