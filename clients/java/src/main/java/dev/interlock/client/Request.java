package dev.interlock.client;

import com.google.gson.Gson;
import com.google.protobuf.ByteString;
import dev.interlock.api.common.v1.Fact;
import dev.interlock.api.sidecar.v1.SubAgentResult;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A chat request.
 *
 * @param messages those of the OpenAI API, each with role and content
 * @param parameters further fields of the OpenAI request
 * @param facts what the answer may rest on
 * @param results sub-agents' answers that it is to be answered from
 */
public record Request(
    String model, List<Map<String, String>> messages, Map<String, Object> parameters, List<Fact> facts, List<SubAgentResult> results) {
  private static final Gson JSON = new Gson();

  /** One question of a user. */
  public static Request ask(String model, String question) {
    return new Request(model, List.of(Map.of("role", "user", "content", question)), Map.of(), List.of(), List.of());
  }

  /** The same with facts. */
  public Request with(List<Fact> given) {
    return new Request(model, messages, parameters, given, results);
  }

  /** The same with the results that it is to be answered from. */
  public Request from(List<SubAgentResult> consumed) {
    return new Request(model, messages, parameters, facts, consumed);
  }

  ByteString body() {
    Map<String, Object> fields = new HashMap<>(parameters);
    fields.put("model", model);
    fields.put("messages", messages);
    return ByteString.copyFromUtf8(JSON.toJson(fields));
  }
}
