package dev.interlock.client;

import dev.interlock.api.common.v1.Fact;
import dev.interlock.api.sidecar.v1.SubAgentResult;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.yaml.snakeyaml.Yaml;

/**
 * Plays clients/conformance.yaml against a sidecar: Conformance SCRIPT TARGET [CA]. It prints one line for each step and ends with 1 if
 * one differed.
 */
public final class Conformance {
  private final Client client;
  private final Map<String, Object> script;
  private final Map<String, Session> sessions = new HashMap<>();
  private final Map<String, Session.Delegation> delegations = new HashMap<>();
  private final Map<String, SubAgentResult> results = new HashMap<>();

  private Conformance(Client client, Map<String, Object> script) {
    this.client = client;
    this.script = script;
  }

  private record Said(String text, Map<String, String> headers) {}

  public static void main(String[] arguments) throws IOException {
    Map<String, Object> script;
    try (InputStream file = Files.newInputStream(Path.of(arguments[0]))) {
      script = new Yaml().load(file);
    }
    int differed = 0;
    try (Client client = connected(arguments)) {
      for (Map<String, Object> one : list(script, "cases")) {
        Conformance player = new Conformance(client, script);
        int number = 0;
        for (Map<String, Object> step : list(one, "steps")) {
          String problem = player.play(step);
          differed += problem.isEmpty() ? 0 : 1;
          System.out.println(one.get("name") + "\t" + ++number + "\t" + problem);
        }
      }
    }
    System.exit(differed == 0 ? 0 : 1);
  }

  private static Client connected(String[] arguments) throws IOException {
    if (arguments.length < 3) {
      return Client.connect(arguments[1], null);
    }
    try (InputStream authorities = Files.newInputStream(Path.of(arguments[2]))) {
      return Client.connect(arguments[1], null, authorities);
    }
  }

  private String play(Map<String, Object> step) {
    Map<String, Object> expected = map(step, "expect");
    Session session = sessions.computeIfAbsent(text(step, "session"), name -> started(step));
    String before = session.id();
    String trace = text(step, "trace");
    session.trace(trace.isEmpty() ? null : new Session.Trace("00-" + trace + "-00f067aa0ba902b7-01", ""));
    List<String> parts = new ArrayList<>();
    Said said;
    try {
      said = call(session, step, parts);
    } catch (InterlockException refused) {
      boolean wanted = refused.kind().name().equals(text(expected, "error")) && refused.reason().equals(text(expected, "reason"));
      if (!text(expected, "heard").equals(String.join("", parts))) {
        return "parts: " + parts;
      }
      return wanted ? "" : refused.kind() + " " + refused.getMessage();
    }
    int least = (Integer) expected.getOrDefault("parts", 0);
    if (parts.size() < least || least > 0 && !String.join("", parts).equals(said.text())) {
      return "parts: " + parts;
    }
    return differs(expected, said, before, session.id());
  }

  private Session started(Map<String, Object> step) {
    Client agent = client.as(text(map(script, "keys"), text(step, "key")));
    String policy = (String) step.get("policy");
    String delegation = text(step, "delegation");
    return delegation.isEmpty() ? agent.session(policy) : agent.session(policy, delegations.get(delegation));
  }

  private Said call(Session session, Map<String, Object> step, List<String> parts) {
    switch (text(step, "call")) {
      case "chat", "stream" -> {
        List<Fact> facts = new ArrayList<>();
        for (Map<String, Object> one : list(step, "facts")) {
          double importance = ((Number) one.get("importance")).doubleValue();
          facts.add(Fact.newBuilder().setId(text(one, "id")).setContent(text(one, "content")).setImportance(importance).build());
        }
        List<SubAgentResult> consumed = new ArrayList<>();
        for (Object name : (List<?>) step.getOrDefault("results", List.of())) {
          consumed.add(results.get(name));
        }
        Request request = Request.ask(text(script, "model"), text(step, "ask")).with(facts).from(consumed);
        boolean streams = step.get("call").equals("stream");
        Session.Answer answer = streams ? session.stream(request, parts::add) : session.chat(request);
        results.put(text(step, "as"), answer.result(""));
        return new Said(answer.text(), answer.headers());
      }
      case "delegate" -> delegations.put(text(step, "as"), session.delegate(text(step, "agent_type")));
      case "dag" -> {
        return new Said(session.dag("text", false), Map.of());
      }
      case "terminate" -> session.terminate();
      default -> throw new IllegalArgumentException("no call " + step.get("call"));
    }
    return new Said("", Map.of());
  }

  private static String differs(Map<String, Object> expected, Said said, String before, String after) {
    if (expected.containsKey("error")) {
      return "answered, and was to be refused with " + expected.get("reason");
    }
    boolean sameText = !expected.containsKey("text") || said.text().equals(expected.get("text"));
    if (!sameText || !said.text().contains(text(expected, "contains"))) {
      return "text: " + said.text();
    }
    if (expected.containsKey("same_session") && !before.equals(after)) {
      return "another session: " + after;
    }
    for (Map.Entry<String, Object> header : map(expected, "headers").entrySet()) {
      if (!header.getValue().equals(said.headers().get(header.getKey()))) {
        return header.getKey() + ": " + said.headers().get(header.getKey());
      }
    }
    return "";
  }

  private static String text(Map<String, Object> from, String name) {
    return (String) from.getOrDefault(name, "");
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(Map<String, Object> from, String name) {
    return (Map<String, Object>) from.getOrDefault(name, Map.of());
  }

  @SuppressWarnings("unchecked")
  private static List<Map<String, Object>> list(Map<String, Object> from, String name) {
    return (List<Map<String, Object>>) from.getOrDefault(name, List.of());
  }
}
