//! The program of README.md: an answer that its facts speak against is halted.

use interlock_client::{Client, Fact, Kind, Request, SessionOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::var("SIDECAR_TARGET").unwrap_or("127.0.0.1:7071".into());
    let client = Client::connect(&target, std::env::var("OPENAI_API_KEY").ok().as_deref(), None).await?;
    let mut session = client.session(SessionOptions { policy: Some("halt-on MEDIUM".into()), ..Default::default() });

    let mut request = Request::ask("gpt-4o-mini", "What did the Premium Package cost?");
    let content = "The Premium Package costs $1,500 per office.".into();
    request.facts.push(Fact { id: "price".into(), content, importance: 0.9 });
    match session.chat(&request).await {
        Ok(answer) => println!("{} {:?}", answer.text, answer.headers.get("crp-agent-safety-budget")),
        Err(refused) if refused.kind == Kind::SafetyHalt => println!("halted: {}", refused.reason),
        Err(other) => return Err(other.into()),
    }
    Ok(())
}
