use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::Code;

/// What sort of refusal an [`Error`] is. The names are those of the Python client's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request is malformed, or too large.
    BadRequest,
    /// The key, the token or the grant is missing, forged, expired or someone else's.
    Unauthenticated,
    /// A policy was relaxed, a limit was reached, or the agent may not do this.
    Forbidden,
    /// This caller has no such resource.
    NotFound,
    /// A race was lost, or a token was used before.
    Conflict,
    /// The answer was halted or is held, or the budget is spent.
    SafetyHalt,
    /// A resource for the answer is not available now.
    Unavailable,
}

impl Kind {
    fn of(code: Code) -> Self {
        match code {
            Code::InvalidArgument => Self::BadRequest,
            Code::Unauthenticated => Self::Unauthenticated,
            Code::PermissionDenied => Self::Forbidden,
            Code::NotFound => Self::NotFound,
            Code::Aborted => Self::Conflict,
            Code::FailedPrecondition => Self::SafetyHalt,
            _ => Self::Unavailable,
        }
    }
}

/// A call without an answer. Branch on `kind` and `reason`; the text is for people.
#[derive(Clone, Debug)]
pub struct Error {
    pub kind: Kind,
    /// A constant name in capitals, part of the API, such as `SAFETY_HALT`; the code's name where the server gave none.
    pub reason: String,
    /// Detail for programs, such as the limit that was reached.
    pub metadata: HashMap<String, String>,
    /// The CRP response headers of the refusal, names in lower case.
    pub headers: HashMap<String, String>,
    /// The time after which a retry may help; `None`: none does.
    pub retry_after: Option<Duration>,
    message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl std::error::Error for Error {}

/// google.rpc.Status, as far as it is read.
#[derive(Clone, PartialEq, Message)]
struct Details {
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// google.rpc.ErrorInfo.
#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

/// google.rpc.RetryInfo.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<prost_types::Duration>,
}

impl From<tonic::Status> for Error {
    fn from(status: tonic::Status) -> Self {
        let mut error = Self {
            kind: Kind::of(status.code()),
            reason: format!("GRPC_{:?}", status.code()),
            metadata: HashMap::new(),
            headers: headers_of(status.metadata()),
            retry_after: None,
            message: status.message().to_owned(),
        };
        for detail in Details::decode(status.details()).unwrap_or_default().details {
            let bytes = detail.value.as_slice();
            if detail.type_url.ends_with("/google.rpc.ErrorInfo") {
                if let Ok(info) = ErrorInfo::decode(bytes) {
                    (error.reason, error.metadata) = (info.reason, info.metadata);
                }
            } else if detail.type_url.ends_with("/google.rpc.RetryInfo") {
                let delay = RetryInfo::decode(bytes).ok().and_then(|info| info.retry_delay);
                error.retry_after = delay.and_then(|one| Duration::try_from(one).ok()).filter(|one| !one.is_zero());
            }
        }
        error
    }
}

fn headers_of(metadata: &MetadataMap) -> HashMap<String, String> {
    let ours = metadata.iter().filter_map(|entry| match entry {
        tonic::metadata::KeyAndValueRef::Ascii(name, value) => {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        }
        tonic::metadata::KeyAndValueRef::Binary(..) => None,
    });
    ours.collect()
}
