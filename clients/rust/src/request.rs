use serde_json::{json, Map, Value};

use crate::api::common::v1 as common;
use crate::api::sidecar::v1::{DispatchRequest, SubAgentResult};

/// A message of the OpenAI API.
#[derive(Clone, Debug)]
pub struct Message {
    pub role: String,
    pub content: String,
}

/// What an answer may rest on.
#[derive(Clone, Debug)]
pub struct Fact {
    pub id: String,
    pub content: String,
    pub importance: f64,
}

/// Names a sub-agent's answer that a request is to be answered from.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub session_id: String,
    pub hmac: String,
    pub sub_query: String,
}

/// A chat request. `parameters` are further fields of the OpenAI request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub model: String,
    pub messages: Vec<Message>,
    pub parameters: Map<String, Value>,
    pub facts: Vec<Fact>,
    pub results: Vec<Outgoing>,
}

impl Request {
    /// One question of a user.
    #[must_use]
    pub fn ask(model: &str, question: &str) -> Self {
        let message = Message { role: "user".into(), content: question.into() };
        Self { model: model.into(), messages: vec![message], ..Self::default() }
    }

    fn body(&self) -> Vec<u8> {
        let mut fields = self.parameters.clone();
        let said = self.messages.iter().map(|one| json!({"role": one.role, "content": one.content}));
        fields.insert("model".into(), self.model.clone().into());
        fields.insert("messages".into(), said.collect());
        Value::Object(fields).to_string().into_bytes()
    }

    /// The message of the call, still without a context.
    pub(crate) fn message(&self) -> DispatchRequest {
        DispatchRequest {
            chat_request: self.body(),
            facts: facts(&self.facts),
            sub_agent_results: self.results.iter().map(result).collect(),
            ..DispatchRequest::default()
        }
    }
}

pub(crate) fn facts(given: &[Fact]) -> Vec<common::Fact> {
    let made = given.iter().map(|one| common::Fact {
        id: one.id.clone(),
        content: one.content.clone(),
        importance: one.importance,
        ..common::Fact::default()
    });
    made.collect()
}

fn result(one: &Outgoing) -> SubAgentResult {
    SubAgentResult {
        session_id: one.session_id.clone(),
        hmac: one.hmac.clone(),
        sub_query: one.sub_query.clone(),
        ..SubAgentResult::default()
    }
}
