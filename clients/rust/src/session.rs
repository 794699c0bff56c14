use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use serde_json::Value;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use crate::api::kernel::v1::kernel_service_client::KernelServiceClient;
use crate::api::kernel::v1::{ExecuteRequest, Verdict};
use crate::api::sidecar::v1::sidecar_service_client::SidecarServiceClient;
use crate::api::sidecar::v1::{
    CallContext, CheckRequest, DelegateRequest, DispatchRequest, DispatchResponse, GetDagRequest, Outcome, TerminateRequest,
};
use crate::error::{Error, Kind};
use crate::request::{facts, Fact, Outgoing, Request};

mod stream;
pub use stream::AnswerStream;

const RETRIES: usize = 2;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const LARGEST: usize = 64 << 20;

/// A connection to a sidecar, and the key of an agent. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    key: Option<String>,
}

impl Client {
    /// Connects to the gRPC front of a sidecar, HOST:PORT. With *ca* (PEM) it uses TLS and checks the sidecar by these authorities;
    /// without it is plain text, as a sidecar on loopback has it.
    pub async fn connect(target: &str, key: Option<&str>, ca: Option<&[u8]>) -> Result<Self, tonic::transport::Error> {
        let endpoint = match ca {
            None => Endpoint::from_shared(format!("http://{target}"))?,
            Some(pem) => Endpoint::from_shared(format!("https://{target}"))?
                .tls_config(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))?,
        };
        Ok(Self { channel: endpoint.connect().await?, key: key.map(str::to_owned) })
    }

    /// The same connection with another agent's key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { channel: self.channel.clone(), key: Some(key.to_owned()) }
    }

    /// A new session; its first call starts it.
    #[must_use]
    pub fn session(&self, options: SessionOptions) -> Session {
        Session { client: self.clone(), options, token: String::new(), id: String::new(), trace: None }
    }

    fn sidecar(&self) -> SidecarServiceClient<Channel> {
        SidecarServiceClient::new(self.channel.clone()).max_decoding_message_size(LARGEST)
    }
}

/// How a session is asked for.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// A safety policy for every call; it may tighten what the deployment demands, and never relax it.
    pub policy: Option<String>,
    /// Starts the session as the child that a delegation is for.
    pub delegation: Option<Delegation>,
}

/// A released answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The chat completion as the OpenAI API has it, JSON.
    pub completion: Value,
    /// The content of its first choice.
    pub text: String,
    /// The decision and the report.
    pub outcome: Outcome,
    /// The CRP response headers, names in lower case.
    pub headers: HashMap<String, String>,
}

impl Answer {
    /// The reference by which an orchestrator names this answer.
    #[must_use]
    pub fn result(&self, sub_query: &str) -> Outgoing {
        Outgoing {
            session_id: self.outcome.session_id.clone(),
            hmac: self.headers.get("crp-provenance-hmac").cloned().unwrap_or_default(),
            sub_query: sub_query.to_owned(),
        }
    }
}

/// The right of one sub-agent to start one child session: send its headers along, over HTTP or as gRPC metadata.
#[derive(Clone, Debug, Default)]
pub struct Delegation {
    pub headers: HashMap<String, String>,
    pub expires_at: String,
}

/// A W3C trace context: what came with the request that an agent answers, and goes on with its governed calls.
#[derive(Clone, Debug)]
pub struct Trace {
    pub parent: String,
    /// May be empty.
    pub state: String,
}

impl Trace {
    /// Reads the trace of an incoming request, by a look-up of its headers.
    #[must_use]
    pub fn from_headers<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let state = header("tracestate").unwrap_or_default().to_owned();
        header("traceparent").map(|parent| Self { parent: parent.to_owned(), state })
    }

    /// The headers that carry it on.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("traceparent", self.parent.clone())];
        if !self.state.is_empty() {
            pairs.push(("tracestate", self.state.clone()));
        }
        pairs
    }
}

/// One agent's session. It keeps the token; its calls run one after another.
#[derive(Debug)]
pub struct Session {
    client: Client,
    options: SessionOptions,
    token: String,
    id: String,
    trace: Option<Trace>,
}

impl Session {
    /// The session's id; empty before its first call.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The trace that the calls from now on belong to.
    pub fn set_trace(&mut self, trace: Option<Trace>) {
        self.trace = trace;
    }

    /// A governed call after the latest one of the session.
    ///
    /// # Errors
    /// Where there is no answer to release.
    pub async fn chat(&mut self, request: &Request) -> Result<Answer, Error> {
        let first = self.dispatch(request).await;
        let response = match first {
            // The call before was charged, and its answer was lost on the way: go on with the newer token that the refusal brought.
            Err(lost) if lost.reason == "WINDOW_ALREADY_SETTLED" => self.dispatch(request).await?,
            other => other?,
        };
        Ok(self.answer(response))
    }

    async fn dispatch(&mut self, request: &Request) -> Result<DispatchResponse, Error> {
        let message = request.message();
        self.call(|stub, context| {
            (stub, DispatchRequest { context: Some(context), ..message.clone() })
        }, |mut stub, message| async move { stub.dispatch(message).await })
        .await
    }

    fn answer(&mut self, response: DispatchResponse) -> Answer {
        let outcome = response.outcome.unwrap_or_default();
        self.go_on(&outcome);
        let completion: Value = serde_json::from_slice(&response.chat_response).unwrap_or_default();
        let text = completion["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
        let headers = outcome.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        Answer { completion, text, outcome, headers }
    }

    /// Governs a text that the caller already has. A halt is an answer here: read the outcome.
    ///
    /// # Errors
    /// Where the text could not be governed.
    pub async fn check(&mut self, text: &str, known: &[Fact]) -> Result<Outcome, Error> {
        let response = self
            .call(|stub, context| {
                let message = CheckRequest {
                    context: Some(context), text: text.to_owned(), facts: facts(known), ..CheckRequest::default()
                };
                (stub, message)
            }, |mut stub, message| async move { stub.check(message).await })
            .await?;
        let outcome = response.outcome.unwrap_or_default();
        self.go_on(&outcome);
        Ok(outcome)
    }

    /// Asks for the delegation of one sub-agent; `agent_type` may be empty for one that is not registered.
    ///
    /// # Errors
    /// Where this session may not delegate.
    pub async fn delegate(&mut self, agent_type: &str) -> Result<Delegation, Error> {
        let given = self
            .call(|stub, context| {
                let message = DelegateRequest {
                    context: Some(context), agent_type: agent_type.to_owned(), ..DelegateRequest::default()
                };
                (stub, message)
            }, |mut stub, message| async move { stub.delegate(message).await })
            .await?;
        Ok(Delegation { headers: given.headers, expires_at: given.expires_at })
    }

    /// Draws the window DAG as text, mermaid, dot or json, with the sessions below it where `tree` is set.
    ///
    /// # Errors
    /// Where the session cannot be read.
    pub async fn dag(&mut self, format: &str, tree: bool) -> Result<String, Error> {
        let drawn = self
            .call(|stub, context| {
                (stub, GetDagRequest { session_token: context.session_token, format: format.to_owned(), tree })
            }, |mut stub, message| async move { stub.get_dag(message).await })
            .await?;
        Ok(drawn.picture)
    }

    /// Ends the session for good; one without a call needs no end.
    ///
    /// # Errors
    /// Where it could not be ended.
    pub async fn terminate(&mut self) -> Result<(), Error> {
        if self.token.is_empty() {
            return Ok(());
        }
        self.call(|stub, context| {
            (stub, TerminateRequest { session_token: context.session_token })
        }, |mut stub, message| async move { stub.terminate(message).await })
        .await?;
        Ok(())
    }

    /// Checks, charges and commits a registered action of a kernel of this session's tree. A rejection is an answer: read the verdict.
    /// The same `key` with the same action gets the same answer.
    ///
    /// # Errors
    /// Where the kernel could not be asked.
    pub async fn execute(&mut self, kernel: &str, action: &str, key: &str) -> Result<Verdict, Error> {
        let message = ExecuteRequest {
            kernel: kernel.to_owned(), action: action.to_owned(), key: key.to_owned(), ..ExecuteRequest::default()
        };
        let mut request = self.outgoing(message)?;
        if !self.token.is_empty() {
            insert(&mut request, "crp-session-token", &self.token)?;
        }
        let mut stub = KernelServiceClient::new(self.client.channel.clone());
        Ok(stub.execute(request).await?.into_inner().verdict.unwrap_or_default())
    }

    fn go_on(&mut self, outcome: &Outcome) {
        (self.token, self.id) = (outcome.session_token.clone(), outcome.session_id.clone());
    }

    /// Sends once, and again where the server says that waiting helps. A refusal's token may be newer than ours.
    async fn call<M, R, F>(
        &mut self,
        make: impl Fn(SidecarServiceClient<Channel>, CallContext) -> (SidecarServiceClient<Channel>, M),
        send: impl Fn(SidecarServiceClient<Channel>, tonic::Request<M>) -> F,
    ) -> Result<R, Error>
    where
        F: Future<Output = Result<tonic::Response<R>, tonic::Status>>,
    {
        let mut attempt = 0;
        loop {
            let (stub, message) = make(self.client.sidecar(), self.context());
            let refused = match send(stub, self.outgoing(message)?).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => Error::from(status),
            };
            self.learn(&refused);
            match refused.retry_after {
                Some(pause) if attempt < RETRIES && refused.kind != Kind::SafetyHalt => {
                    tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                }
                _ => return Err(refused),
            }
            attempt += 1;
        }
    }

    fn learn(&mut self, refused: &Error) {
        let set = refused.headers.get("crp-set-session").map_or("", String::as_str);
        if let Some(token) = set.split(';').next().and_then(|one| one.trim().strip_prefix("token=")) {
            token.clone_into(&mut self.token);
        }
        if let Some(id) = refused.headers.get("crp-context-session-id") {
            id.clone_into(&mut self.id);
        }
    }

    fn context(&self) -> CallContext {
        CallContext {
            session_token: self.token.clone(),
            safety_policy: self.options.policy.iter().cloned().collect(),
            ..CallContext::default()
        }
    }

    /// The message with what goes beside it. What cannot be sent is refused: without its key or its grant the call would be another's.
    fn outgoing<M>(&self, message: M) -> Result<tonic::Request<M>, tonic::Status> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        if let Some(key) = &self.client.key {
            pairs.push(("authorization".into(), format!("Bearer {key}")));
        }
        if let (true, Some(delegation)) = (self.token.is_empty(), &self.options.delegation) {
            let own_policy = self.options.policy.is_some();
            let given = delegation.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
            pairs.extend(given.filter(|(name, _)| !(own_policy && name == "crp-safety-policy")));
        }
        let trace = self.trace.iter().flat_map(Trace::headers);
        pairs.extend(trace.map(|(name, value)| (name.to_owned(), value)));
        let mut request = tonic::Request::new(message);
        for (name, value) in pairs {
            insert(&mut request, &name, &value)?;
        }
        Ok(request)
    }
}

fn insert<M>(request: &mut tonic::Request<M>, name: &str, value: &str) -> Result<(), tonic::Status> {
    let (Ok(key), Ok(value)) = (name.parse::<AsciiMetadataKey>(), value.parse::<AsciiMetadataValue>()) else {
        return Err(tonic::Status::invalid_argument(format!("the value of {name} is no header: it has a line break, say")));
    };
    request.metadata_mut().insert(key, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_that_cannot_be_sent_is_refused() {
        let channel = Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
        let mut session = Client { channel, key: Some("from a file\n".into()) }.session(SessionOptions::default());
        let refused = session.check("text", &[]).await.unwrap_err();
        assert_eq!(refused.kind, Kind::BadRequest);
        assert!(refused.to_string().contains("authorization"));
    }
}
