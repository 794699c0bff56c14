//! Governs the calls of an agent: it keeps the session and its token, delegates to sub-agents, and tells refusals apart.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use interlock_client::{Client, Kind, Request, SessionOptions};
//!
//! let client = Client::connect("127.0.0.1:7071", Some("key"), None).await?;
//! let mut session = client.session(SessionOptions { policy: Some("halt-on HIGH".into()), ..Default::default() });
//! match session.chat(&Request::ask("gpt-4o-mini", "Say hello.")).await {
//!     Ok(answer) => println!("{}", answer.text),
//!     Err(refused) if refused.kind == Kind::SafetyHalt => println!("halted: {}", refused.reason),
//!     Err(other) => return Err(other.into()),
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod request;
mod session;

pub use error::{Error, Kind};
pub use request::{Fact, Message, Outgoing, Request};
pub use session::{Answer, AnswerStream, Client, Delegation, Session, SessionOptions, Trace};

/// The generated messages and stubs.
#[allow(clippy::all, clippy::pedantic, missing_docs, rustdoc::all)]
pub mod api {
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
    pub use interlock::api::*;
}
