//! Plays clients/conformance.yaml against a sidecar: conformance SCRIPT TARGET [CA].
//! It prints one line for each step and ends with 1 if one differed.

use std::collections::HashMap;
use std::error::Error as AnyError;

use interlock_client::{Answer, AnswerStream, Client, Delegation, Error, Fact, Outgoing, Request, Session, SessionOptions, Trace};
use serde::Deserialize;

#[derive(Deserialize)]
struct Script {
    model: String,
    keys: HashMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Step {
    call: String,
    session: String,
    key: String,
    policy: Option<String>,
    ask: String,
    delegation: Option<String>,
    #[serde(rename = "as")]
    kept_as: String,
    trace: Option<String>,
    agent_type: String,
    facts: Vec<ScriptFact>,
    results: Vec<String>,
    expect: Expectation,
}

#[derive(Deserialize)]
struct ScriptFact {
    id: String,
    content: String,
    importance: f64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Expectation {
    text: Option<String>,
    parts: usize,
    heard: String,
    contains: String,
    error: Option<String>,
    reason: String,
    same_session: Option<String>,
    headers: HashMap<String, String>,
}

struct Player<'a> {
    client: &'a Client,
    script: &'a Script,
    sessions: HashMap<String, Session>,
    delegations: HashMap<String, Delegation>,
    results: HashMap<String, Outgoing>,
}

type Said = Result<(String, HashMap<String, String>), Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn AnyError>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, target, ca @ ..] = arguments.as_slice() else {
        return Err("usage: conformance SCRIPT TARGET [CA]".into());
    };
    let mut value: serde_yaml_ng::Value = serde_yaml_ng::from_str(&std::fs::read_to_string(path)?)?;
    value.apply_merge()?;
    let script: Script = serde_yaml_ng::from_value(value)?;
    let authorities = ca.first().map(std::fs::read).transpose()?;
    let client = Client::connect(target, None, authorities.as_deref()).await?;
    let mut differed = 0;
    for case in &script.cases {
        let mut player = Player {
            client: &client,
            script: &script,
            sessions: HashMap::new(),
            delegations: HashMap::new(),
            results: HashMap::new(),
        };
        for (number, step) in case.steps.iter().enumerate() {
            let problem = player.play(step).await;
            differed += usize::from(!problem.is_empty());
            println!("{}\t{}\t{problem}", case.name, number + 1);
        }
    }
    if differed > 0 {
        return Err(format!("{differed} steps differed").into());
    }
    Ok(())
}

impl Player<'_> {
    async fn play(&mut self, step: &Step) -> String {
        let mut session = self.sessions.remove(&step.session).unwrap_or_else(|| self.started(step));
        let before = session.id().to_owned();
        let parent = step.trace.as_ref().map(|id| format!("00-{id}-00f067aa0ba902b7-01"));
        session.set_trace(parent.map(|parent| Trace { parent, state: String::new() }));
        let mut parts = Vec::new();
        let said = self.call(&mut session, step, &mut parts).await;
        let (want, heard) = (&step.expect, parts.concat());
        let whole = want.parts == 0 || said.as_ref().is_ok_and(|(text, _)| *text == heard);
        let problem = if parts.len() < want.parts || !whole || !want.heard.is_empty() && heard != want.heard {
            format!("parts: {parts:?}, error: {:?}", said.err())
        } else {
            differs(want, said, &before, session.id())
        };
        self.sessions.insert(step.session.clone(), session);
        problem
    }

    fn started(&self, step: &Step) -> Session {
        let delegation = step.delegation.as_ref().and_then(|name| self.delegations.get(name)).cloned();
        let key = self.script.keys.get(&step.key).map_or("", String::as_str);
        self.client.with_key(key).session(SessionOptions { policy: step.policy.clone(), delegation })
    }

    async fn call(&mut self, session: &mut Session, step: &Step, parts: &mut Vec<String>) -> Said {
        let nothing = (String::new(), HashMap::new());
        match step.call.as_str() {
            "chat" | "stream" => {
                let mut request = Request::ask(&self.script.model, &step.ask);
                request.facts = step.facts.iter().map(fact).collect();
                request.results = step.results.iter().filter_map(|name| self.results.get(name)).cloned().collect();
                let answer = match step.call.as_str() {
                    "stream" => streamed(session.stream(&request), parts).await?,
                    _ => session.chat(&request).await?,
                };
                self.results.insert(step.kept_as.clone(), answer.result(""));
                Ok((answer.text, answer.headers))
            }
            "delegate" => {
                let delegation = session.delegate(&step.agent_type).await?;
                self.delegations.insert(step.kept_as.clone(), delegation);
                Ok(nothing)
            }
            "dag" => Ok((session.dag("text", false).await?, HashMap::new())),
            "terminate" => session.terminate().await.map(|()| nothing),
            other => panic!("no call {other}"),
        }
    }
}

async fn streamed(mut stream: AnswerStream<'_>, parts: &mut Vec<String>) -> Result<Answer, Error> {
    while let Some(text) = stream.part().await? {
        parts.push(text);
    }
    Ok(stream.into_answer().expect("an answer, whose parts were read to the end"))
}

fn fact(one: &ScriptFact) -> Fact {
    Fact { id: one.id.clone(), content: one.content.clone(), importance: one.importance }
}

fn differs(want: &Expectation, said: Said, before: &str, after: &str) -> String {
    let (text, headers) = match (said, &want.error) {
        (Err(refused), Some(kind)) if format!("{:?}", refused.kind) == *kind && refused.reason == want.reason => {
            return String::new();
        }
        (Err(refused), _) => return format!("{:?} {refused}", refused.kind),
        (Ok(_), Some(_)) => return format!("answered, and was to be refused with {}", want.reason),
        (Ok(said), None) => said,
    };
    if want.text.as_ref().is_some_and(|wanted| *wanted != text) || !text.contains(&want.contains) {
        return format!("text: {text}");
    }
    if want.same_session.is_some() && before != after {
        return format!("another session: {after}");
    }
    let wrong = want.headers.iter().find(|(name, value)| headers.get(*name) != Some(value));
    wrong.map_or(String::new(), |(name, _)| format!("{name}: {:?}", headers.get(name)))
}
