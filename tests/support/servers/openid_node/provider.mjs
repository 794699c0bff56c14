// A certified OpenID provider with two people: its settings come as one line of JSON, and it says "ready" when it listens.
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

const GROUPS = { reviewer: ["staff", "interlock-reviewers"], stranger: ["staff"] };

for await (const line of createInterface({ input: process.stdin })) {
  const { port, client, secret, redirect, back } = JSON.parse(line);
  const issuer = `http://localhost:${port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: client, client_secret: secret, redirect_uris: [redirect], post_logout_redirect_uris: [back],
      grant_types: ["authorization_code"], response_types: ["code"],
    }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
    scopes: ["openid", "email", "groups"],
    pkce: { required: () => true, methods: ["S256"] },
    cookies: { keys: ["only for tests"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@company.com`, email_verified: true, groups: GROUPS[id] ?? [] }),
    }),
  });
  provider.listen(port, "127.0.0.1", () => console.log("ready"));
}
