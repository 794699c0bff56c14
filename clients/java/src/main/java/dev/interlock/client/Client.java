package dev.interlock.client;

import dev.interlock.api.kernel.v1.KernelServiceGrpc;
import dev.interlock.api.sidecar.v1.SidecarServiceGrpc;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;

/**
 * A connection to a sidecar, and the key of an agent. It is safe for concurrent use.
 *
 * <pre>{@code
 * try (Client client = Client.connect("127.0.0.1:7071", "key")) {
 *   Session session = client.session("halt-on HIGH");
 *   System.out.println(session.chat(Request.ask("gpt-4o-mini", "Say hello.")).text());
 * } catch (InterlockException refused) {
 *   System.out.println(refused.kind() + " " + refused.reason());
 * }
 * }</pre>
 */
public final class Client implements AutoCloseable {
  private static final int LARGEST = 64 << 20;

  private final ManagedChannel channel;
  private final String key;

  private Client(ManagedChannel channel, String key) {
    this.channel = channel;
    this.key = key;
  }

  /** Connects to the gRPC front of a sidecar, HOST:PORT, in plain text, as a sidecar on loopback has it. The key may be null. */
  public static Client connect(String target, String key) {
    return made(target, key, InsecureChannelCredentials.create());
  }

  /** Connects over TLS, and checks the sidecar by these authorities (PEM). */
  public static Client connect(String target, String key, InputStream authorities) throws IOException {
    return made(target, key, TlsChannelCredentials.newBuilder().trustManager(authorities).build());
  }

  private static Client made(String target, String key, ChannelCredentials credentials) {
    return new Client(Grpc.newChannelBuilder(target, credentials).maxInboundMessageSize(LARGEST).build(), key);
  }

  /** The same connection with another agent's key; closing one closes both. */
  public Client as(String otherKey) {
    return new Client(channel, otherKey);
  }

  /** A new session; its first call starts it. The policy may be null: it may tighten what the deployment demands, and never relax it. */
  public Session session(String policy) {
    return new Session(this, policy, Map.of());
  }

  /** A new session that starts as the child that a delegation is for. */
  public Session session(String policy, Session.Delegation delegation) {
    return new Session(this, policy, delegation.headers());
  }

  String key() {
    return key;
  }

  SidecarServiceGrpc.SidecarServiceBlockingStub sidecar() {
    return SidecarServiceGrpc.newBlockingStub(channel);
  }

  KernelServiceGrpc.KernelServiceBlockingStub kernels() {
    return KernelServiceGrpc.newBlockingStub(channel);
  }

  /** Closes the connection. Sessions do not end with it: {@link Session#terminate} ends one. */
  @Override
  public void close() {
    channel.shutdown();
  }
}
